// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plimsoll/base/error.h"

namespace plimsoll::nn {
namespace {

using testing::HasSubstr;

TEST(BuilderTest, InfersShapes) {
  NetworkBuilder net("shapes");
  const LayerIndex image = net.Image(224, 224, 3);
  LayerIndex x = net.Conv(image, 64, {.kernel = 7, .stride = 2, .padding = 3});
  EXPECT_EQ(net.shape_of(x), (Shape{112, 112, 64}));
  x = net.MaxPool(x, {.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(net.shape_of(x), (Shape{56, 56, 64}));
  x = net.Conv(x, 32, {.kernel = {1, 7}, .padding = {0, 3}, .groups = 2});
  EXPECT_EQ(net.shape_of(x), (Shape{56, 56, 32}));
  x = net.TransposedConv(x, 16, {.kernel = 2, .stride = 2});
  EXPECT_EQ(net.shape_of(x), (Shape{112, 112, 16}));
  x = net.GlobalPool(net.Concat({x, x}));
  EXPECT_EQ(net.shape_of(x), (Shape{32}));
  net.SoftmaxLoss(net.Linear(x, 10));
  const Network network = net.Finish();
  EXPECT_EQ(network.classes, 10);
  EXPECT_EQ(network.label_tensor().count(), 1);
  EXPECT_EQ(network.parameters[2].shape, (Shape{32, 1, 7, 32}));
}

TEST(BuilderTest, KnowsSequencesAndVideos) {
  NetworkBuilder net("sequence");
  LayerIndex x = net.FoldTime(net.Input({16, 8, 8, 3}));
  EXPECT_EQ(net.shape_of(x), (Shape{8, 8, 3}));
  x = net.UnfoldTime(net.Flatten(x), 16);
  EXPECT_EQ(net.shape_of(x), (Shape{16, 192}));
  x = net.Lstm(x, 20);
  x = net.Attention(net.Linear(x, 60), 4);
  EXPECT_EQ(net.shape_of(x), (Shape{16, 20}));
  net.SoftmaxLoss(x);
  EXPECT_EQ(net.Finish().label_tensor().shape, (Shape{16}));
}

void ExpectRefused(const std::function<void(NetworkBuilder&, LayerIndex)>& build,
                   const std::string& what) {
  NetworkBuilder net("bad");
  const LayerIndex x = net.Image(8, 8, 3);
  try {
    build(net, x);
    ADD_FAILURE() << "accepted; expected " << what;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

TEST(BuilderTest, SaysWhichLayerAndWhichShapes) {
  ExpectRefused([](auto& net, LayerIndex x) { net.Conv(x, 4, {.kernel = 9}, "big"); },
                "bad: layer big (conv) on input (8x8x3): a kernel of 9x9 with padding 0x0");
  ExpectRefused([](auto& net, LayerIndex x) { net.Conv(x, 4, {.groups = 2}); },
                "2 groups do not divide 3 channels in and 4 out");
  ExpectRefused([](auto& net, LayerIndex x) { net.Add(x, net.Conv(x, 3)); },
                "input (8x8x3), conv1 (6x6x3): expected two inputs of one shape");
  ExpectRefused([](auto& net, LayerIndex x) { net.Reshape(x, {5}); }, "cannot become 5");
  ExpectRefused([](auto& net, LayerIndex x) { net.Lstm(x, 5); }, "expected a sequence");
  ExpectRefused([](auto& net, LayerIndex x) { net.Embedding(x, 5, 5); }, "expected ids of tokens");
  ExpectRefused([](auto& net, LayerIndex x) { net.Relu(x + 7); }, "which is not there yet");
  ExpectRefused([](auto& net, LayerIndex x) { net.Relu(net.Relu(x, "a"), "a"); },
                "two layers are called a");
  ExpectRefused([](auto& net, LayerIndex) { net.Image(1, 1, 1); }, "two layers are called input");
  ExpectRefused([](auto& net, LayerIndex x) { net.Dropout(x, 1); }, "a rate from 0 up to 1");
  ExpectRefused([](auto& net, LayerIndex) { net.Finish(); }, "has no loss");
  ExpectRefused([](auto& net, LayerIndex x) { net.Relu(net.SoftmaxLoss(x)); }, "after the loss");
  ExpectRefused([](auto& net, LayerIndex x) { net.MaxPool(x, {.kernel = 2, .padding = 2}); },
                "padding of at most half");
  ExpectRefused([](auto& net, LayerIndex x) { net.Attention(net.Flatten(x), 1); }, "a sequence");
  constexpr std::int64_t kHuge = (std::int64_t{1} << 31) - 1;
  ExpectRefused([](auto& net, LayerIndex x) { net.Linear(net.Linear(x, kHuge), kHuge); },
                "needs a weight of 2147483647x2147483647, which is too large");
  ExpectRefused([](auto& net, LayerIndex x) { net.Conv(x, 4, {.kernel = kHuge}); }, "expected");
  ExpectRefused([](auto& net, LayerIndex x) { net.Reshape(x, {kHuge, kHuge, kHuge}); }, "become");
  ExpectRefused([](auto&, LayerIndex) { NetworkBuilder("b").Input({kHuge, kHuge, 9}); }, "at most");
  ExpectRefused([](auto&, LayerIndex) { NetworkBuilder("b").Input({0}); }, "above zero");
}

}  // namespace
}  // namespace plimsoll::nn

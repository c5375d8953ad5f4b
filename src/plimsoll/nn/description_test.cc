// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/program_for_test.h"

namespace plimsoll::nn {
namespace {

using testing::HasSubstr;

TEST(DescriptionTest, BuildsWhatTheBuilderWould) {
  const Description description = ParseDescription(R"({
    "version": 1, "name": "tiny", "batch": 8, "input": {"image": [16, 16, 3]},
    "layers": [
      {"kind": "conv", "name": "stem", "channels": 8, "kernel": 3, "padding": [1, 1], "bias": false},
      {"kind": "batch_norm"},
      {"kind": "relu", "name": "a"},
      {"kind": "conv", "channels": 8, "kernel": [3, 1], "padding": [1, 0],
       "initializer": {"normal": 0.01}},
      {"kind": "add", "inputs": ["conv3", "a"]},
      {"kind": "concat", "name": "cat", "inputs": ["a", "add4"]},
      {"kind": "max_pool", "kernel": 2},
      {"kind": "dropout", "rate": 0.1},
      {"kind": "flatten"},
      {"kind": "linear", "features": 10, "initializer": "xavier"},
      {"kind": "softmax_loss"}
    ]})",
                                                   "test");
  EXPECT_EQ(description.batch, 8);
  EXPECT_EQ(description.data, DataKind::kImages);
  NetworkBuilder net("tiny");
  LayerIndex a = net.Conv(net.Image(16, 16, 3), 8, {.padding = 1, .bias = false});
  a = net.Relu(net.BatchNorm(a));
  const LayerIndex b = net.Conv(a, 8, {.kernel = {3, 1}, .padding = {1, 0}});
  LayerIndex x = net.Concat({a, net.Add(b, a)});
  x = net.Dropout(net.MaxPool(x, {.kernel = 2}), 0.1F);
  net.SoftmaxLoss(net.Linear(net.Flatten(x), 10));
  const Network expected = net.Finish();
  ASSERT_EQ(description.network.layers.size(), expected.layers.size());
  for (std::size_t i = 0; i < expected.layers.size(); ++i) {
    EXPECT_EQ(description.network.layers[i].kind, expected.layers[i].kind);
    EXPECT_EQ(description.network.layers[i].shape, expected.layers[i].shape);
    EXPECT_EQ(description.network.layers[i].inputs, expected.layers[i].inputs);
    EXPECT_EQ(description.network.layers[i].attributes, expected.layers[i].attributes);
  }
  EXPECT_EQ(description.network.parameters[5].initializer, Normal(0.01F));
}

TEST(DescriptionTest, KnowsText) {
  const Description description = ParseDescription(R"({
    "version": 1, "name": "text", "input": {"tokens": 12},
    "layers": [
      {"kind": "embedding", "name": "e", "vocabulary": 50, "features": 8},
      {"kind": "positions", "length": 12},
      {"kind": "layer_norm"},
      {"kind": "linear", "features": 24},
      {"kind": "attention", "heads": 2},
      {"kind": "lstm", "features": 8},
      {"kind": "linear", "features": 50, "bias": false, "share_weight_of": "e"},
      {"kind": "softmax_loss"}
    ]})",
                                                   "test");
  EXPECT_EQ(description.data, DataKind::kText);
  NullLibrary library;
  ExpectHonest(Lower(description.network, {.batch = 2}, &library));
}

void ExpectRefused(const std::string& text, std::int64_t line, const std::string& what) {
  try {
    ParseDescription(text, "net.json");
    ADD_FAILURE() << "accepted; expected " << what;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(what));
    EXPECT_EQ(error.line(), line) << error.what();
  }
}

std::string With(const std::string& layers) {
  return "{\"version\": 1, \"name\": \"bad\", \"input\": {\"image\": [8, 8, 3]},\n\"layers\": [\n" +
         layers + "]}";
}

TEST(DescriptionTest, SaysWhichLineAndWhy) {
  ExpectRefused("{\n\n  oops}", 3, "is not JSON");
  ExpectRefused("{\"version\": 1e999}", 0, "is not JSON");
  ExpectRefused("[]", 0, "the network: is not an object");
  ExpectRefused("{\"version\": 2}", 0, "version is 2; this reads 1");
  ExpectRefused(R"({"version": 1, "name": "a", "input": {"image": [8, 8, 3]}})", 0,
                "has no \"layers\"");
  ExpectRefused(R"({"version": 1, "name": "a", "input": {}, "layers": []})", 0, "has none of");
  ExpectRefused(With("{\"kind\": \"relu\"}"), 0, "has no loss");
  ExpectRefused(With("{\"kind\": \"relu\"},\n{\"kind\": \"relux\"}"), 4,
                "layer 1: no kind of layer is called \"relux\"");
  ExpectRefused(With("{\"kind\": \"relu\"},\n\n{\"kind\": \"conv\"}"), 5, "has no \"channels\"");
  ExpectRefused(With("{\"kind\": \"conv\", \"channels\": 4, \"kernel\": 9}"), 3,
                "a kernel of 9x9 with padding 0x0 leaves nothing of it");
  ExpectRefused(With("{\"kind\": \"conv\", \"channels\": -4}"), 3, "\"channels\" is \"-4\"");
  ExpectRefused(With("{\"kind\": \"conv\", \"channels\": 4, \"strid\": 2}"), 3,
                "has \"strid\", which it does not know");
  ExpectRefused(With("{\"kind\": \"add\", \"inputs\": [\"input\", \"b\"]}"), 3,
                "reads \"b\", and no layer before it is called that");
  ExpectRefused(With("{\"kind\": \"conv\", \"channels\": 4, \"initializer\": \"he\"}"), 3,
                "expected \"kaiming\"");
  ExpectRefused(With("{\"kind\": \"relu\", \"input\": 3}"), 3, "3");
  ExpectRefused(With("7"), 0, "layer 0: is not an object");
}

TEST(DescriptionTest, ExamplesBuild) {
  const std::filesystem::path folder =
      std::filesystem::path(PLIMSOLL_DATA_DIR).parent_path() / "examples" / "networks";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const Model model = OpenModel(entry.path());
    NullLibrary library;
    ExpectHonest(Lower(model.build({}), {.batch = model.batch}, &library));
    ++count;
  }
  EXPECT_GE(count, 2);
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

TEST(OneDnnLibraryTest, EveryKindRefusesWhatMakesNoSense) {
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const OpSpec spec{static_cast<OpKind>(kind), {}, {}, {}};
    try {
      Library().Prepare(spec);
      ADD_FAILURE() << Name(spec.kind);
    } catch (const Error& error) {
      EXPECT_TRUE(std::string_view(error.what()).starts_with(Name(spec.kind))) << error.what();
    }
  }
}

TEST(OneDnnLibraryTest, KernelsOutliveTheLibrary) {
  Attributes a;
  a.kernel[0] = a.kernel[1] = 3;
  a.padding[0] = a.padding[1] = 1;
  const Tensor x = Floats({1, 8, 8, 16});
  const Tensor w = Floats({16, 3, 3, 16});
  Kernel kernel = MakeOneDnnLibrary()->Prepare({OpKind::kConvForward, {x, w}, {x}, a});
  Data data = RandomFloats(x, 1);
  Data weights = RandomFloats(w, 2);
  const TestBlock y(static_cast<std::size_t>(x.size_bytes()), {});
  const TestBlock workspace(static_cast<std::size_t>(kernel.workspace_bytes), {});
  std::byte* reads[] = {data.data(), weights.data()};
  std::byte* writes[] = {y.begin(), workspace.begin()};
  kernel.run({.reads = reads, .writes = writes}, {});
  EXPECT_EQ(y.Content(), RunOp({OpKind::kConvForward, {x, w}, {x}, a}, {data, weights})[0]);
}

TEST(OneDnnLibraryTest, TellsAttributesApart) {
  const Tensor x = Floats({4});
  const OpSpec one{OpKind::kFill, {}, {x}, {.scale = 1}};
  const OpSpec two{OpKind::kFill, {}, {x}, {.scale = 2}};
  EXPECT_EQ(As<float>(RunOp(one, {})[0])[3], 1);
  EXPECT_EQ(As<float>(RunOp(two, {})[0])[3], 2);
  EXPECT_EQ(As<float>(RunOp(one, {})[0])[0], 1);
}

TEST(OneDnnLibraryTest, TrafficComputesOneHalfOfMemoryFromTheOther) {
  std::vector<float> memory(1 << 16, 1);
  const auto traffic = MakeHostTraffic(reinterpret_cast<std::byte*>(memory.data()),
                                       static_cast<Bytes>(memory.size() * sizeof(float)));
  traffic(nullptr);
  const auto middle = memory.begin() + (1 << 15);
  EXPECT_TRUE(std::all_of(memory.begin(), middle, [](float x) { return x > 0.49F && x < 0.51F; }));
  EXPECT_TRUE(std::all_of(middle, memory.end(), [](float x) { return x == 1; }));
}

}  // namespace
}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/cost.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/null_library.h"

namespace plimsoll::nn {
namespace {

/// Multiplications and additions of the forward pass of one image.
double ForwardFlops(const char* model, std::int64_t batch = 1) {
  NullLibrary library;
  const Program program = Lower(FindModel(model).build({}), {.batch = batch}, &library);
  double flops = 0;
  for (const ProgramOp& op : program.ops) {
    if (op.spec.kind == OpKind::kConvForward || op.spec.kind == OpKind::kLinearForward) {
      flops += FlopsOf(op.spec);
    }
  }
  return flops;
}

TEST(CostTest, AgreesWithWhatIsKnownOfModels) {
  EXPECT_NEAR(ForwardFlops("resnet50"), 2 * 4.09e9, 0.02e9);
  EXPECT_NEAR(ForwardFlops("vgg16"), 2 * 15.47e9, 0.02e9);
  EXPECT_NEAR(ForwardFlops("alexnet"), 2 * 0.714e9, 0.002e9);
  EXPECT_NEAR(ForwardFlops("resnet50", 8), 8 * ForwardFlops("resnet50"), 1);
}

TEST(CostTest, BackwardOpsCostWhatForwardDoes) {
  const Attributes attributes;
  const Tensor x{{2, 8, 8, 16}};
  const Tensor w{{32, 3, 3, 16}};
  const Tensor y{{2, 8, 8, 32}};
  const double flops = 2.0 * 2 * 64 * 32 * 144;
  EXPECT_EQ(FlopsOf({OpKind::kConvForward, {x, w}, {y}, attributes}), flops);
  EXPECT_EQ(FlopsOf({OpKind::kConvBackwardWeights, {x, y}, {w}, attributes}), flops);
  EXPECT_EQ(FlopsOf({OpKind::kConvBackwardData, {y, w}, {x}, attributes}), flops);
  const Tensor wide{{2, 16, 16, 32}};
  const Tensor up{{32, 2, 2, 16}};
  const double transposed = 2.0 * 2 * 64 * 16 * 32 * 4;
  EXPECT_EQ(FlopsOf({OpKind::kTransposedConvForward, {x, up}, {wide}, attributes}), transposed);
  EXPECT_EQ(FlopsOf({OpKind::kTransposedConvBackwardWeights, {x, wide}, {up}, attributes}),
            transposed);
  EXPECT_EQ(FlopsOf({OpKind::kTransposedConvBackwardData, {wide, up}, {x}, attributes}),
            transposed);
}

TEST(CostTest, TheSlowerOfArithmeticAndMemoryDecides) {
  const MachineSpeed speed{"test", 1e9, 1e9, 10};
  const OpSpec relu{OpKind::kReluForward, {{{1000}}}, {{{1000}}}};
  EXPECT_EQ(ExpectedTime(relu, speed), 10 + 8000);
  const OpSpec linear{OpKind::kLinearForward, {{{10, 1000}}, {{1000, 1000}}}, {{{10, 1000}}}};
  EXPECT_EQ(ExpectedTime(linear, speed), 10 + 20'000'000);
}

TEST(CostTest, AGroupOfUpdatesCostsWhatItsMembersDo) {
  const Tensor a{{1000}};
  const Tensor b{{30}};
  const OpSpec first{OpKind::kAdamWUpdate, {a, a, a, a}, {a, a, a}};
  const OpSpec second{OpKind::kAdamWUpdate, {b, b, b, b}, {b, b, b}};
  const OpSpec both{OpKind::kAdamWUpdate, {a, a, a, a, b, b, b, b}, {a, a, a, b, b, b}};
  EXPECT_EQ(FlopsOf(first), 4000);
  EXPECT_EQ(FlopsOf(both), FlopsOf(first) + FlopsOf(second));
  EXPECT_EQ(BytesMovedBy(both), BytesMovedBy(first) + BytesMovedBy(second));
}

TEST(CostTest, TypesCount) {
  const Tensor full{{1000}};
  const Tensor half{{1000}, ElementType::kBfloat16};
  EXPECT_EQ(2 * BytesMovedBy({OpKind::kGeluForward, {half}, {half}}),
            BytesMovedBy({OpKind::kGeluForward, {full}, {full}}));
}

TEST(CostTest, MachinesHaveNames) {
  EXPECT_EQ(FindMachineSpeed("host").name, "host");
  EXPECT_THROW(FindMachineSpeed("abacus"), Error);
  EXPECT_FALSE(NullLibrary(FindMachineSpeed("host")).fuses_batch_norm());
  EXPECT_TRUE(NullLibrary(FindMachineSpeed("h200-bf16")).fuses_batch_norm());
  EXPECT_GT(NullLibrary(FindMachineSpeed("h200-bf16")).update_group(), 1);
}

}  // namespace
}  // namespace plimsoll::nn

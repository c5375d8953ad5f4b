// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/op.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace plimsoll::nn {
namespace {

TEST(OpTest, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const std::string_view name = Name(static_cast<OpKind>(kind));
    EXPECT_FALSE(name.empty());
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(Name(OpKind::kConvForward), "conv_forward");
  EXPECT_EQ(Name(OpKind::kFill), "fill");
}

TEST(OpTest, MasksTakeABitPerElement) {
  EXPECT_EQ((Tensor{{2, 100}, ElementType::kBit}.size_bytes()), 32);
  EXPECT_EQ((Tensor{{2, 100}}.size_bytes()), 800);
  EXPECT_EQ((Tensor{{3}, ElementType::kByte}.size_bytes()), 3);
}

TEST(OpTest, OnlyBatchNormHasStateOnTheSide) {
  EXPECT_EQ(TraitsOf(OpKind::kBatchNormForward).state_reads, 0b11000U);
  EXPECT_EQ(TraitsOf(OpKind::kConvForward).state_reads, 0U);
  EXPECT_TRUE(TraitsOf(OpKind::kDropoutForward).random);
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/op.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "plimsoll/nn/bfloat16.h"

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
  EXPECT_EQ(TraitsOf(OpKind::kBatchNormStatistics).state_reads, 0b110U);
  EXPECT_EQ(TraitsOf(OpKind::kBatchNormReluForward).state_reads, 0U);
  EXPECT_EQ(TraitsOf(OpKind::kConvForward).state_reads, 0U);
  EXPECT_TRUE(TraitsOf(OpKind::kDropoutForward).random);
}

TEST(OpTest, RoundsToTheNearestBfloat16) {
  EXPECT_EQ(ToBfloat16(1.0F), 0x3f80);
  EXPECT_EQ(ToBfloat16(-2.5F), 0xc020);
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f807fffU)), 0x3f80) << "down";
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f808001U)), 0x3f81) << "up";
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f808000U)), 0x3f80) << "to even";
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x3f818000U)), 0x3f82) << "to even";
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x7f7fffffU)), 0x7f80) << "beyond the largest";
  EXPECT_EQ(ToBfloat16(std::bit_cast<float>(0x80000001U)), 0x8000) << "minus almost nothing";
  EXPECT_TRUE(std::isnan(FromBfloat16(ToBfloat16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(FromBfloat16(ToBfloat16(std::bit_cast<float>(0xffffffffU)))));
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    ASSERT_EQ(ToBfloat16(FromBfloat16(half)), half);
  }
}

}  // namespace
}  // namespace plimsoll::nn

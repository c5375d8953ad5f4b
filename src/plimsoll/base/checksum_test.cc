// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/checksum.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll {
namespace {

TEST(ChecksumTest, IsXxh3) {
  EXPECT_EQ(ChecksumOf(""), 0x2d06800538d394c2U) << "the published value for no bytes";
  EXPECT_EQ(Checksum().digest(), ChecksumOf(""));
}

TEST(ChecksumTest, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * i);
  for (const std::size_t step : {1U, 7U, 240U, 4096U}) {
    Checksum sum;
    for (std::size_t i = 0; i < text.size(); i += step) sum.Add(text.substr(i, step));
    EXPECT_EQ(sum.digest(), ChecksumOf(text)) << step;
  }
  EXPECT_NE(ChecksumOf(text), ChecksumOf(text + "1"));
}

}  // namespace
}  // namespace plimsoll

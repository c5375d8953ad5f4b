// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/bytes.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(BytesTest, AlignsUpAndLeavesMultiplesAlone) {
  EXPECT_EQ(AlignUp(0, 512), 0);
  EXPECT_EQ(AlignUp(1, 512), 512);
  EXPECT_EQ(AlignUp(512, 512), 512);
  EXPECT_EQ(AlignUp(513, 512), 1024);
  EXPECT_EQ(AlignUp(7, 1), 7);
}

TEST(BytesTest, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(Bytes{5} << 30), "5.00 GiB");
  EXPECT_EQ(FormatBytes(-2048), "-2.00 KiB");
}

TEST(BytesTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(ParseBytes("1048576"), 1048576);
  EXPECT_EQ(ParseBytes("512MiB"), Bytes{512} << 20);
  EXPECT_EQ(ParseBytes("1.5 GiB"), (Bytes{3} << 30) / 2);
  EXPECT_EQ(ParseBytes("2GB"), 2'000'000'000);
  EXPECT_EQ(ParseBytes("64K"), 65536);
  EXPECT_EQ(ParseBytes(" 7 B "), 7);
  EXPECT_EQ(ParseBytes("0"), 0);
}

TEST(BytesTest, ReadsLargeIntegersExactly) {
  EXPECT_EQ(ParseBytes("4611686018427387903"), kMaxBytes - 1);
}

TEST(BytesTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", " ", "-1", "+1", "12 parsecs", "GiB", "1e400", "nan", "inf", "1,5",
                           "4611686018427387904", "9223372036854775808", "5000000TiB", "0x10"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace plimsoll

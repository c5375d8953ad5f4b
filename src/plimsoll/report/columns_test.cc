// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/columns.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <limits>

namespace plimsoll::report {
namespace {

std::string Column(const std::vector<std::int64_t>& values) {
  std::string out;
  AppendColumn(values, &out);
  return out;
}

TEST(ColumnsTest, DifferencesTakeAsFewBytesAsTheyNeed) {
  EXPECT_EQ(Column({}), "");
  EXPECT_EQ(Column({5, 6, 6, 4}), std::string("\x0a\x02\x00\x03", 4));
  EXPECT_EQ(Column({64}), std::string("\x80\x01", 2));
  EXPECT_EQ(Column({std::numeric_limits<std::int64_t>::max()}).size(), 10U);
}

TEST(ColumnsTest, WhatIsDeflatedInflates) {
  const std::string text(100000, 'x');
  const std::string small = Deflate(text);
  EXPECT_LT(small.size(), 1000U);
  std::string back(text.size(), '\0');
  uLongf size = back.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(back.data()), &size,
                       reinterpret_cast<const Bytef*>(small.data()), small.size()),
            Z_OK);
  EXPECT_EQ(back, text);
}

TEST(ColumnsTest, Base64IsThatOfRfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("\xff\xfe"), "//4=");
}

TEST(ColumnsTest, NothingEndsAScriptOrBeginsATag) {
  EXPECT_EQ(EscapeForScript("\"</script><!--\""), "\"\\u003c/script>\\u003c!--\"");
  EXPECT_EQ(EscapeHtml("<b a=\"x\">&\x07"), "&lt;b a=&quot;x&quot;&gt;&amp;?");
}

}  // namespace
}  // namespace plimsoll::report

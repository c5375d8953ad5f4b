// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace plimsoll {
namespace {

TEST(EscapeTest, LeavesVisibleTextAsItIs) {
  EXPECT_EQ(Escape("aten::add_.Tensor"), "aten::add_.Tensor");
  EXPECT_EQ(Escape("a b"), "a%20b");
  EXPECT_EQ(Escape("100%"), "100%25");
  EXPECT_EQ(Escape(std::string_view("\0\n\r\x7f", 4)), "%00%0A%0D%7F");
  EXPECT_EQ(Escape("\xc3\xa4"), "%C3%A4");
  EXPECT_EQ(Escape(""), "%");
}

TEST(EscapeTest, RefusesWhatIsNotEscaped) {
  for (const char* word : {"", "a b", "%2", "%2g", "%%", "%0a", "a%", "\xc3\xa4", "\n", "%-1"}) {
    EXPECT_EQ(Unescape(word), std::nullopt) << word;
  }
}

RC_GTEST_PROP(EscapeTest, EveryTextSurvives, (const std::string& text)) {
  const std::string word = Escape(text);
  RC_ASSERT(Unescape(word) == text);
  RC_ASSERT(std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c <= '~'; }));
}

}  // namespace
}  // namespace plimsoll

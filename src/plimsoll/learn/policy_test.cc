// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/learn/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "plimsoll/base/checksum.h"
#include "plimsoll/base/error.h"

namespace plimsoll::learn {
namespace {

/// Returns why a text is no policy of width 4; nothing if it is one.
std::string ReasonAgainst(const std::string& text) {
  try {
    ParsePolicy(text, "weights", 4);
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "weights");
    return error.what();
  }
  return "";
}

TEST(PolicyTest, WhatIsReadHasTheBitsThatWereWritten) {
  const Policy policy = MakeRandomPolicy(kWidth, 5);
  const std::string path = testing::TempDir() + "policy_test." + std::to_string(getpid());
  for (const char* ending : {"", ".gz"}) {
    WritePolicy(policy, path + ending);
    EXPECT_EQ(ReadPolicy(path + ending), policy);
    std::filesystem::remove(path + ending);
  }
}

TEST(PolicyTest, RefusesWeightsOfAnotherShape) {
  const std::string text = FormatPolicy(MakeRandomPolicy(8, 1));
  EXPECT_THAT(ReasonAgainst(text), testing::HasSubstr("another shape"));
  EXPECT_THAT(ReasonAgainst(text), testing::HasSubstr("train anew"));
}

TEST(PolicyTest, RefusesEveryTruncation) {
  const std::string text = FormatPolicy(MakeRandomPolicy(4, 1));
  ASSERT_EQ(ReasonAgainst(text), "");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(ReasonAgainst(text.substr(0, size)), "") << size << " of " << text.size();
  }
}

TEST(PolicyTest, RefusesEveryChangedBit) {
  const std::string text = FormatPolicy(MakeRandomPolicy(4, 1));
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(ReasonAgainst(changed), "") << "bit " << bit;
  }
}

TEST(PolicyTest, RefusesWhatIsNoPolicy) {
  EXPECT_THAT(ReasonAgainst("plan 2\n"), testing::HasSubstr("--weights-out"));
  EXPECT_THAT(ReasonAgainst(""), testing::HasSubstr("ends early"));
  std::string text = FormatPolicy(MakeRandomPolicy(4, 1));
  text.resize(text.rfind("checksum "));
  // Not a number, with a checksum that is right.
  text.replace(text.rfind(' ') + 1, 8, "7fc00000");
  char sum[32];
  std::snprintf(sum, sizeof sum, "checksum %016llx\n",
                static_cast<unsigned long long>(ChecksumOf(text)));
  EXPECT_THAT(ReasonAgainst(text + sum), testing::HasSubstr("finite"));
}

}  // namespace
}  // namespace plimsoll::learn

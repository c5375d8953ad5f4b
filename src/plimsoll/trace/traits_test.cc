// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/traits.h"

#include <gtest/gtest.h>

#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::trace {
namespace {

/// Expects that a trace with these traits is refused at a line, with some words in the message.
void ExpectRefused(const std::string& traits, std::int64_t line, const std::string& words,
                   const std::string& body = "") {
  try {
    ParseTrace("trace 1\n{\"traits\": " + traits + "}\n" + body, "test.trace");
    ADD_FAILURE() << "accepted: " << traits;
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "test.trace");
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(TraitsTest, ReadsThemByName) {
  const TraitsByName traits = ReadTraits(
      R"({"traits": {"my_norm": {"replayable": true, "state_reads": [0, 31]},
                     "my_dropout": {"random": true, "replayable": true},
                     "relu": {"replayable": false}, "plain": {}}})",
      "test", 2);
  ASSERT_EQ(traits.size(), 4U);
  EXPECT_EQ(traits.at("my_norm"), (OpTraits{true, false, 0x80000001}));
  EXPECT_EQ(traits.at("my_dropout"), (OpTraits{true, true, 0}));
  EXPECT_EQ(traits.at("relu"), OpTraits());
  EXPECT_EQ(traits.at("plain"), OpTraits());
}

TEST(TraitsTest, NothingIsSaidWithoutTheKey) {
  EXPECT_TRUE(ReadTraits("", "test", 2).empty());
  EXPECT_TRUE(ReadTraits("{}", "test", 2).empty());
  EXPECT_TRUE(ReadTraits(R"({"model": "traits"})", "test", 2).empty());
}

TEST(TraitsTest, RefusesWhatIsMalformed) {
  ExpectRefused("[]", 2, "expected an object with an entry for each op name");
  ExpectRefused("null", 2, "expected an object with an entry for each op name");
  ExpectRefused(R"({"a": true})", 2, "the traits of the op \"a\" are \"true\"; expected an object");
  ExpectRefused(R"({"a": {"replayable": 1}})", 2, "expected true or false");
  ExpectRefused(R"({"a": {"random": "yes"}})", 2, "expected true or false");
  ExpectRefused(R"({"a": {"replayble": true}})", 2, "have the key \"replayble\"");
  ExpectRefused(R"({"a": {"state_reads": 3}})", 2, "expected a list of operands");
  for (const char* operand :
       {"32", "-1", "1.5", "\"3\"", "null", "1e400", "99999999999999999999"}) {
    ExpectRefused(std::string(R"({"a": {"state_reads": [)") + operand + "]}}", 2, "");
  }
  ExpectRefused(R"({"a": {"state_reads": [32]}})", 2, "whole numbers from 0 to 31");
}

TEST(TraitsTest, RefusesContradictions) {
  ExpectRefused(R"({"a": {"random": true}})", 2, "\"random\" but not \"replayable\"");
  ExpectRefused(R"({"a": {"random": true, "replayable": false}})", 2, "but not \"replayable\"");
  ExpectRefused(R"({"a": {"replayable": true, "state_reads": [3, 3]}})", 2, "operand 3 twice");
  ExpectRefused(R"({"a": {}, "b": {}, "a": {"replayable": true}})", 2, "\"a\" is said twice");
  ExpectRefused(R"({"a": {"replayable": true, "replayable": false}})", 2,
                "\"replayable\" is said twice");
  ExpectRefused(R"({}, "traits": {"a": {}})", 2, "\"traits\" is said twice");
}

TEST(TraitsTest, RefusesStateThatAnOpDoesNotRead) {
  const std::string traits = R"({"norm": {"replayable": true, "state_reads": [1]}})";
  const std::string body = "p 0 8\np 1 8\nx 1.00 F norm 0,1 1\nx 1.00 F other - 1\n";
  EXPECT_NO_THROW(ParseTrace("trace 1\n{\"traits\": " + traits + "}\n" + body, "test.trace"));
  ExpectRefused(traits, 7,
                "\"norm\" reads 1 variables, but its traits in the header name operand 1",
                body + "x 1.00 F norm 0 1\n");
}

TEST(TraitsTest, AreWrittenAsTheyWereRead) {
  const std::string text =
      "trace 1\n{\"traits\":  {\"norm\": {\"state_reads\": [1],  \"replayable\": true}}}\n"
      "p 0 8\np 1 8\nx 1.00 F norm 0,1 1\n";
  EXPECT_EQ(FormatTrace(ParseTrace(text, "test.trace")), text);
}

}  // namespace
}  // namespace plimsoll::trace

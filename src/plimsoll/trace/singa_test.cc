// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/singa.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::trace {
namespace {

/// A file that goes when the test goes on, by whichever way.
struct TemporaryFile {
  // The process in the name keeps tests that run side by side apart.
  std::string path = testing::TempDir() + "/singa_test_" + std::to_string(::getpid());
  ~TemporaryFile() { std::filesystem::remove(path); }
};

Trace Import(const std::string& log) {
  const TemporaryFile file;
  WriteFileWhole(file.path, log);
  return ReadSingaLog(file.path);
}

void ExpectRefused(const std::string& log, std::int64_t line, const std::string& word) {
  try {
    Import(log);
    ADD_FAILURE() << "accepted: " << log;
  } catch (const InputError& error) {
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(SingaTest, MakesEveryMallocAVariable) {
  const Trace trace = Import(
      "Malloc 0xa0 100 1000\nMutable 0xa0 100 1010\nRead 0xb0 8 1015\nFree 0xa0 100 1020\n"
      "Malloc 0xa0 300 1030\nMutable 0xa0 300 1040\nRead 0xb0 8 1045\nFree 0xa0 300 1050\n");
  ASSERT_EQ(trace.variables.size(), 3u);
  EXPECT_EQ(trace.variables[1].size_bytes, 100);
  EXPECT_EQ(trace.variables[2].size_bytes, 300);
  EXPECT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.writes(trace.ops[1])[0], 2);
}

TEST(SingaTest, PutsWhatWasNeverAllocatedInFront) {
  const Trace trace = Import(
      "Malloc 0xa0 100 1000\nRead 0xb0 8 1010\nRead 0xb0 16 1020\nMutable 0xa0 100 1030\n"
      "Free 0xb0 16 1040\n");
  ASSERT_EQ(trace.variables.size(), 2u);
  EXPECT_TRUE(trace.variables[0].preexisting);
  EXPECT_EQ(trace.variables[0].size_bytes, 16);
  EXPECT_FALSE(trace.variables[1].preexisting);
  ASSERT_EQ(trace.events.size(), 3u);
  EXPECT_EQ(trace.events[0].index, 1);
  EXPECT_EQ(trace.events[2].kind, EventKind::kFree);
  EXPECT_EQ(trace.events[2].index, 0);
  EXPECT_EQ(trace.reads(trace.ops[0])[0], 0);
  EXPECT_EQ(trace.writes(trace.ops[0])[0], 1);
}

TEST(SingaTest, GathersTouchesIntoOneOp) {
  const Trace trace = Import(
      "Read 0xa 8 100\nMutable 0xb 8 110\nLayer 0xa 8 115\nMutable 0xb 8 120\nRead 0xc 8 130\n"
      "Read 0xa 8 140\nLayer 0xa 8 170\nMalloc 0xd 8 190\n");
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.ops[0].read_count, 2);
  EXPECT_EQ(trace.ops[0].write_count, 1);
  EXPECT_EQ(trace.op_names, (std::vector<std::string>{"exec"}));
  EXPECT_EQ(trace.ops[0].duration_ns, 70);  // Up to the Layer line.
}

TEST(SingaTest, BeginsAnOpWhereAResultIsRead) {
  const Trace trace =
      Import("Read 0xa 8 100\nMutable 0xb 8 110\nRead 0xb 8 120\nMutable 0xb 8 150\n");
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].duration_ns, 20);
  EXPECT_EQ(trace.ops[1].duration_ns, 30);
  EXPECT_EQ(trace.reads(trace.ops[1])[0], 1);
  EXPECT_EQ(trace.writes(trace.ops[1])[0], 1);
}

TEST(SingaTest, TakesAMutableRightBeforeAFreeAsPartOfIt) {
  const Trace trace = Import(
      "Malloc 0xa 8 100\nMutable 0xa 8 110\nRead 0xb 8 120\nMutable 0xa 8 150\nFree 0xa 8 160\n"
      "Read 0xb 8 170\nMutable 0xb 8 180\nMutable 0xc 8 190\nFree 0xc 8 195\n");
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].write_count, 1);
  EXPECT_EQ(trace.ops[0].duration_ns, 40);  // Up to the Mutable.
  ASSERT_EQ(trace.writes(trace.ops[1]).size(), 1u);
  EXPECT_EQ(trace.writes(trace.ops[1])[0], trace.reads(trace.ops[1])[0]);
  EXPECT_EQ(trace.ops[1].duration_ns, 20);
}

TEST(SingaTest, CountsAMutableBeforeTheFreeOfAnotherBlockAndAtTheEnd) {
  const Trace trace =
      Import("Malloc 0xa 8 100\nMutable 0xb 8 110\nFree 0xa 8 120\nMutable 0xb 8 130\n");
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].duration_ns, 10);
  EXPECT_EQ(trace.ops[1].write_count, 1);
}

TEST(SingaTest, IgnoresBlocksThatOnlyALayerNames) {
  const Trace trace = Import("Layer 0xa 8 100\nRead 0xb 8 110\nLayer 0xc 8 120\n");
  EXPECT_EQ(trace.variables.size(), 1u);
}

TEST(SingaTest, GivesATraceThatCanBeWrittenAndRead) {
  const std::string text = FormatTrace(Import(
      "Malloc 0xa0 100 1000\nRead 0xb0 8 1010\nMutable 0xa0 100 1020\nFree 0xa0 100 1031\n"));
  EXPECT_EQ(FormatTrace(ParseTrace(text, "imported")), text);
}

TEST(SingaTest, RefusesAnEmptyLog) { ExpectRefused("", 0, "empty"); }

TEST(SingaTest, RefusesMalformedLines) {
  ExpectRefused("Malloc 0xa 8 1\nMalloc\n", 2, "malformed");
  ExpectRefused("Malloc 1234 8 1\n", 1, "malformed");
  ExpectRefused("Malloc 0xzz 8 1\n", 1, "pointer");
  ExpectRefused("Malloc 0xa -8 1\n", 1, "size");
  ExpectRefused("Malloc 0xa 8 soon\n", 1, "moment");
  ExpectRefused("Malloc 0xa 8 1 1\n", 1, "moment");
}

TEST(SingaTest, RefusesAnUnknownEvent) { ExpectRefused("Realloc 0xa 8 1\n", 1, "unknown event"); }

TEST(SingaTest, RefusesALogThatIsCutOff) {
  ExpectRefused("Malloc 0xa 8 1\nFree 0xa 8", 2, "no newline");
}

TEST(SingaTest, RefusesMomentsThatGoBack) {
  ExpectRefused("Read 0xa 8 10\nRead 0xa 8 9\n", 2, "before");
}

TEST(SingaTest, RefusesMomentsThatAreAbsurdlyFarApart) {
  ExpectRefused("Read 0xa 8 0\nRead 0xa 8 2000000000000000000\n", 2, "31 years");
  ExpectRefused("Read 0xa 8 0\nMalloc 0xb 8 2000000000000000\n", 2, "eleven days");
}

TEST(SingaTest, RefusesAMallocOfWhatIsAlive) {
  ExpectRefused("Malloc 0xa 8 1\nMalloc 0xa 8 2\n", 2, "still alive");
  ExpectRefused("Read 0xa 8 1\nMalloc 0xa 8 2\n", 2, "still alive");
}

TEST(SingaTest, RefusesAFreeOfAnUnknownPointer) {
  ExpectRefused("Malloc 0xa 8 1\nFree 0xb 8 2\n", 2, "never allocated");
}

TEST(SingaTest, RefusesADoubleFree) {
  ExpectRefused("Malloc 0xa 8 1\nFree 0xa 8 2\nFree 0xa 8 3\n", 3, "freed before");
}

TEST(SingaTest, RefusesATouchOfWhatWasFreed) {
  ExpectRefused("Malloc 0xa 8 1\nFree 0xa 8 2\nRead 0xa 8 3\n", 3, "freed before");
}

TEST(SingaTest, RefusesSizesThatContradictTheMalloc) {
  ExpectRefused("Malloc 0xa 8 1\nRead 0xa 9 2\n", 2, "allocated");
  ExpectRefused("Malloc 0xa 8 1\nFree 0xa 7 2\n", 2, "where there are 8");
}

TEST(SingaTest, RefusesSizesThatOverflow) {
  const std::string half = " 2305843009213693952 1\n";
  ExpectRefused("Malloc 0xa" + half + "Malloc 0xb" + half, 2, "add up");
}

}  // namespace
}  // namespace plimsoll::trace

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"

namespace plimsoll::trace {
namespace {

const std::string kHeader = "trace 1\n{}\n";

/// Expects that a text is refused at a line, with a word in the message.
void ExpectRefused(const std::string& text, std::int64_t line, const std::string& word) {
  try {
    ParseTrace(text, "test.trace");
    ADD_FAILURE() << "accepted: " << text;
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "test.trace");
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

/// The same for lines after the header; `line` counts from the first of them.
void ExpectBodyRefused(const std::string& body, std::int64_t line, const std::string& word) {
  ExpectRefused(kHeader + body, line + 2, word);
}

TEST(ReaderTest, ReadsEveryKindOfLine) {
  const Trace trace = ParseTrace(
      "trace 1\n{\"model\": \"tiny\"}\n"
      "p 0 4096\np 9 0\ni 0\nm 7 65536\nx 12.5 F conv 0,9 7\nx 3 B add_ 7,7 7\nf 7\ni 1\n"
      "x 0.004 U conv - -\n",
      "test.trace");
  EXPECT_EQ(trace.metadata, "{\"model\": \"tiny\"}");
  ASSERT_EQ(trace.variables.size(), 3u);
  EXPECT_EQ(trace.variables[0].id, 0);
  EXPECT_EQ(trace.variables[0].size_bytes, 4096);
  EXPECT_TRUE(trace.variables[1].preexisting);
  EXPECT_EQ(trace.variables[2].id, 7);
  EXPECT_FALSE(trace.variables[2].preexisting);
  EXPECT_EQ(trace.op_names, (std::vector<std::string>{"conv", "add_"}));
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.ops[0].duration_ns, 12500);
  EXPECT_EQ(trace.ops[1].duration_ns, 3000);
  EXPECT_EQ(trace.ops[2].duration_ns, 4);
  EXPECT_EQ(trace.ops[1].phase, Phase::kBackward);
  EXPECT_EQ(trace.ops[2].phase, Phase::kUpdate);
  EXPECT_EQ(trace.ops[2].name, 0);
  const auto reads = trace.reads(trace.ops[0]);
  EXPECT_EQ(std::vector<VariableIndex>(reads.begin(), reads.end()),
            (std::vector<VariableIndex>{0, 1}));
  EXPECT_EQ(trace.writes(trace.ops[0]).size(), 1u);
  EXPECT_EQ(trace.writes(trace.ops[0])[0], 2);
  EXPECT_TRUE(trace.reads(trace.ops[2]).empty());
  ASSERT_EQ(trace.events.size(), 5u);
  EXPECT_EQ(trace.events[0].kind, EventKind::kMalloc);
  EXPECT_EQ(trace.events[3].kind, EventKind::kFree);
  EXPECT_EQ(trace.events[3].index, 2);
  EXPECT_EQ(trace.iteration_marks, (std::vector<EventIndex>{0, 4}));
}

TEST(ReaderTest, ReadsARecordedTrace) {
  const Trace trace = ReadTrace(PLIMSOLL_DATA_DIR "/traces/alexnet_b256.trace.gz");
  EXPECT_EQ(trace.ops.size(), 315u);
  EXPECT_EQ(trace.variables.size(), 274u);
  EXPECT_EQ(trace.events.size(), 795u);
  EXPECT_EQ(trace.iteration_marks.size(), 3u);
}

TEST(ReaderTest, ReadsEveryRecordedTrace) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_DATA_DIR "/traces")) {
    EXPECT_FALSE(ReadTrace(entry.path().string()).ops.empty()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 10);
}

TEST(ReaderTest, AcceptsCarriageReturnsAndATraceWithoutEvents) {
  EXPECT_TRUE(ParseTrace("trace 1\r\n{}\r\n", "test.trace").events.empty());
}

TEST(ReaderTest, AcceptsHugeNumbersOfVariablesWithoutHugeMemory) {
  const Trace trace = ParseTrace(kHeader + "m 9223372036854775807 1\nm 5000 2\nm 1 3\n" +
                                     "x 1 F op 9223372036854775807,5000 1\nf 5000\n",
                                 "test.trace");
  EXPECT_EQ(trace.variables[0].id, 9223372036854775807);
  EXPECT_EQ(trace.reads(trace.ops[0])[1], 1);
}

TEST(ReaderTest, FindsAVariableAfterItsNumberHasBecomeOrdinary) {
  // 5000 is far off at first; once there are many variables it would be stored with the others.
  std::string body = "m 5000 1\n";
  for (int i = 0; i < 2000; ++i) body += "m " + std::to_string(3000 + i) + " 1\n";
  EXPECT_EQ(ParseTrace(kHeader + body + "f 5000\n", "test.trace").events.back().index, 0);
  ExpectBodyRefused(body + "m 5000 1\n", 2002, "twice");
}

TEST(ReaderTest, RefusesAFileThatDoesNotExist) {
  EXPECT_THROW(ReadTrace(testing::TempDir() + "/no_such.trace"), InputError);
}

TEST(ReaderTest, RefusesADamagedGzipFile) {
  const std::string path =
      testing::TempDir() + "/damaged_" + std::to_string(::getpid()) + ".trace.gz";
  std::ifstream whole(PLIMSOLL_DATA_DIR "/traces/alexnet_b256.trace.gz", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)),
                          std::istreambuf_iterator<char>());
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THROW(ReadTrace(path), InputError);
  std::filesystem::remove(path);
}

TEST(ReaderTest, NamesTheFileThatItReads) {
  const std::string path =
      testing::TempDir() + "/double_free_" + std::to_string(::getpid()) + ".trace";
  WriteFileWhole(path, kHeader + "m 1 1\nf 1\nf 1\n");
  try {
    ReadTrace(path);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), path);
    EXPECT_EQ(error.line(), 5);
  }
  std::filesystem::remove(path);
}

TEST(ReaderTest, RefusesAnEmptyFile) { ExpectRefused("", 0, "empty"); }

TEST(ReaderTest, RefusesAWrongFirstLine) { ExpectRefused("hello\n{}\n", 1, "not a trace"); }

TEST(ReaderTest, RefusesAnUnsupportedVersion) { ExpectRefused("trace 2\n{}\n", 1, "version"); }

TEST(ReaderTest, RefusesAFileOfOneLine) { ExpectRefused("trace 1\n", 1, "second line"); }

TEST(ReaderTest, RefusesASecondLineThatIsNoJsonObject) {
  ExpectRefused("trace 1\nm 1 1\n", 2, "JSON");
  ExpectRefused("trace 1\n[1]\n", 2, "JSON");
  ExpectRefused("trace 1\n\n", 2, "JSON");
}

TEST(ReaderTest, RefusesAnUnknownEvent) { ExpectBodyRefused("m 1 1\nq 1 1\n", 2, "unknown event"); }

TEST(ReaderTest, RefusesABlankLine) { ExpectBodyRefused("m 1 1\n\nf 1\n", 2, "blank"); }

TEST(ReaderTest, RefusesAWrongNumberOfFields) {
  ExpectBodyRefused("m 1\n", 1, "fields");
  ExpectBodyRefused("m 1 1 1\n", 1, "fields");
  ExpectBodyRefused("m 1  1\n", 1, "fields");
  ExpectBodyRefused("p 1\n", 1, "fields");
  ExpectBodyRefused("m 1 1\nf 1 \n", 2, "fields");
  ExpectBodyRefused("i\n", 1, "fields");
  ExpectBodyRefused("x 1 F op -\n", 1, "fields");
  ExpectBodyRefused("x 1 F an op - - -\n", 1, "fields");
}

TEST(ReaderTest, RefusesAVariableThatIsNoNumber) {
  ExpectBodyRefused("m -1 1\n", 1, "non-negative");
  ExpectBodyRefused("m 1.5 1\n", 1, "non-negative");
  ExpectBodyRefused("f weight\n", 1, "non-negative");
  ExpectBodyRefused("p 99999999999999999999 1\n", 1, "non-negative");
  ExpectBodyRefused("m 1 1\nx 1 F op 1,,1 -\n", 2, "non-negative");
  ExpectBodyRefused("m 1 1\nx 1 F op 1, -\n", 2, "non-negative");
}

TEST(ReaderTest, RefusesAVariableDeclaredTwice) {
  ExpectBodyRefused("p 1 1\np 1 1\n", 2, "twice");
  ExpectBodyRefused("p 1 1\nm 1 1\n", 2, "twice");
  ExpectBodyRefused("m 1 1\nf 1\nm 1 1\n", 3, "twice");
}

TEST(ReaderTest, RefusesAPreexistingVariableAfterTheFirstEvent) {
  ExpectBodyRefused("m 1 1\np 2 1\n", 2, "after the first event");
  ExpectBodyRefused("i 0\np 2 1\n", 2, "after the first event");
}

TEST(ReaderTest, RefusesADoubleFree) { ExpectBodyRefused("m 1 1\nf 1\nf 1\n", 3, "freed before"); }

TEST(ReaderTest, RefusesAFreeOfWhatWasNeverAllocated) {
  ExpectBodyRefused("f 1\n", 1, "never allocated");
}

TEST(ReaderTest, RefusesAReadOfWhatIsNotAlive) {
  ExpectBodyRefused("x 1 F op 1 -\n", 1, "reads variable 1");
  ExpectBodyRefused("m 1 1\nf 1\nx 1 F op 1 -\n", 3, "reads variable 1");
}

TEST(ReaderTest, RefusesAWriteOfWhatIsNotAlive) {
  ExpectBodyRefused("x 1 F op - 1\n", 1, "writes variable 1");
  ExpectBodyRefused("m 1 1\nf 1\nx 1 F op - 1\n", 3, "writes variable 1");
}

TEST(ReaderTest, RefusesBadSizes) {
  ExpectBodyRefused("m 1 -1\n", 1, "size");
  ExpectBodyRefused("m 1 1e3\n", 1, "size");
  ExpectBodyRefused("m 1 4611686018427387904\n", 1, "size");
  ExpectBodyRefused("p 1 99999999999999999999\n", 1, "size");
}

TEST(ReaderTest, RefusesLiveSizesThatOverflow) {
  const std::string half = "2305843009213693952\n";
  ExpectBodyRefused("p 1 " + half + "m 2 " + half, 2, "add up");
  EXPECT_NO_THROW(ParseTrace(kHeader + "m 1 " + half + "f 1\nm 2 " + half, "test.trace"));
}

TEST(ReaderTest, RefusesBadDurations) {
  for (const std::string duration :
       {"-1", "nan", "inf", "fast", "1.5us", "", "1e13", "1000000000001"}) {
    ExpectBodyRefused("x " + duration + " F op - -\n", 1, "duration");
  }
}

TEST(ReaderTest, RefusesDurationsThatAddUpToAnAbsurdity) {
  std::string body;
  for (int i = 0; i < 1000; ++i) body += "x 1e12 F op - -\n";
  ExpectBodyRefused(body, 1000, "add up");
}

TEST(ReaderTest, RefusesAnUnknownPhase) { ExpectBodyRefused("x 1 G op - -\n", 1, "phase"); }

TEST(ReaderTest, RefusesAnEmptyOperandList) {
  ExpectBodyRefused("x 1 F op  -\n", 1, "empty");
  ExpectBodyRefused("x 1 F op - \n", 1, "empty");
}

TEST(ReaderTest, RefusesAnUnprintableOpName) {
  ExpectBodyRefused("x 1 F  - -\n", 1, "op name");
  ExpectBodyRefused("x 1 F a\tb - -\n", 1, "op name");
}

TEST(ReaderTest, RefusesALastLineWithoutANewline) {
  ExpectBodyRefused("m 1 1024\nm 2 10", 2, "no newline");
}

TEST(ReaderTest, RefusesFewerOpsThanTheHeaderPromises) {
  ExpectRefused("trace 1\n{\"op_count\": 2}\nx 1 F op - -\n", 3, "promises 2");
  EXPECT_NO_THROW(ParseTrace("trace 1\n{\"op_count\": \"many\"}\n", "test.trace"));
}

TEST(ReaderTest, RefusesMarksThatDoNotCountFromZero) {
  ExpectBodyRefused("i 1\n", 1, "mark");
  ExpectBodyRefused("i 0\ni 0\n", 2, "mark");
  ExpectBodyRefused("i first\n", 1, "mark");
}

TEST(ReaderTest, RefusesALineBeyondAllMeasure) {
  ExpectBodyRefused("m 1 1\n" + std::string(LineReader::kMaxLineBytes + 1, 'x') + "\n", 2, "long");
}

TEST(ReaderTest, RefusesAHeaderThatIsNestedTooDeeply) {
  const std::string deep = "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  try {
    ParseTrace("trace 1\n" + deep + "\n", "deep");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.line(), 2);
    EXPECT_NE(std::string(error.what()).find("nested"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace plimsoll::trace

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"

namespace plimsoll::place {
namespace {

const std::string kHeader = "id,lower,upper,size\n";

Problem Parse(const std::string& text) { return ParseCsv(text, "test.csv"); }

/// Expects that a text is refused at a line, with a word in the message.
void ExpectRefused(const std::string& text, std::int64_t line, const std::string& word) {
  try {
    Parse(text);
    ADD_FAILURE() << "accepted: " << text;
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "test.csv");
    EXPECT_EQ(error.line(), line) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

Buffer ArbitraryBuffer(std::size_t index) {
  Buffer buffer;
  buffer.id = "b" + std::to_string(index);
  const Time kFarTime = Time{1} << 60;
  // Ascending moments: the ends of the lifetime, and those of gaps in between.
  Time now = *rc::gen::inRange<Time>(-kFarTime, kFarTime);
  buffer.lifetime.lower = now;
  const int gap_count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < gap_count; ++i) {
    const Time lower = now + *rc::gen::inRange<Time>(0, 100);
    now = lower + *rc::gen::inRange<Time>(1, 100);
    buffer.gaps.push_back({lower, now});
  }
  buffer.lifetime.upper = now + *rc::gen::inRange<Time>(1, 100);
  buffer.size_bytes = *rc::gen::inRange<Bytes>(0, Bytes{1} << 50);
  buffer.alignment = Bytes{1} << *rc::gen::inRange(0, 12);
  if (*rc::gen::arbitrary<bool>()) {
    buffer.fixed_offset = *rc::gen::inRange<Bytes>(0, Bytes{1} << 40) * buffer.alignment;
  }
  return buffer;
}

void AssertSame(const Problem& a, const Problem& b) {
  RC_ASSERT(a.buffers.size() == b.buffers.size());
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    RC_ASSERT(a.buffers[i].id == b.buffers[i].id);
    RC_ASSERT(a.buffers[i].lifetime == b.buffers[i].lifetime);
    RC_ASSERT(a.buffers[i].size_bytes == b.buffers[i].size_bytes);
    RC_ASSERT(a.buffers[i].alignment == b.buffers[i].alignment);
    RC_ASSERT(a.buffers[i].fixed_offset == b.buffers[i].fixed_offset);
    RC_ASSERT(a.buffers[i].gaps == b.buffers[i].gaps);
  }
}

TEST(CsvTest, ReadsTheFourRequiredColumns) {
  const Problem problem = Parse(kHeader + "a,0,5,100\nb,-3,4,0\n");
  ASSERT_EQ(problem.buffers.size(), 2u);
  EXPECT_EQ(problem.buffers[0].id, "a");
  EXPECT_EQ(problem.buffers[0].lifetime, (Interval{0, 5}));
  EXPECT_EQ(problem.buffers[0].size_bytes, 100);
  EXPECT_EQ(problem.buffers[0].alignment, 1);
  EXPECT_FALSE(problem.buffers[0].fixed_offset);
  EXPECT_EQ(problem.buffers[1].lifetime, (Interval{-3, 4}));
}

TEST(CsvTest, ReadsOptionalColumnsInAnyOrder) {
  const Problem problem =
      Parse("offset,size,gaps,upper,alignment,id,lower\n512,64,1-2 4-6,9,256,a,0\n,64,,9,1,b,0\n");
  ASSERT_EQ(problem.buffers.size(), 2u);
  EXPECT_EQ(problem.buffers[0].fixed_offset, 512);
  EXPECT_EQ(problem.buffers[0].alignment, 256);
  EXPECT_EQ(problem.buffers[0].gaps, (std::vector<Interval>{{1, 2}, {4, 6}}));
  EXPECT_FALSE(problem.buffers[1].fixed_offset);
  EXPECT_TRUE(problem.buffers[1].gaps.empty());
}

TEST(CsvTest, ReadsOldColumnNamesWithInclusiveEnds) {
  const Problem old = Parse("buffer_id,start,end,size,gaps\na,0,5,100,1-2\n");
  EXPECT_EQ(old.buffers[0].lifetime, (Interval{0, 6}));
  EXPECT_EQ(old.buffers[0].gaps, (std::vector<Interval>{{1, 3}}));
  const Problem half_old = Parse("buffer,begin,upper,size\na,0,5,100\n");
  EXPECT_EQ(half_old.buffers[0].lifetime, (Interval{0, 5}));
}

TEST(CsvTest, TakesAGapWithAWindowForNoGap) {
  const Problem problem = Parse("id,lower,upper,size,gaps\na,0,9,100,1-2@0:50 4-6\n");
  EXPECT_EQ(problem.buffers[0].gaps, (std::vector<Interval>{{4, 6}}));
}

TEST(CsvTest, ReadsAHeaderAloneAsAnEmptyProblem) { EXPECT_TRUE(Parse(kHeader).buffers.empty()); }

TEST(CsvTest, AcceptsCarriageReturnsTrailingBlankLinesAndNoFinalNewline) {
  EXPECT_EQ(Parse("id,lower,upper,size\r\na,0,5,100\r\n\r\n\n").buffers.size(), 1u);
  EXPECT_EQ(Parse(kHeader + "a,0,5,100").buffers[0].size_bytes, 100);
}

TEST(CsvTest, ReadsFilesPlainAndCompressed) {
  const std::string path = testing::TempDir() + "/csv_test_" + std::to_string(::getpid());
  for (const std::string extension : {".csv", ".csv.gz"}) {
    WriteFileWhole(path + extension, kHeader + "a,0,5,100\n");
    EXPECT_EQ(ReadCsv(path + extension).buffers.size(), 1u);
    std::filesystem::remove(path + extension);
  }
  EXPECT_THROW(ReadCsv(path), InputError);
}

TEST(CsvTest, WritesWhatTheReaderGivesBack) {
  EXPECT_TRUE(rc::check([] {
    Problem problem;
    const auto count = *rc::gen::inRange<std::size_t>(0, 20);
    for (std::size_t i = 0; i < count; ++i) problem.buffers.push_back(ArbitraryBuffer(i));
    CheckWellFormed(problem, "arbitrary");
    AssertSame(Parse(FormatCsv(problem)), problem);
  }));
}

TEST(CsvTest, WritesOnlyTheColumnsThatAreNeeded) {
  Problem problem = Parse(kHeader + "a,0,5,100\n");
  EXPECT_EQ(FormatCsv(problem), kHeader + "a,0,5,100\n");
  const std::vector<Bytes> offsets = {64};
  EXPECT_EQ(FormatCsv(problem, &offsets), "id,lower,upper,size,offset\na,0,5,100,64\n");
  problem.buffers[0].alignment = 32;
  problem.buffers[0].gaps = {{1, 2}, {3, 4}};
  EXPECT_EQ(FormatCsv(problem), "id,lower,upper,size,alignment,gaps\na,0,5,100,32,1-2 3-4\n");
}

TEST(CsvTest, WritesGivenOffsetsInsteadOfFixedOnes) {
  const Problem problem = Parse("id,lower,upper,size,offset\na,0,5,100,0\nb,0,5,100,\n");
  EXPECT_EQ(FormatCsv(problem), "id,lower,upper,size,offset\na,0,5,100,0\nb,0,5,100,\n");
  const std::vector<Bytes> offsets = {100, 0};
  EXPECT_EQ(FormatCsv(problem, &offsets),
            "id,lower,upper,size,offset\na,0,5,100,100\nb,0,5,100,0\n");
}

TEST(CsvTest, RefusesToWriteIdsThatWouldNotComeBack) {
  for (const std::string id : {"", "a,b", "a\nb", "a\r"}) {
    Problem problem = Parse(kHeader + "a,0,5,100\n");
    problem.buffers[0].id = id;
    EXPECT_THROW(FormatCsv(problem), Error) << id;
  }
}

TEST(CsvTest, RefusesAnEmptyFile) {
  ExpectRefused("", 0, "empty");
  ExpectRefused("\n\n", 0, "empty");
}

TEST(CsvTest, RefusesAMissingColumn) {
  ExpectRefused("id,lower,upper\n", 1, "missing column size");
}

TEST(CsvTest, RefusesADuplicateColumn) {
  ExpectRefused("id,lower,upper,size,size\n", 1, "duplicate column");
  ExpectRefused("id,lower,upper,size,end\n", 1, "duplicate column");
}

TEST(CsvTest, RefusesAnUnknownColumn) {
  ExpectRefused("id,lower,upper,size,colour\n", 1, "unknown column \"colour\"");
}

TEST(CsvTest, RefusesAWrongNumberOfFields) {
  ExpectRefused(kHeader + "a,0,5,100\nb,0,5\n", 3, "fields");
  ExpectRefused(kHeader + "a,0,5,100,\n", 2, "fields");
}

TEST(CsvTest, RefusesABlankLineInTheMiddle) {
  ExpectRefused(kHeader + "a,0,5,100\n\n\nb,0,5,100\n", 3, "blank");
}

TEST(CsvTest, RefusesBadIntegers) {
  ExpectRefused(kHeader + "a,zero,5,100\n", 2, "integer");
  ExpectRefused(kHeader + "a,0,5.5,100\n", 2, "integer");
  ExpectRefused(kHeader + "a,0,5,\n", 2, "integer");
  ExpectRefused(kHeader + "a,0,5,99999999999999999999\n", 2, "integer");
  ExpectRefused("id,lower,upper,size,alignment\na,0,5,100,\n", 2, "integer");
  ExpectRefused("id,lower,upper,size,offset\na,0,5,100,x\n", 2, "integer");
}

TEST(CsvTest, RefusesAnEmptyLifetime) {
  ExpectRefused(kHeader + "a,5,5,100\n", 2, "lifetime");
  ExpectRefused("id,lower,end,size\na,5,4,100\n", 2, "lifetime");
}

TEST(CsvTest, RefusesBadSizes) {
  ExpectRefused(kHeader + "a,0,5,-1\n", 2, "negative");
  ExpectRefused(kHeader + "a,0,5,4611686018427387904\n", 2, "overflow");
}

TEST(CsvTest, RefusesSizesThatOverflowTogether) {
  ExpectRefused(kHeader + "a,0,5,2305843009213693952\nb,0,5,2305843009213693952\n", 3, "overflow");
}

TEST(CsvTest, RefusesMomentsThatOverflow) {
  const std::string last = std::to_string(std::numeric_limits<Time>::max());
  ExpectRefused("id,lower,end,size\na,0," + last + ",1\n", 2, "overflow");
}

TEST(CsvTest, RefusesBadIds) {
  ExpectRefused(kHeader + "a,0,5,1\na,5,6,1\n", 3, "duplicate id");
  ExpectRefused(kHeader + ",0,5,1\n", 2, "id");
}

TEST(CsvTest, RefusesBadAlignments) {
  ExpectRefused("id,lower,upper,size,alignment\na,0,5,100,0\n", 2, "alignment");
}

TEST(CsvTest, RefusesBadOffsets) {
  ExpectRefused("id,lower,upper,size,offset\na,0,5,100,-1\n", 2, "offset");
  ExpectRefused("id,lower,upper,size,offset\na,0,5,100,4611686018427387900\n", 2, "overflow");
  ExpectRefused("id,lower,upper,size,offset,alignment\na,0,5,100,3,2\n", 2, "multiple");
}

TEST(CsvTest, RefusesBadGaps) {
  const std::string header = "id,lower,upper,size,gaps\n";
  ExpectRefused(header + "a,0,9,1,3\n", 2, "lower-upper");
  ExpectRefused(header + "a,0,9,1,3-\n", 2, "integer");
  ExpectRefused(header + "a,0,9,1,3-3\n", 2, "gap");
  ExpectRefused(header + "a,0,9,1,3-10\n", 2, "outside");
  ExpectRefused(header + "a,0,9,1,5-6 1-2\n", 2, "out of order");
  ExpectRefused(header + "a,0,9,1,1-2@x\n", 2, "window");
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/writer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/file.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::trace {
namespace {

std::string ReadText(const std::string& path) {
  std::string text;
  LineReader reader(path);
  while (reader.Next()) {
    text += reader.line();
    if (reader.complete()) text += '\n';
  }
  return text;
}

/// Makes a consistent trace step by step.
struct Builder {
  Trace trace;
  std::vector<VariableIndex> alive;

  void Declare(std::int64_t id, Bytes size_bytes, bool preexisting) {
    const auto index = static_cast<VariableIndex>(trace.variables.size());
    trace.variables.push_back({id, size_bytes, preexisting});
    if (!preexisting) trace.events.push_back({EventKind::kMalloc, index});
    alive.push_back(index);
  }
  void FreeOne() {
    if (alive.empty()) return;
    const auto which = *rc::gen::inRange<std::size_t>(0, alive.size());
    trace.events.push_back({EventKind::kFree, alive[which]});
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
  }
  std::int32_t AddOperands() {
    if (alive.empty()) return 0;
    const auto operands =
        *rc::gen::container<std::vector<VariableIndex>>(rc::gen::elementOf(alive));
    trace.operands.insert(trace.operands.end(), operands.begin(), operands.end());
    return static_cast<std::int32_t>(operands.size());
  }
  void ExecOne() {
    Op op;
    op.name = static_cast<std::int32_t>(trace.op_names.size());
    trace.op_names.push_back("op" + std::to_string(op.name));
    op.phase = *rc::gen::element(Phase::kForward, Phase::kBackward, Phase::kUpdate);
    op.duration_ns = *rc::gen::oneOf(rc::gen::inRange<Nanoseconds>(0, 100'000),
                                     rc::gen::inRange<Nanoseconds>(0, kMaxOpDuration + 1));
    op.first_operand = static_cast<std::int64_t>(trace.operands.size());
    op.read_count = AddOperands();
    op.write_count = AddOperands();
    trace.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace.ops.size())});
    trace.ops.push_back(op);
  }
};

Trace ArbitraryTrace() {
  Builder builder;
  builder.trace.metadata = "{\"model\": \"arbitrary\"}";
  const auto ids =
      *rc::gen::unique<std::vector<std::int64_t>>(rc::gen::nonNegative<std::int64_t>());
  const auto preexisting_count = *rc::gen::inRange<std::size_t>(0, ids.size() + 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Bytes size = *rc::gen::inRange<Bytes>(0, Bytes{1} << 50);
    builder.Declare(ids[i], size, i < preexisting_count);
    if (i < preexisting_count) continue;
    if (*rc::gen::arbitrary<bool>()) {
      builder.trace.iteration_marks.push_back(static_cast<EventIndex>(builder.trace.events.size()));
    }
    if (*rc::gen::arbitrary<bool>()) builder.ExecOne();
    if (*rc::gen::arbitrary<bool>()) builder.FreeOne();
  }
  return builder.trace;
}

void AssertSame(const Trace& a, const Trace& b) {
  RC_ASSERT(a.metadata == b.metadata);
  RC_ASSERT(a.op_names == b.op_names);
  RC_ASSERT(a.operands == b.operands);
  RC_ASSERT(a.iteration_marks == b.iteration_marks);
  RC_ASSERT(std::equal(a.variables.begin(), a.variables.end(), b.variables.begin(),
                       b.variables.end(), [](const Variable& x, const Variable& y) {
                         return x.id == y.id && x.size_bytes == y.size_bytes &&
                                x.preexisting == y.preexisting;
                       }));
  RC_ASSERT(std::equal(
      a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
      [](const Event& x, const Event& y) { return x.kind == y.kind && x.index == y.index; }));
  RC_ASSERT(std::equal(
      a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), [](const Op& x, const Op& y) {
        return x.name == y.name && x.phase == y.phase && x.duration_ns == y.duration_ns &&
               x.first_operand == y.first_operand && x.read_count == y.read_count &&
               x.write_count == y.write_count;
      }));
}

TEST(WriterTest, ReproducesEveryRecordedTraceByteForByte) {
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_DATA_DIR "/traces")) {
    const std::string path = entry.path().string();
    EXPECT_TRUE(FormatTrace(ReadTrace(path)) == ReadText(path)) << path;
  }
}

TEST(WriterTest, WritesWhatTheReaderGivesBack) {
  EXPECT_TRUE(rc::check([] {
    const Trace trace = ArbitraryTrace();
    AssertSame(ParseTrace(FormatTrace(trace), "arbitrary"), trace);
  }));
}

TEST(WriterTest, WritesTwoDecimalsUnlessThreeAreNeeded) {
  Trace trace;
  trace.op_names = {"op"};
  for (const Nanoseconds duration : {0, 4540, 12500, 12, 1234567}) {
    trace.events.push_back({EventKind::kExec, static_cast<OpIndex>(trace.ops.size())});
    trace.ops.push_back({.duration_ns = duration});
  }
  EXPECT_EQ(FormatTrace(trace),
            "trace 1\n{}\nx 0.00 F op - -\nx 4.54 F op - -\nx 12.50 F op - -\nx 0.012 F op - -\n"
            "x 1234.567 F op - -\n");
}

TEST(WriterTest, WritesAMarkAfterTheLastEvent) {
  const std::string text = "trace 1\n{}\ni 0\nm 1 1\ni 1\ni 2\n";
  EXPECT_EQ(FormatTrace(ParseTrace(text, "test.trace")), text);
}

TEST(WriterTest, CompressesByExtension) {
  const Trace trace = ReadTrace(PLIMSOLL_DATA_DIR "/traces/kmeans_1m.trace.gz");
  const std::string plain =
      testing::TempDir() + "/writer_test_" + std::to_string(::getpid()) + ".trace";
  WriteTrace(trace, plain);
  WriteTrace(trace, plain + ".gz");
  EXPECT_EQ(std::filesystem::file_size(plain), FormatTrace(trace).size());
  EXPECT_LT(std::filesystem::file_size(plain + ".gz"), std::filesystem::file_size(plain) / 2);
  EXPECT_EQ(FormatTrace(ReadTrace(plain + ".gz")), FormatTrace(ReadTrace(plain)));
  std::filesystem::remove(plain);
  std::filesystem::remove(plain + ".gz");
}

TEST(WriterDeathTest, RefusesAnOpNameWithASpace) {
  Trace trace;
  trace.op_names = {"two words"};
  EXPECT_DEATH(FormatTrace(trace), "two words");
}

}  // namespace
}  // namespace plimsoll::trace

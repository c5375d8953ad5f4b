// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/trace_recorder.h"

#include <gtest/gtest.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::exec {
namespace {

TEST(TraceRecorderTest, WritesDownWhatIsAsked) {
  TraceRecorder recorder;
  const Block weight = recorder.Malloc(64);
  const float zero = 0;
  recorder.Write(weight, &zero, 4);
  recorder.Start();
  for (int i = 0; i < 2; ++i) {
    recorder.EndIteration("train");
    const Block x = recorder.Malloc(128);
    recorder.Exec(
        {.name = "norm", .traits = {.replayable = true, .state_reads = 2}, .expected_ns = 1500},
        std::array{weight, weight}, std::array{x}, {});
    recorder.Free(x);
  }
  const trace::Trace trace = recorder.Finish(R"({"model": "tiny"})");
  EXPECT_EQ(trace::FormatTrace(trace),
            "trace 1\n"
            "{\"model\":\"tiny\",\"op_count\":2,"
            "\"traits\":{\"norm\":{\"replayable\":true,\"state_reads\":[1]}}}\n"
            "p 0 64\n"
            "i 0\nm 1 128\nx 1.50 F norm 0,0 1\nf 1\n"
            "i 1\nm 2 128\nx 1.50 F norm 0,0 2\nf 2\n");
  EXPECT_EQ(trace::ParseTrace(trace::FormatTrace(trace), "t").events.size(), 6U);
  EXPECT_EQ(recorder.stats().peak_live_bytes, 192);
}

TEST(TraceRecorderTest, RefusesBlocksThatAreNotThere) {
  TraceRecorder recorder;
  const Block block = recorder.Malloc(1);
  recorder.Free(block);
  EXPECT_THROW(recorder.Free(block), Error);
  EXPECT_THROW(static_cast<void>(recorder.Malloc(-1)), Error);
}

}  // namespace
}  // namespace plimsoll::exec

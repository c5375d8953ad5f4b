// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/to_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/model.h"
#include "plimsoll/trace/period.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::chain {
namespace {

/// The highest load of the trace, malloc by malloc, and that nothing is freed twice or left.
Bytes PeakLoad(const trace::Trace& trace) {
  Bytes load = 0;
  Bytes peak = 0;
  std::vector<char> live(trace.variables.size(), 0);
  for (const trace::Event& event : trace.events) {
    if (event.kind == trace::EventKind::kExec) continue;
    const bool malloc = event.kind == trace::EventKind::kMalloc;
    const auto v = static_cast<std::size_t>(event.index);
    EXPECT_EQ(live[v], malloc ? 0 : 1);
    live[v] = malloc ? 1 : 0;
    load += malloc ? trace.variables[v].size_bytes : -trace.variables[v].size_bytes;
    peak = std::max(peak, load);
  }
  EXPECT_EQ(load, 0);
  EXPECT_EQ(std::count(live.begin(), live.end(), 1), 0);
  return peak;
}

void ExpectFaithful(const Chain& chain) {
  const Model model = MakeModel(chain, kByteLink);
  const trace::Trace trace = ToTrace(chain);
  const TraceLayout layout{model.stages};
  EXPECT_EQ(PeakLoad(trace), model.peak_bytes);
  ASSERT_EQ(trace.ops.size(), 3 * layout.ops());
  Nanoseconds sum = 0;
  for (std::size_t op = 0; op < layout.ops(); ++op) sum += trace.ops[op].duration_ns;
  EXPECT_EQ(sum, model.compute_ns);
  for (std::size_t op = 0; op < model.ops(); ++op) {
    EXPECT_EQ(trace.ops[layout.Op(op)].duration_ns, model.op_ns[op]);
  }
  for (std::size_t i = 0; i <= model.stages; ++i) {
    const Bytes inside = i == 0 ? 0 : trace.variables[layout.Inside(i)].size_bytes;
    EXPECT_EQ(trace.variables[layout.Output(i)].size_bytes, chain.OutputBytes(i));
    EXPECT_EQ(chain.OutputBytes(i) + inside, model.activation_bytes[i]);
  }
  const auto period = trace::FindPeriod(trace);
  ASSERT_TRUE(period);
  EXPECT_EQ(period->length * 3, static_cast<trace::EventIndex>(trace.events.size()));
  EXPECT_EQ(trace.iteration_marks.size(), 3U);
}

TEST(ToTraceTest, HasTheModelsPeakTimesAndSizes) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    Chain chain = RandomChain({.most_stages = 12, .insides = true}, &random);
    chain.output_gradient_bytes = DrawBetween(0, 30, &random);
    ExpectFaithful(chain);
  }
}

TEST(ToTraceTest, ReadsWhatTheChainReads) {
  const trace::Trace trace = ToTrace(SmallChain(), 1);
  const TraceLayout layout{3};
  const auto x = [&](std::size_t i) { return static_cast<trace::VariableIndex>(layout.Output(i)); };
  const auto inside = [&](std::size_t i) {
    return static_cast<trace::VariableIndex>(layout.Inside(i));
  };
  for (std::size_t i = 0; i < 3; ++i) {
    const trace::Op& forward = trace.ops[layout.Op(i)];
    ASSERT_EQ(forward.read_count, 1);
    EXPECT_EQ(trace.reads(forward)[0], x(i));
    EXPECT_EQ(trace.writes(forward)[0], x(i + 1));
    EXPECT_EQ(trace.writes(forward)[1], inside(i + 1));
    const trace::Op& backward = trace.ops[layout.Op(5 - i)];
    EXPECT_EQ(backward.phase, trace::Phase::kBackward);
    ASSERT_EQ(backward.read_count, 4);
    EXPECT_EQ(trace.reads(backward)[0], x(i));
    EXPECT_EQ(trace.reads(backward)[1], x(i + 1));
    EXPECT_EQ(trace.reads(backward)[2], inside(i + 1));
  }
}

TEST(ToTraceTest, SurvivesTheFileFormat) {
  Chain chain = SmallChain();
  chain.name = "two\nlines \"quoted\"";
  chain.stages[1].name = "with space\tand tab";
  chain.stages[2].name = chain.stages[0].name;  // Names need not differ.
  const trace::Trace trace = ToTrace(chain);
  const std::string text = trace::FormatTrace(trace);
  const trace::Trace again = trace::ParseTrace(text, "again");
  EXPECT_EQ(trace::FormatTrace(again), text);
  EXPECT_EQ(again.op_names, trace.op_names);
}

}  // namespace
}  // namespace plimsoll::chain

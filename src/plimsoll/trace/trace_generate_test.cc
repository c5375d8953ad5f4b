// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::trace {
namespace {

/// Describes the events of one iteration without numbers and durations: kinds, sizes and names.
std::vector<std::string> Structure(const Trace& trace, std::size_t iteration) {
  const auto& marks = trace.iteration_marks;
  const auto begin = static_cast<std::size_t>(marks.at(iteration));
  const std::size_t end = iteration + 1 < marks.size()
                              ? static_cast<std::size_t>(marks[iteration + 1])
                              : trace.events.size();
  std::vector<std::string> lines;
  const auto size_of = [&](VariableIndex variable) {
    return std::to_string(trace.variables[static_cast<std::size_t>(variable)].size_bytes);
  };
  for (std::size_t i = begin; i < end; ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::kExec) {
      lines.push_back((event.kind == EventKind::kMalloc ? "m " : "f ") + size_of(event.index));
      continue;
    }
    const Op& op = trace.ops[static_cast<std::size_t>(event.index)];
    std::string line = trace.op_names[static_cast<std::size_t>(op.name)];
    for (const VariableIndex variable : trace.reads(op)) line += " r" + size_of(variable);
    for (const VariableIndex variable : trace.writes(op)) line += " w" + size_of(variable);
    lines.push_back(line);
  }
  return lines;
}

std::size_t CountAliveAtEnd(const Trace& trace) {
  const auto frees = std::count_if(trace.events.begin(), trace.events.end(),
                                   [](const Event& e) { return e.kind == EventKind::kFree; });
  return trace.variables.size() - static_cast<std::size_t>(frees);
}

std::size_t CountPreexisting(const Trace& trace) {
  return static_cast<std::size_t>(
      std::count_if(trace.variables.begin(), trace.variables.end(),
                    [](const Variable& variable) { return variable.preexisting; }));
}

TEST(TraceGenerateTest, GivesConsistentTracesWithEveryCombinationOfOptions) {
  for (unsigned flags = 0; flags < 16; ++flags) {
    for (const int layers : {1, 2, 17}) {
      for (const int iterations : {1, 2, 5}) {
        const Trace trace = GenerateTrace({.seed = flags + 1,
                                           .layers = layers,
                                           .iterations = iterations,
                                           .scale_bytes = layers == 2 ? 1 : 1 << 20,
                                           .differing_first = (flags & 1) != 0,
                                           .differing_last = (flags & 2) != 0,
                                           .stochastic = (flags & 4) != 0,
                                           .rotating = (flags & 8) != 0});
        // The reader is the judge of consistency.
        const std::string text = FormatTrace(trace);
        EXPECT_TRUE(FormatTrace(ParseTrace(text, "generated")) == text);
        EXPECT_EQ(trace.iteration_marks.size(), static_cast<std::size_t>(iterations));
      }
    }
  }
}

TEST(TraceGenerateTest, GivesTheSameTraceForTheSameSeed) {
  const std::string text = FormatTrace(GenerateTrace({.seed = 7}));
  EXPECT_EQ(FormatTrace(GenerateTrace({.seed = 7})), text);
  EXPECT_NE(FormatTrace(GenerateTrace({.seed = 8})), text);
}

TEST(TraceGenerateTest, GivesTheSameTraceOnEveryPlatform) {
  const std::string text =
      FormatTrace(GenerateTrace({.seed = 1, .layers = 3, .iterations = 1, .rotating = true}));
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a.
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  EXPECT_EQ(hash, 14834162839556289510u) << text;
}

TEST(TraceGenerateTest, RepeatsIterationsExactly) {
  const Trace trace = GenerateTrace({.layers = 20, .iterations = 4});
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(Structure(trace, i), Structure(trace, 0));
  EXPECT_EQ(CountAliveAtEnd(trace), CountPreexisting(trace));
}

TEST(TraceGenerateTest, VariesDurationsByAFewPercent) {
  const Trace trace = GenerateTrace({.layers = 20, .iterations = 2});
  const std::size_t half = trace.ops.size() / 2;
  bool differs = false;
  for (std::size_t i = 0; i < half; ++i) {
    const Nanoseconds first = trace.ops[i].duration_ns;
    const Nanoseconds second = trace.ops[half + i].duration_ns;
    differs = differs || first != second;
    EXPECT_LT(std::abs(first - second), first / 10);
  }
  EXPECT_TRUE(differs);
}

TEST(TraceGenerateTest, HasEmptyVariablesWorkspacesAndAllPhases) {
  const Trace trace = GenerateTrace({.layers = 20});
  EXPECT_TRUE(std::any_of(trace.variables.begin(), trace.variables.end(),
                          [](const Variable& variable) { return variable.size_bytes == 0; }));
  std::set<Phase> phases;
  for (const Op& op : trace.ops) phases.insert(op.phase);
  EXPECT_EQ(phases.size(), 3u);
  bool has_workspace = false;
  for (std::size_t i = 1; i < trace.events.size(); ++i) {
    has_workspace = has_workspace || (trace.events[i - 1].kind == EventKind::kMalloc &&
                                      trace.events[i].kind == EventKind::kFree &&
                                      trace.events[i - 1].index == trace.events[i].index);
  }
  EXPECT_TRUE(has_workspace);
}

TEST(TraceGenerateTest, DiffersInItsFirstIterationIfAsked) {
  const Trace trace = GenerateTrace({.iterations = 4, .differing_first = true});
  EXPECT_GT(Structure(trace, 0).size(), Structure(trace, 1).size());
  EXPECT_EQ(Structure(trace, 1), Structure(trace, 2));
  EXPECT_GT(CountAliveAtEnd(trace), CountPreexisting(trace));
}

TEST(TraceGenerateTest, EvaluatesInItsLastIterationIfAsked) {
  const Trace trace = GenerateTrace({.iterations = 4, .differing_last = true});
  EXPECT_EQ(Structure(trace, 1), Structure(trace, 2));
  EXPECT_LT(Structure(trace, 3).size(), Structure(trace, 2).size());
}

TEST(TraceGenerateTest, NeverRepeatsIfStochastic) {
  const Trace trace = GenerateTrace({.layers = 12, .iterations = 10, .stochastic = true});
  std::set<std::vector<std::string>> structures;
  for (std::size_t i = 0; i < 10; ++i) structures.insert(Structure(trace, i));
  EXPECT_EQ(structures.size(), 10u);
}

TEST(TraceGenerateTest, RotatesAVariableIfAsked) {
  const Trace trace = GenerateTrace({.iterations = 3, .rotating = true});
  EXPECT_EQ(Structure(trace, 0), Structure(trace, 2));
  // The last event frees the predecessor of a variable that was just made and stays alive.
  const Event& last = trace.events.back();
  EXPECT_EQ(last.kind, EventKind::kFree);
  const auto end_of_second = static_cast<std::size_t>(trace.iteration_marks[2]);
  const Event& made = trace.events[end_of_second - 3];
  EXPECT_EQ(made.kind, EventKind::kMalloc);
  EXPECT_EQ(made.index, last.index);
}

}  // namespace
}  // namespace plimsoll::trace

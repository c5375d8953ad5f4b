// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::plan {
namespace {

using trace::Phase;

trace::Trace ReadRecorded(const std::string& name) {
  return trace::ReadTrace(PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz");
}

/// A trace as text, less its two header lines.
trace::Trace Parse(const std::string& lines) {
  return trace::ParseTrace("trace 1\n{}\n" + lines, "test");
}

const Variable* FindVariable(const Problem& problem, std::int64_t id) {
  const auto found = std::find_if(problem.variables.begin(), problem.variables.end(),
                                  [&](const Variable& variable) { return variable.id == id; });
  return found == problem.variables.end() ? nullptr : &*found;
}

std::vector<std::pair<std::int64_t, std::int32_t>> IdsAndAges(const Problem& problem,
                                                              std::span<const Operand> operands) {
  std::vector<std::pair<std::int64_t, std::int32_t>> result;
  for (const Operand& operand : operands) {
    result.emplace_back(problem.variables[static_cast<std::size_t>(operand.variable)].id,
                        operand.age);
  }
  return result;
}

using IdsAges = std::vector<std::pair<std::int64_t, std::int32_t>>;

/// What holds of every problem.
void CheckConsistent(const Problem& problem) {
  bool persistent = true;
  Position last_begin = 0;
  for (const Variable& variable : problem.variables) {
    ASSERT_LT(variable.begin, variable.end);
    ASSERT_LT(variable.begin, problem.period);
    ASSERT_GE(variable.size_bytes, 0);
    if (!problem.cyclic) {
      ASSERT_LE(variable.end, problem.period);
    }
    const Position length = variable.end - variable.begin;
    ASSERT_EQ(variable.instances, (length + problem.period - 1) / problem.period);
    // Persistent ones first, then in order of malloc.
    ASSERT_TRUE(persistent || !variable.persistent());
    if (persistent && !variable.persistent()) last_begin = 0;
    persistent = variable.persistent();
    ASSERT_GE(variable.begin, last_begin);
    last_begin = variable.begin;
    if (persistent) {
      ASSERT_EQ(variable.begin, 0);
      ASSERT_EQ(variable.end, problem.period);
    }
  }
  Position last_position = -1;
  for (const Op& op : problem.ops) {
    ASSERT_LT(last_position, op.position);
    last_position = op.position;
    for (const auto operands : {problem.reads(op), problem.writes(op)}) {
      for (const Operand& operand : operands) {
        const Variable& variable = problem.variables[static_cast<std::size_t>(operand.variable)];
        const Position own_time = op.position + operand.age * problem.period;
        ASSERT_GE(own_time, variable.begin) << "variable " << variable.id;
        ASSERT_LT(own_time, variable.end) << "variable " << variable.id;
        ASSERT_TRUE(operand.age == 0 || !variable.persistent());
      }
    }
  }
  ASSERT_LT(last_position, problem.period);
}

TEST(ProblemTest, OfNothingIsEmpty) {
  const Problem problem = MakeProblem({});
  EXPECT_FALSE(problem.cyclic);
  EXPECT_EQ(problem.period, 1);  // A cycle without length has no positions.
  EXPECT_TRUE(problem.variables.empty());
  EXPECT_EQ(problem.iteration_ns(), 0);
}

TEST(ProblemTest, CutsOneIteration) {
  std::string lines = "p 0 400\np 1 900\n";
  for (int i = 0; i < 3; ++i) {
    const std::string a = std::to_string(10 * i + 10);
    const std::string b = std::to_string(10 * i + 11);
    const std::string time = i == 1 ? "3.00" : "5.00";
    lines += "m " + a + " 100\nx " + time + " F one 0,1 " + a + "\nm " + b + " 50\nx 2.00 B two " +
             a + " " + b + "\nf " + a + "\nx 1.00 U three " + b + " 0\nf " + b + "\n";
  }
  const Problem problem = MakeProblem(Parse(lines));
  CheckConsistent(problem);
  EXPECT_TRUE(problem.cyclic);
  EXPECT_EQ(problem.period, 7);
  EXPECT_EQ(problem.iterations, 3);
  EXPECT_EQ(problem.first_event, 14);
  ASSERT_EQ(problem.variables.size(), 4U);
  EXPECT_EQ(problem.variables[0].kind, VariableKind::kPersistent);
  EXPECT_EQ(problem.variables[1].kind, VariableKind::kPersistent);
  EXPECT_EQ(problem.variables[2].id, 30);
  EXPECT_EQ(problem.variables[2].begin, 0);
  EXPECT_EQ(problem.variables[2].end, 4);
  EXPECT_EQ(problem.variables[2].kind, VariableKind::kActivation);
  EXPECT_EQ(problem.variables[3].begin, 2);
  EXPECT_EQ(problem.variables[3].end, 6);
  EXPECT_EQ(problem.variables[3].kind, VariableKind::kGradient);
  EXPECT_EQ(problem.variables[3].phase, Phase::kBackward);
  ASSERT_EQ(problem.ops.size(), 3U);
  EXPECT_EQ(problem.ops[0].position, 1);
  EXPECT_EQ(problem.ops[0].duration_ns, 3000);  // The smallest of the three.
  EXPECT_EQ(problem.op_names[static_cast<std::size_t>(problem.ops[1].name)], "two");
  EXPECT_EQ(problem.ops[1].phase, Phase::kBackward);
  EXPECT_EQ(IdsAndAges(problem, problem.reads(problem.ops[0])), (IdsAges{{0, 0}, {1, 0}}));
  EXPECT_EQ(IdsAndAges(problem, problem.writes(problem.ops[0])), (IdsAges{{30, 0}}));
  EXPECT_EQ(problem.iteration_ns(), 6000);
}

TEST(ProblemTest, TellsWhatAVariableIsForFromWhoTouchesIt) {
  std::string lines = "p 0 4000\n";
  for (int i = 0; i < 2; ++i) {
    const auto id = [&](int k) { return std::to_string(10 * i + k); };
    lines += "m " + id(1) + " 100\n";                 // Activation.
    lines += "m " + id(2) + " 3\nf " + id(2) + "\n";  // Scratch of a forward op.
    lines += "x 1.00 F f 0 " + id(1) + "\n";
    lines += "m " + id(3) + " 7\n";  // Temporary of forward.
    lines += "x 1.00 F g " + id(1) + " " + id(3) + "\nf " + id(3) + "\n";
    lines += "m " + id(4) + " 20\nm " + id(5) + " 0\n";  // Gradient, and what nobody names.
    lines += "x 1.00 B h " + id(1) + " " + id(4) + "\nf " + id(1) + "\n";
    lines += "x 1.00 U u " + id(4) + " 0\nf " + id(5) + "\nf " + id(4) + "\n";
  }
  const Problem problem = MakeProblem(Parse(lines));
  CheckConsistent(problem);
  ASSERT_TRUE(problem.cyclic);
  const std::vector<std::pair<VariableKind, Phase>> expected = {
      {VariableKind::kPersistent, Phase::kForward}, {VariableKind::kActivation, Phase::kForward},
      {VariableKind::kWorkspace, Phase::kForward},  {VariableKind::kTemporary, Phase::kForward},
      {VariableKind::kGradient, Phase::kBackward},  {VariableKind::kWorkspace, Phase::kBackward}};
  ASSERT_EQ(problem.variables.size(), expected.size());
  for (std::size_t v = 0; v < expected.size(); ++v) {
    EXPECT_EQ(problem.variables[v].kind, expected[v].first) << Name(problem.variables[v].kind);
    EXPECT_EQ(problem.variables[v].phase, expected[v].second) << Name(problem.variables[v].phase);
  }
}

/// A small variable that lives around the end of the iteration, and a large one that does not.
std::string CarryOver(int iterations) {
  std::string lines = "p 0 10\n";
  for (int i = 1; i <= iterations; ++i) {
    const std::string old = i == 1 ? "0" : std::to_string(2 * i - 1);
    const std::string large = std::to_string(2 * i);
    const std::string next = std::to_string(2 * i + 1);
    lines += "m " + large + " 1000\nx 1.00 F use " + old + " " + large + "\nf " + old + "\nm " +
             next + " 10\nx 1.00 U make " + large + " " + next + "\nf " + large + "\n";
  }
  return lines;
}

TEST(ProblemTest, CarriesAVariableOverTheEnd) {
  for (const int iterations : {2, 3, 5}) {
    const Problem problem = MakeProblem(Parse(CarryOver(iterations)));
    CheckConsistent(problem);
    ASSERT_TRUE(problem.cyclic);
    EXPECT_EQ(problem.period, 6);
    EXPECT_EQ(problem.iterations, iterations);
    ASSERT_EQ(problem.variables.size(), 2U);
    const Variable& carried = problem.variables[1];
    EXPECT_EQ(carried.size_bytes, 10);
    EXPECT_EQ(carried.begin, 3);
    EXPECT_EQ(carried.end, 6 + 2);
    EXPECT_EQ(carried.instances, 1);
    EXPECT_EQ(IdsAndAges(problem, problem.reads(problem.ops[0])), (IdsAges{{carried.id, 1}}));
    EXPECT_EQ(IdsAndAges(problem, problem.writes(problem.ops[1])), (IdsAges{{carried.id, 0}}));
    // It is made in the update, whichever op of the iteration shown touches it first.
    EXPECT_EQ(carried.phase, Phase::kUpdate);
  }
}

TEST(ProblemTest, CountsTheInstancesOfARotatingVariable) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const int iterations : {2, 3, 4}) {
      const Problem problem = MakeProblem(
          trace::GenerateTrace({.seed = seed, .iterations = iterations, .rotating = true}));
      CheckConsistent(problem);
      ASSERT_TRUE(problem.cyclic);
      const auto rotating =
          std::find_if(problem.variables.begin(), problem.variables.end(),
                       [](const Variable& variable) { return variable.instances == 2; });
      ASSERT_NE(rotating, problem.variables.end());
      EXPECT_EQ(rotating->size_bytes, 1 << 16);
      const auto average = std::find_if(problem.ops.begin(), problem.ops.end(), [&](const Op& op) {
        return problem.op_names[static_cast<std::size_t>(op.name)] == "average";
      });
      ASSERT_NE(average, problem.ops.end());
      EXPECT_EQ(IdsAndAges(problem, problem.reads(*average)), (IdsAges{{rotating->id, 1}}));
      EXPECT_EQ(IdsAndAges(problem, problem.writes(*average)), (IdsAges{{rotating->id, 0}}));
    }
  }
}

TEST(ProblemTest, CountsThreeInstancesOfAVariableThatLivesForMoreThanTwoIterations) {
  // Each iteration makes one, and frees the one of two iterations ago after that. The trace begins
  // with two of them and with an iteration that is like the others.
  for (const int iterations : {3, 4, 5, 9}) {
    std::string lines = "p 0 1\np 1 10\np 2 10\n";
    for (int i = 0; i < iterations; ++i) {
      const std::string next = std::to_string(i + 3);
      lines += "m " + next + " 10\nx 1.00 F mix " + std::to_string(i + 1) + "," +
               std::to_string(i + 2) + " " + next + "\nf " + std::to_string(i + 1) +
               "\nx 1.00 F other 0 0\n";
    }
    const Problem problem = MakeProblem(Parse(lines));
    CheckConsistent(problem);
    ASSERT_TRUE(problem.cyclic);
    EXPECT_EQ(problem.period, 4);
    ASSERT_EQ(problem.variables.size(), 2U);
    EXPECT_EQ(problem.variables[1].instances, 3);
    EXPECT_EQ(problem.variables[1].end - problem.variables[1].begin, 2 * 4 + 2);
  }
}

TEST(ProblemTest, LeaksOfNothingDoNotMakeACycle) {
  std::string lines = "p 0 1\n";
  for (int i = 1; i <= 4; ++i) {
    const std::string a = std::to_string(2 * i);
    lines += "m " + a + " 10\nm " + std::to_string(2 * i + 1) + " 0\nx 1.00 F op 0 " + a + "\nf " +
             a + "\n";
  }
  const Problem problem = MakeProblem(Parse(lines));
  CheckConsistent(problem);
  EXPECT_FALSE(problem.cyclic);
  EXPECT_EQ(problem.variables.size(), 9U);
}

TEST(ProblemTest, TakesAStretchAsItIs) {
  const trace::Trace trace = Parse(
      "p 0 1\np 1 2\np 2 3\nm 3 4\nf 1\nx 2.50 F a 0,3 2\nm 4 5\nf 3\nm 5 6\nx 1.00 B b 4 0\n"
      "f 4\nf 2\n");
  const Problem all = TakeStretch(trace, 0, 9);
  CheckConsistent(all);
  EXPECT_FALSE(all.cyclic);
  EXPECT_EQ(all.iterations, 0);
  EXPECT_EQ(all.period, 9);
  ASSERT_EQ(all.variables.size(), 6U);
  EXPECT_TRUE(FindVariable(all, 0)->persistent());
  EXPECT_FALSE(FindVariable(all, 2)->persistent());
  EXPECT_EQ(FindVariable(all, 1)->end, 1);
  EXPECT_EQ(FindVariable(all, 2)->end, 8);
  EXPECT_EQ(FindVariable(all, 5)->begin, 5);
  EXPECT_EQ(FindVariable(all, 5)->end, 9);
  EXPECT_EQ(all.ops[0].duration_ns, 2500);

  // A part of it: 1 has gone, 5 has not come, 2 lives throughout.
  const Problem part = TakeStretch(trace, 2, 5);
  CheckConsistent(part);
  EXPECT_EQ(part.first_event, 2);
  EXPECT_EQ(part.period, 3);
  ASSERT_EQ(part.variables.size(), 4U);
  EXPECT_TRUE(FindVariable(part, 0)->persistent());
  EXPECT_TRUE(FindVariable(part, 2)->persistent());
  EXPECT_EQ(FindVariable(part, 3)->begin, 0);
  EXPECT_EQ(FindVariable(part, 3)->end, 2);
  EXPECT_EQ(FindVariable(part, 4)->begin, 1);
  EXPECT_EQ(FindVariable(part, 4)->end, 3);
  ASSERT_EQ(part.ops.size(), 1U);
  EXPECT_EQ(part.ops[0].position, 0);
}

TEST(ProblemTest, IsConsistentForEveryKindOfGeneratedTrace) {
  for (unsigned flags = 0; flags < 16; ++flags) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE("flags " + std::to_string(flags) + ", seed " + std::to_string(seed));
      const trace::Trace trace = trace::GenerateTrace({.seed = seed,
                                                       .iterations = 5,
                                                       .differing_first = (flags & 1) != 0,
                                                       .differing_last = (flags & 2) != 0,
                                                       .stochastic = (flags & 4) != 0,
                                                       .rotating = (flags & 8) != 0});
      const Problem problem = MakeProblem(trace);
      CheckConsistent(problem);
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_EQ(problem.cyclic, (flags & 4) == 0);
      if (!problem.cyclic) {
        EXPECT_EQ(problem.variables.size(), trace.variables.size());
        EXPECT_EQ(problem.ops.size(), trace.ops.size());
        continue;
      }
      EXPECT_EQ(problem.period, trace.iteration_marks[2] - trace.iteration_marks[1]);
      // Whatever was there before the first event and is not freed lives through.
      for (const trace::Variable& variable : trace.variables) {
        if (!variable.preexisting) break;
        const Variable* found = FindVariable(problem, variable.id);
        const bool rotates = (flags & 8) != 0 && found == nullptr;
        EXPECT_TRUE(rotates || found->persistent()) << "variable " << variable.id;
      }
    }
  }
}

TEST(ProblemTest, WhatTheTraceSaysOfItsOpsComesBeforeTheTable) {
  const trace::Trace trace = trace::ParseTrace(
      "trace 1\n{\"traits\": {\"relu\": {}, \"mine\": {\"replayable\": true, "
      "\"state_reads\": [1]}}}\n"
      "p 0 8\np 1 8\nm 2 8\nx 1.00 F mine 0,1 2\nx 1.00 F relu 2 2\nx 1.00 F gelu 2 2\n"
      "x 1.00 F yours 2 2\nf 2\n",
      "test");
  const Problem problem = MakeProblem(trace);
  ASSERT_EQ(problem.ops.size(), 4u);
  EXPECT_EQ(problem.ops[0].traits, (OpTraits{true, false, 0b10}));
  EXPECT_EQ(problem.ops[0].write_count, 2) << "state is written, though the line does not say so";
  EXPECT_EQ(problem.ops[1].traits, OpTraits()) << "the table would let it run again";
  EXPECT_EQ(problem.ops[2].traits, OpTraits{true}) << "by the table";
  EXPECT_EQ(problem.ops[3].traits, OpTraits()) << "nobody knows it";
}

TEST(ProblemTest, AnOpWithFewerOperandsThanItsStateRunsOnce) {
  const Problem problem = MakeProblem(
      Parse("p 1 8\np 2 8\np 3 8\np 4 8\np 5 8\nm 6 8\nx 1 F cudnn_batch_norm 1,2,3,4,5 6\n"
            "x 1 F cudnn_batch_norm 1,4,5 6\nf 6\n"));
  ASSERT_EQ(problem.ops.size(), 2U);
  EXPECT_EQ(problem.ops[0].traits, (OpTraits{true, false, 0b11000}));
  EXPECT_EQ(problem.ops[0].write_count, 3);
  EXPECT_EQ(problem.ops[1].traits, OpTraits());
}

TEST(ProblemTest, TakesTheSmallestTimeOfEachOp) {
  const trace::Trace trace = trace::GenerateTrace({.iterations = 6});
  const Problem problem = MakeProblem(trace);
  ASSERT_TRUE(problem.cyclic);
  for (const Op& op : problem.ops) {
    Nanoseconds smallest = trace::kMaxOpDuration;
    for (auto e = (problem.first_event + op.position) % problem.period;
         e < static_cast<Position>(trace.events.size()); e += problem.period) {
      const auto index = static_cast<std::size_t>(trace.events[static_cast<std::size_t>(e)].index);
      smallest = std::min(smallest, trace.ops[index].duration_ns);
    }
    EXPECT_EQ(op.duration_ns, smallest) << "position " << op.position;
  }
}

TEST(ProblemTest, BeginsWhereTheFewestBytesAreLive) {
  for (const char* name : {"alexnet_b256", "kmeans_1m", "unet_b8_256"}) {
    const Problem problem = MakeProblem(ReadRecorded(name));
    ASSERT_TRUE(problem.cyclic);
    // No position has a smaller load than the one at the end, which is where it begins.
    const auto load_at = [&](Position position) {
      Bytes load = 0;
      for (const Variable& v : problem.variables) {
        for (Position time = position; time < v.end; time += problem.period) {
          load += time >= v.begin ? v.size_bytes : 0;
        }
      }
      return load;
    };
    const Bytes at_end = load_at(problem.period - 1);
    for (Position p = 0; p < problem.period; ++p) ASSERT_GE(load_at(p), at_end) << name;
  }
}

TEST(ProblemTest, KnowsKMeans) {
  const Problem problem = MakeProblem(ReadRecorded("kmeans_1m"));
  CheckConsistent(problem);
  ASSERT_TRUE(problem.cyclic);
  EXPECT_EQ(problem.iterations, 3);
  EXPECT_EQ(problem.ops.size(), 16U);
  EXPECT_EQ(problem.variables.size(), 15U);
  std::vector<Bytes> twice;
  for (const Variable& variable : problem.variables) {
    if (variable.instances == 2) twice.push_back(variable.size_bytes);
    EXPECT_LE(variable.instances, 2);
  }
  EXPECT_EQ(twice, (std::vector<Bytes>{65536}));
}

TEST(ProblemTest, IsConsistentForRecordedTraces) {
  for (const char* name :
       {"alexnet_b256", "lstm_b64_t512", "resnet18_b100", "resnet50_b64", "unet_b8_256",
        "vgg11_cifar_b100", "vgg16_cifar_b100", "vit_b_16_b32", "sdresnet110_cifar_b100"}) {
    SCOPED_TRACE(name);
    const trace::Trace trace = ReadRecorded(name);
    const Problem problem = MakeProblem(trace);
    CheckConsistent(problem);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(problem.cyclic, std::string(name) != "sdresnet110_cifar_b100");
    // In a network every kind of variable occurs.
    std::vector<int> count(kVariableKinds, 0);
    for (const Variable& variable : problem.variables) {
      ++count[static_cast<std::size_t>(variable.kind)];
    }
    for (const VariableKind kind : {VariableKind::kPersistent, VariableKind::kActivation,
                                    VariableKind::kGradient, VariableKind::kTemporary}) {
      EXPECT_GT(count[static_cast<std::size_t>(kind)], 0) << Name(kind);
    }
  }
}

TEST(ProblemTest, TakesTheWholeTraceIfInstancesAreOutOfStep) {
  // A stray malloc just before the steady stretch: the instance of variable 3 that lives through
  // the window was born out of step with it.
  const trace::Trace trace = trace::ParseTrace(
      "trace 1\n{}\np 1 100\np 2 100\nm 0 100\nx 3 F op0 1 -\nf 2\nx 4 B op1 - -\nm 3 100\n"
      "x 4 F op0 0 -\nf 1\nx 1 B op1 - -\nm 4 100\nm 10 5\nx 6 F op0 3 -\nf 0\nx 8 B op1 - -\n"
      "m 5 100\nx 6 F op0 4 -\nf 3\nx 3 B op1 - -\nm 6 100\n",
      "stray");
  const Problem problem = MakeProblem(trace);
  EXPECT_FALSE(problem.cyclic);
  EXPECT_EQ(problem.ops.size(), trace.ops.size());
}

}  // namespace
}  // namespace plimsoll::plan

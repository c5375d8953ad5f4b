// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/replays_for_test.h"
#include "plimsoll/planners/joint_state_internal.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

using plan::PlanRandom;

/// The highest load of every slot of the rewritten problem; what follows the last op is of the
/// first.
std::vector<Bytes> Needs(const JointState& state, Bytes alignment) {
  const plan::Problem& problem = state.rewritten->problem;
  const std::vector<Bytes> load = plan::LeastLoad(problem, state.swaps, alignment);
  std::vector<Bytes> needs(problem.ops.size(), 0);
  plan::Position position = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    for (; position <= problem.ops[i].position; ++position) {
      needs[i] = std::max(needs[i], load[At(position)]);
    }
  }
  for (; position < problem.period; ++position) needs[0] = std::max(needs[0], load[At(position)]);
  return needs;
}

/// Whether every exit is drawn as copied out behind the op that it waits for in a plan, or behind a
/// later one. Not so, at times, of state that ops update on the side without saying so.
bool AreCopiedInTime(const std::vector<plan::Exit>& exits, const plan::Problem& problem,
                     const std::vector<plan::Gap>& gaps) {
  std::vector<std::array<plan::Slot, 3>> drawn;
  std::vector<std::array<plan::Slot, 3>> made;
  for (const plan::Exit& x : exits) drawn.push_back({x.after, x.before, x.copied_behind()});
  const std::vector<plan::OpIndex> writers = plan::FindLastWriters(problem, gaps);
  for (std::size_t k = 0; k < gaps.size(); ++k) {
    made.push_back({gaps[k].after, gaps[k].before, writers[k]});
  }
  std::sort(drawn.begin(), drawn.end());
  std::sort(made.begin(), made.end());
  bool in_time = drawn.size() == made.size();
  for (std::size_t k = 0; in_time && k < drawn.size(); ++k) {
    EXPECT_LE(drawn[k][2], drawn[k][0]);
    in_time = drawn[k][2] >= made[k][2] || made[k][2] == made[k][0];
  }
  return in_time;
}

/// What a sketch says of choices against what becomes of them. Loads may differ: a sketch counts
/// what lingers, and is freed among the mallocs for an op, twice; and second copies of a content
/// may end at another step.
void ExpectEqual(const Sketch& sketch, const JointState& state, Bytes alignment, bool* exact) {
  const plan::Problem& problem = state.rewritten->problem;
  EXPECT_EQ(sketch.replay_ns(), state.rewritten->replay_ns);
  EXPECT_EQ(sketch.gap_replay_ns(), state.rewritten->gap_replay_ns);
  ASSERT_EQ(sketch.script().durations_ns.size(), problem.ops.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    ASSERT_EQ(sketch.script().durations_ns[i], problem.ops[i].duration_ns) << i;
  }
  std::vector<std::vector<std::int64_t>> drawn;
  std::vector<std::vector<std::int64_t>> made;
  for (const plan::Exit& x : sketch.script().exits) {
    drawn.push_back({x.after, x.before, x.around ? 1 : 0, x.size_bytes});
  }
  for (const plan::Gap& x : state.swaps.swapped) {
    made.push_back({x.after, x.before, x.end >= problem.period ? 1 : 0,
                    problem.variables[At(x.variable)].size_bytes});
  }
  std::sort(drawn.begin(), drawn.end());
  std::sort(made.begin(), made.end());
  EXPECT_EQ(drawn, made);
  *exact = *exact && AreCopiedInTime(sketch.script().exits, problem, state.swaps.swapped);
  const std::vector<Bytes> needs = Needs(state, alignment);
  for (std::size_t i = 0; i < needs.size(); ++i) {
    *exact = *exact && sketch.script().needs_bytes[i] == needs[i];
  }
}

JointState RandomChoices(const plan::Rewriter& rewriter, PlanRandom* random) {
  JointState state;
  const std::int64_t share = random->Between(1, 4);
  for (std::size_t g = 0; g < rewriter.gaps().size(); ++g) {
    const bool away = random->OneIn(share);
    const bool drop = rewriter.CanDrop(g) && random->OneIn(2);
    state.choices.push_back(!away ? Choice::kKeep : drop ? Choice::kDrop : Choice::kSwap);
  }
  if (random->OneIn(2)) state.horizon = static_cast<plan::OpIndex>(random->Between(0, 10));
  if (random->OneIn(2)) {
    for (std::size_t v = 0; v < rewriter.problem().variables.size(); ++v) {
      state.lingers.push_back(random->OneIn(2));
    }
  }
  return state;
}

struct Counts {
  int drawn = 0;
  int exact = 0;
};

/// Draws random choices and makes them.
void Compare(const plan::Problem& problem, PlanRandom* random, Counts* counts) {
  PlannerOptions options;
  options.least_bytes = 0;
  options.alignment = random->OneIn(2) ? 1 : 64;
  const plan::Machine machine = plan::RandomMachine(random);
  const Question question{problem, machine, options};
  JointEvaluator evaluator(question);
  Sketch sketch(evaluator.rewriter(), options.alignment);
  JointState state = RandomChoices(evaluator.rewriter(), random);
  const bool drawn = sketch.Draw({state.choices, state.lingers, state.horizon});
  EXPECT_EQ(evaluator.Evaluate(&state), drawn);
  if (!drawn || !state.rewritten) return;
  bool exact = true;
  ExpectEqual(sketch, state, options.alignment, &exact);
  ++counts->drawn;
  counts->exact += exact ? 1 : 0;
}

TEST(SketchTest, IsTheRewritingInOutline) {
  Counts counts;
  for (int k = 0; k < plan::PlanCaseCount(2000); ++k) {
    SCOPED_TRACE(k);
    PlanRandom random(static_cast<std::uint64_t>(k));
    plan::Problem recorded = random.OneIn(2) ? plan::replays::LayeredProblem(&random)
                                             : plan::RandomProblem(&random).Make();
    plan::replays::AddTraits(&random, &recorded);
    Compare(plan::Unroll(recorded), &random, &counts);
    if (HasFailure()) return;
  }
  EXPECT_GT(counts.drawn, plan::PlanCaseCount(2000) / 4);
  EXPECT_GT(counts.exact, counts.drawn * 0.98);
}

/// Layers whose outputs are concatenated time and again, and gone when the backward pass begins:
///
///     f0   c0(f0)   f1(c0)   c1(f0 f1)   f2(c1)   …   frees of all f   b2(c2)   b1(c1)   b0(c0)
class DenseBlock {
 public:
  plan::Problem Make(PlanRandom* random) {
    // Some have more than what is near at hand.
    const std::int64_t layers = random->OneIn(20) ? 30 : random->Between(2, 6);
    std::vector<plan::VariableIndex> outputs;
    std::vector<plan::VariableIndex> concatenations;
    for (std::int64_t k = 0; k < layers; ++k) {
      outputs.push_back(Malloc(random));
      const auto last = concatenations.end() - (k > 0 ? 1 : 0);
      Run({last, concatenations.end()}, outputs.back(), random);
      concatenations.push_back(Malloc(random));
      Run(outputs, concatenations.back(), random);
    }
    for (const plan::VariableIndex v : outputs) Free(v);
    for (; !concatenations.empty(); concatenations.pop_back()) {
      Run({concatenations.back()}, -1, random);
      Free(concatenations.back());
    }
    problem_.op_names = {"op"};
    problem_.period = position_;
    return problem_;
  }

 private:
  plan::VariableIndex Malloc(PlanRandom* random) {
    problem_.variables.push_back({.size_bytes = random->Between(1, 100), .begin = position_++});
    return static_cast<plan::VariableIndex>(problem_.variables.size()) - 1;
  }
  void Free(plan::VariableIndex v) { problem_.variables[At(v)].end = position_++; }
  void Run(const std::vector<plan::VariableIndex>& reads, plan::VariableIndex written,
           PlanRandom* random) {
    plan::Op op;
    op.duration_ns = random->Between(1, 80);
    op.position = position_++;
    op.first_operand = static_cast<std::int64_t>(problem_.operands.size());
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = written >= 0 ? 1 : 0;
    op.traits.replayable = true;
    for (const plan::VariableIndex v : reads) problem_.operands.push_back({v, 0});
    if (written >= 0) problem_.operands.push_back({written, 0});
    problem_.ops.push_back(op);
  }

  plan::Problem problem_;
  plan::Position position_ = 0;
};

TEST(SketchTest, WhatLingersIsGoneBehindItsLastReplay) {
  int lingered = 0;
  for (int k = 0; k < plan::PlanCaseCount(500); ++k) {
    SCOPED_TRACE(k);
    PlanRandom random(static_cast<std::uint64_t>(k));
    const plan::Problem problem = DenseBlock().Make(&random);
    PlannerOptions options;
    options.least_bytes = 0;
    options.alignment = 1;
    const plan::Machine machine = plan::RandomMachine(&random);
    const Question question{problem, machine, options};
    JointEvaluator evaluator(question);
    Sketch sketch(evaluator.rewriter(), options.alignment);
    JointState state;
    for (std::size_t g = 0; g < evaluator.gaps().size(); ++g) {
      const bool drop = evaluator.CanDrop(g) && random.OneIn(2);
      state.choices.push_back(drop ? Choice::kDrop : Choice::kKeep);
    }
    ASSERT_TRUE(sketch.Draw({state.choices}));
    state.lingers.assign(problem.variables.size(), false);
    for (const Sketch::Revenant& x : sketch.revenants()) state.lingers[At(x.variable)] = true;
    lingered += sketch.revenants().empty() ? 0 : 1;
    ASSERT_TRUE(sketch.Draw({state.choices, state.lingers}));
    ASSERT_TRUE(evaluator.Evaluate(&state));
    EXPECT_TRUE(sketch.revenants().empty());
    EXPECT_EQ(sketch.replay_ns(), state.rewritten->replay_ns);
    EXPECT_EQ(sketch.script().needs_bytes, Needs(state, options.alignment));
  }
  EXPECT_GT(lingered, plan::PlanCaseCount(500) / 4);
}

TEST(SketchTest, IsTheRewritingOfATraceInOutline) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/resnet18_b100.trace.gz";
  const plan::Problem problem = plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
  Counts counts;
  for (std::uint64_t k = 0; k < 20; ++k) {
    SCOPED_TRACE(k);
    PlanRandom random(k);
    Compare(problem, &random, &counts);  // Ops, times and exits.
  }
  EXPECT_GT(counts.drawn, 5);
}

}  // namespace
}  // namespace plimsoll::planners

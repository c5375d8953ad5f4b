// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rewrite_row.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/replays_for_test.h"

namespace plimsoll::plan {
namespace {

using replays::Replayed;

std::vector<OpIndex> PlainRow(const Problem& problem) {
  std::vector<OpIndex> row(problem.ops.size());
  std::iota(row.begin(), row.end(), 0);
  return row;
}

/// Three layers forward and backward: v1 from nothing, v2 of v1, v3 of v2; then they are read.
Problem ThreeLayers() {
  Problem problem;
  AddTimedOp(1, {}, {0}, &problem);
  AddTimedOp(1, {0}, {1}, &problem);
  AddTimedOp(1, {1}, {2}, &problem);
  AddTimedOp(1, {1, 2}, {}, &problem);
  AddTimedOp(1, {0, 1}, {}, &problem);
  // Mallocs come before their ops.
  for (const Position begin : {0, 2, 4}) AddVariable(8, begin, 10, &problem);
  problem.period = 10;
  for (Op& op : problem.ops) {
    op.position = 2 * op.position + 1;
    op.traits.replayable = true;
  }
  problem.op_names = {"op"};
  problem.cyclic = false;
  return problem;
}

TEST(RewriteRowTest, ThePlainRowChangesNothing) {
  const Problem problem = ThreeLayers();
  const auto rewritten = RewriteRow(problem, PlainRow(problem));
  ASSERT_TRUE(rewritten);
  EXPECT_EQ(rewritten->problem.ops.size(), problem.ops.size());
  EXPECT_EQ(rewritten->problem.variables.size(), problem.variables.size());
  EXPECT_EQ(rewritten->replay_ns, 0);
}

TEST(RewriteRowTest, WhatIsMadeAgainEndsBehindItsLastUseBefore) {
  const Problem problem = ThreeLayers();
  const auto rewritten = RewriteRow(problem, {0, 1, 2, 3, 1, 4});
  ASSERT_TRUE(rewritten);
  EXPECT_EQ(rewritten->replay_ns, 1);
  EXPECT_EQ(rewritten->rebuilt_bytes, 8);
  ASSERT_EQ(rewritten->problem.variables.size(), 4U);
  const std::vector<Op>& ops = rewritten->problem.ops;
  const std::vector<Variable>& variables = rewritten->problem.variables;
  EXPECT_EQ(variables[1].end, ops[3].position + 1);
  EXPECT_EQ(rewritten->variable_source[3], 1);
  EXPECT_LT(variables[3].begin, ops[4].position);
  EXPECT_GT(variables[3].begin, ops[3].position);
}

TEST(RewriteRowTest, RefusesRowsThatDoNotFindWhatWasRecorded) {
  Problem problem = ThreeLayers();
  EXPECT_FALSE(RewriteRow(problem, {0, 2, 1, 3, 4}));     // Not in program order.
  EXPECT_FALSE(RewriteRow(problem, {0, 1, 2, 3}));        // One is missing.
  EXPECT_FALSE(RewriteRow(problem, {0, 0, 0, 1, 2, 4}));  // Likewise.
  problem.ops[1].traits.replayable = false;
  EXPECT_FALSE(RewriteRow(problem, {0, 1, 2, 3, 1, 4}));
}

TEST(RewriteRowTest, RandomRowsThatAreAcceptedComputeTheSame) {
  const int cases = PlanCaseCount(4000);
  int made = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 7'000'000'000);
    Problem recorded =
        random.OneIn(2) ? replays::LayeredProblem(&random) : RandomProblem(&random).Make();
    replays::AddTraits(&random, &recorded);
    const Problem problem = Unroll(recorded);
    std::vector<OpIndex> row;
    for (OpIndex i = 0; i < static_cast<OpIndex>(problem.ops.size()); ++i) {
      // A stretch of ops before this one, as far as they may run again.
      OpIndex again = i > 0 && random.OneIn(3) ? static_cast<OpIndex>(random.Between(0, i - 1)) : i;
      const OpIndex end = std::min<OpIndex>(i, again + 3);
      for (; again < end; ++again) {
        if (problem.ops[At(again)].traits.replayable) row.push_back(again);
      }
      row.push_back(i);
    }
    const std::optional<Rewritten> rewritten = RewriteRow(problem, row);
    if (!rewritten || row.size() == problem.ops.size()) continue;
    ++made;
    const Replayed replayed{rewritten->problem, ToRewriting(problem, *rewritten)};
    const auto violations = CheckPlan(replays::PlainPlan(replayed));
    ASSERT_TRUE(violations.empty()) << "case " << c << "\n"
                                    << Name(violations[0].law) << ": " << violations[0].message;
    ASSERT_TRUE(replays::ComputesTheSame(replayed)) << "case " << c;
  }
  EXPECT_GT(made, cases / 40);
}

}  // namespace
}  // namespace plimsoll::plan

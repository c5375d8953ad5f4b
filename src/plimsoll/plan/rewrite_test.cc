// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rewrite.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/plan/problem_for_test.h"

namespace plimsoll::plan {
namespace {

/// One op writes a variable that has its malloc at `begin`, another reads it two ops later.
Problem OneVariable(Position begin) {
  Problem problem;
  problem.op_names = {"op"};
  AddTimedOp(1, {}, {0}, &problem);
  AddTimedOp(1, {}, {}, &problem);
  AddTimedOp(1, {0}, {}, &problem);
  for (Op& op : problem.ops) ++op.position;
  problem.period = 6;
  problem.ops[0].traits.replayable = true;
  AddVariable(10, begin, 5, &problem);
  return problem;
}

TEST(RewriteTest, RunsTheWriterAgain) {
  const Problem problem = OneVariable(0);
  const auto made = Rewriter(problem, 1).Rewrite({true}, {.most_replays = 1});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->op_source, (std::vector<OpIndex>{0, 1, 0, 2}));
}

TEST(RewriteTest, RefusesAMallocAtThePositionOfTheOpThatWritesIt) {
  const Problem problem = OneVariable(1);
  const Rewriter rewriter(problem, 1);
  EXPECT_DEATH((void)rewriter.Rewrite({true}, {.most_replays = 1}), "variable 0 is not there");
}

}  // namespace
}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/autoswap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace plimsoll::planners {
namespace {

using plan::Problem;

void AddOp(plan::Position position, Nanoseconds duration_ns,
           std::initializer_list<plan::Operand> reads, std::initializer_list<plan::Operand> writes,
           Problem* problem) {
  problem->ops.push_back({.duration_ns = duration_ns,
                          .position = position,
                          .first_operand = static_cast<std::int64_t>(problem->operands.size()),
                          .read_count = static_cast<std::int32_t>(reads.size()),
                          .write_count = static_cast<std::int32_t>(writes.size())});
  problem->operands.insert(problem->operands.end(), reads);
  problem->operands.insert(problem->operands.end(), writes);
}

/// Three activations, stacked; the peak begins at position 4, where `top` does.
///
///     position   0  1  2  3  4  5  6  7  8  9  10 11
///     op            F0    F1    F2    B2    B1    B0
///     ns            10    20    30    40    50    60
///     wide 0     ├──────────────────────────────────┤   400 bytes, gap [2, 11), away to 10
///     mid 1            ├───────────────────────┤        100 bytes, gap [4, 9), away to 8
///     top 2                  ├───────────┤              200 bytes, no gap: used at once
///     load       400   500   700   700   500   400
Problem Stack() {
  Problem problem;
  problem.period = 12;
  problem.op_names = {"op"};
  problem.variables = {{.id = 0, .size_bytes = 400, .begin = 0, .end = 12},
                       {.id = 1, .size_bytes = 100, .begin = 2, .end = 10},
                       {.id = 2, .size_bytes = 200, .begin = 4, .end = 8}};
  AddOp(1, 10, {}, {{0, 0}}, &problem);
  AddOp(3, 20, {}, {{1, 0}}, &problem);
  AddOp(5, 30, {}, {{2, 0}}, &problem);
  AddOp(7, 40, {{2, 0}}, {}, &problem);
  AddOp(9, 50, {{1, 0}}, {}, &problem);
  AddOp(11, 60, {{0, 0}}, {}, &problem);
  return problem;
}

/// A copy of n bytes takes n / 4 ns either way.
plan::Machine Link() { return {"test", 0, 0, 4e9, 4e9, 4e9, 4e9}; }

class AutoswapTest : public testing::Test {
 protected:
  Question Ask(Bytes least_bytes) {
    options_.least_bytes = least_bytes;
    return {problem_, machine_, options_};
  }
  plan::Decision Decide(DecideFunction planner, Bytes load_limit, Bytes least_bytes) {
    const Question question = Ask(least_bytes);
    return planner(question)(load_limit);
  }
  Bytes Peak(const plan::Decision& decision) const {
    const std::vector<Bytes> load = plan::LeastLoad(problem_, decision);
    return *std::max_element(load.begin(), load.end());
  }

  Problem problem_ = Stack();
  const plan::Machine machine_ = Link();
  PlannerOptions options_;
};

TEST_F(AutoswapTest, ScoresAreWhatThePaperSays) {
  const ScoredGaps scored = ScoreCandidates(Ask(1));
  ASSERT_EQ(scored.gaps.size(), 2u);
  EXPECT_EQ(scored.gaps[0], (plan::Gap{0, 0, 5, 2, 11}));
  EXPECT_EQ(scored.gaps[1], (plan::Gap{1, 1, 4, 4, 9}));
  // wide is away for 20 + 30 + 40 + 50 ns, and its copies take 2 * 100: DOA is negative, so AOA is
  // divided by the size. mid: 30 + 40 - 2 * 25.
  EXPECT_EQ(scored.scores[0][0], 140 - 200);
  EXPECT_EQ(scored.scores[0][1], -60.0 / 400);
  EXPECT_EQ(scored.scores[1][0], 70 - 50);
  EXPECT_EQ(scored.scores[1][1], 20.0 * 100);
  // The area under the load between the two accesses.
  EXPECT_EQ(scored.scores[0][2], 20 * 500 + 30 * 700 + 40 * 700 + 50 * 500);
  EXPECT_EQ(scored.scores[1][2], 30 * 700 + 40 * 700);
  // wide is chosen first, and mid after it.
  EXPECT_EQ(scored.scores[0][3], 2);
  EXPECT_EQ(scored.scores[1][3], 1);
}

TEST_F(AutoswapTest, SmallVariablesAreNoCandidates) {
  const ScoredGaps scored = ScoreCandidates(Ask(101));
  ASSERT_EQ(scored.gaps.size(), 1u);
  EXPECT_EQ(scored.gaps[0].variable, 0);
}

TEST_F(AutoswapTest, ChoosesNothingWithinTheLimit) {
  EXPECT_TRUE(Decide(DecideDoa, 700, 1).swapped.empty());
}

TEST_F(AutoswapTest, StopsAtTheLimit) {
  // By DOA mid is first, and enough; by WDOA wide is.
  const plan::Decision by_doa = Decide(DecideDoa, 600, 1);
  ASSERT_EQ(by_doa.swapped.size(), 1u);
  EXPECT_EQ(by_doa.swapped[0].variable, 1);
  EXPECT_EQ(Peak(by_doa), 600);
  const plan::Decision by_wdoa = Decide(DecideWdoa, 600, 1);
  ASSERT_EQ(by_wdoa.swapped.size(), 1u);
  EXPECT_EQ(by_wdoa.swapped[0].variable, 0);
  EXPECT_EQ(Decide(DecideDoa, 599, 1).swapped.size(), 2u);
}

TEST_F(AutoswapTest, GoesOnWithOthersBelowTheLeastLoadOfItsCandidates) {
  // wide is the only candidate; without it, mid and top make 300.
  problem_.variables[0].size_bytes = 150;
  EXPECT_EQ(Decide(DecideSwdoa, 300, 101).swapped.size(), 1u);
  const plan::Decision below = Decide(DecideSwdoa, 250, 101);
  ASSERT_EQ(below.swapped.size(), 2u);
  EXPECT_EQ(below.swapped[0].variable, 0);
  EXPECT_EQ(below.swapped[1].variable, 1);
  EXPECT_EQ(Peak(below), 200);
  // Below 200 there is nothing left that would help.
  EXPECT_EQ(Decide(DecideSwdoa, 199, 101).swapped.size(), 2u);
}

}  // namespace
}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/gaps.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/plan/problem_for_test.h"

namespace plimsoll::plan {
namespace {

/// Six ops; variable 0 is written by ops 0 and 1 and read by ops 2 and 5.
Problem WrittenTwice() {
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {0}, {0}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(100, 0, 6, &problem);
  return problem;
}

/// Eight ops, the last two of which update a weight, variable 0, by a moment, variable 1; the first
/// reads the weight. Variable 2 is made by the first op and read by the sixth.
Problem Training(Bytes weight_bytes, Bytes moment_bytes, Bytes feature_map_bytes) {
  Problem problem;
  AddTimedOp(10, {0}, {2}, &problem);
  for (int k = 0; k < 4; ++k) AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {2}, {}, &problem);
  AddTimedOp(10, {1}, {1}, &problem);
  AddTimedOp(10, {0, 1}, {0}, &problem);
  AddPersistent(weight_bytes, &problem);
  AddPersistent(moment_bytes, &problem);
  AddVariable(feature_map_bytes, 0, 6, &problem);
  return problem;
}

std::vector<VariableIndex> VariablesOf(const std::vector<Gap>& gaps) {
  std::vector<VariableIndex> variables;
  for (const Gap& gap : gaps) variables.push_back(gap.variable);
  return variables;
}

TEST(ListGapsTest, SmallVariablesStay) {
  EXPECT_EQ(VariablesOf(ListGaps(Training(1600, 1600, 1599), 1600)),
            (std::vector<VariableIndex>{0, 1}));
  EXPECT_EQ(VariablesOf(ListGaps(Training(1599, 1599, 1600), 1600)),
            (std::vector<VariableIndex>{2}));
}

TEST(ListGapsTest, MomentsMayBeSmaller) {
  EXPECT_EQ(VariablesOf(ListGapsAndMoments(Training(1599, 100, 1599), 1600)),
            (std::vector<VariableIndex>{1}));
  EXPECT_TRUE(ListGapsAndMoments(Training(1599, 99, 1599), 1600).empty());
  EXPECT_EQ(ListGapsAndMoments(Training(1600, 1600, 1600), 1600),
            ListGaps(Training(1600, 1600, 1600), 1600));
}

TEST(FindLastWritersTest, ReadersDoNotCount) {
  const Problem problem = WrittenTwice();
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].after, 2);
  EXPECT_EQ(FindLastWriters(problem, gaps), std::vector<OpIndex>{1});
}

TEST(FindLastWritersTest, WhatIsOnlyReadIsCopiedBehindItsLastReader) {
  Problem problem;
  for (int k = 0; k < 3; ++k) AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddPersistent(100, &problem);
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(FindLastWriters(problem, gaps), std::vector<OpIndex>{3});
}

TEST(FindLastWritersTest, WhatNobodyWritesCanGoFromTheBeginningOn) {
  Problem problem;
  AddTimedOp(10, {0}, {}, &problem);
  for (int k = 0; k < 2; ++k) AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  for (int k = 0; k < 2; ++k) AddTimedOp(10, {}, {}, &problem);
  AddPersistent(100, &problem);
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 2U);
  EXPECT_EQ(FindLastWriters(problem, {gaps[0]}), std::vector<OpIndex>{-1});
  // But not if it has yet to come back then.
  EXPECT_EQ(FindLastWriters(problem, gaps), (std::vector<OpIndex>{0, 3}));
}

TEST(FindLastWritersTest, TheInstanceOfTheIterationBeforeIsAnother) {
  // Read for the first time by op 3, at the end; op 0 of the next iteration writes it.
  Problem problem;
  for (int k = 0; k < 6; ++k) AddTimedOp(10, {}, {}, &problem);
  problem.operands = {{0, 1}, {0, 0}, {0, 0}};
  const auto set = [&](std::size_t op, std::int64_t first, std::int32_t reads,
                       std::int32_t writes) {
    problem.ops[op].first_operand = first;
    problem.ops[op].read_count = reads;
    problem.ops[op].write_count = writes;
  };
  set(0, 0, 0, 1);
  set(3, 1, 1, 0);
  set(5, 2, 1, 0);
  AddVariable(100, 2, 7, &problem);
  const std::vector<Gap> gaps = GapsOf(problem, {0});
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].after, 3);
  EXPECT_EQ(FindLastWriters(problem, gaps), std::vector<OpIndex>{3});
}

}  // namespace
}  // namespace plimsoll::plan

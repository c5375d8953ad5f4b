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

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

ScheduleOptions LimitedTo(Bytes limit) {
  ScheduleOptions options;
  options.limit_bytes = limit;
  options.alignment = 1;
  return options;
}

/// Makes a plan that is expected to fit, and to be right.
Plan MakeRight(const Problem& problem, const Decision& decision, const ScheduleOptions& options) {
  auto made = MakePlan(problem, decision, OneBytePerNs(), options);
  if (const auto* misfit = std::get_if<Misfit>(&made)) {
    ADD_FAILURE() << "needs " << misfit->needed_bytes;
    return {};
  }
  Plan plan = std::get<Plan>(std::move(made));
  for (const PlanViolation& violation : CheckPlan(plan)) ADD_FAILURE() << violation.message;
  return plan;
}

/// Two activations of 100 bytes in a stack, and scratch of 50 on top.
///
///     op       0    1    2    3    4
///     wide     W───────────────────R     100 bytes, gap [1, 4)
///     mid           W─────────R          100 bytes, gap [2, 3)
///     top                W               50 bytes
///     load     100  200  250  200  100
Problem Stack() {
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(20, {}, {1}, &problem);
  AddTimedOp(30, {}, {2}, &problem);
  AddTimedOp(40, {1}, {}, &problem);
  AddTimedOp(50, {0}, {}, &problem);
  AddVariable(100, 0, 5, &problem);
  AddVariable(100, 1, 4, &problem);
  AddVariable(50, 2, 3, &problem);
  return problem;
}

TEST(LeastLoadTest, IsTheLoadWithoutWhatIsAway) {
  const Problem problem = Stack();
  EXPECT_EQ(LeastLoad(problem, {}), (std::vector<Bytes>{100, 200, 250, 200, 100}));
  EXPECT_EQ(LeastLoad(problem, {GapsOf(problem, {0})}),
            (std::vector<Bytes>{100, 100, 150, 100, 100}));
  EXPECT_EQ(LeastLoad(problem, {GapsOf(problem, {0, 1})}),
            (std::vector<Bytes>{100, 100, 50, 100, 100}));
}

TEST(LeastLoadTest, CountsSizesRoundedUp) {
  const Problem problem = Stack();
  EXPECT_EQ(LeastLoad(problem, {GapsOf(problem, {0})}, 64),
            (std::vector<Bytes>{128, 128, 192, 128, 128}));
}

TEST(LeastLoadTest, GoesAroundTheEnd) {
  //     op       0    1    2    3   │
  //     w             W             │     100 bytes, away for [2, 5): all but ops 0 and 1
  //     carried           ├─────────│──┤  10 bytes, [2, 5)
  Problem problem;
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddPersistent(100, &problem);
  AddVariable(10, 2, 5, &problem);
  EXPECT_EQ(LeastLoad(problem, {}), (std::vector<Bytes>{110, 100, 110, 110}));
  EXPECT_EQ(LeastLoad(problem, {GapsOf(problem, {0})}), (std::vector<Bytes>{10, 100, 10, 10}));
}

/// Ops with mallocs between them: op 0 at position 1, op 1 at 4, op 2 at 6, of 8 positions.
Problem WithRoomBetween() {
  Problem problem;
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  problem.ops[0].position = 1;
  problem.ops[1].position = 4;
  problem.ops[2].position = 6;
  problem.period = 8;
  AddPersistent(100, &problem);
  return problem;
}

TEST(AbsenceEndTest, IsRightBehindTheOpBeforeTheOneThatNeedsIt) {
  const Problem problem = WithRoomBetween();
  const std::vector<Gap> gaps = ListGaps(problem, 0);
  ASSERT_EQ(gaps.size(), 1U) << "from the last op to the first is no gap: no other op runs";
  EXPECT_EQ(gaps[0], (Gap{0, 0, 2, 2, 6}));
  EXPECT_EQ(AbsenceEnd(problem, gaps[0]), 5);
}

TEST(AbsenceEndTest, IsBehindTheLastOpIfTheFirstOneNeedsIt) {
  Problem problem = WithRoomBetween();
  problem.ops[2].read_count = 0;
  const std::vector<Gap> gaps = ListGaps(problem, 0);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0], (Gap{0, 0, 0, 2, 9}));
  EXPECT_EQ(AbsenceEnd(problem, gaps[0]), 7);
}

TEST(AbsenceEndTest, LiesInTheNextIterationIfTheGapEndsThere) {
  Problem problem = WithRoomBetween();
  problem.operands = {{0, 0}, {0, 0}};
  problem.ops[0].read_count = 0;
  problem.ops[1].read_count = 1;
  problem.ops[1].first_operand = 0;
  problem.ops[2].read_count = 0;
  const std::vector<Gap> gaps = ListGaps(problem, 0);
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0], (Gap{0, 1, 1, 5, 12}));
  EXPECT_EQ(AbsenceEnd(problem, gaps[0]), 8 + 2);
}

TEST(ScheduleTest, WithoutADecisionNothingMoves) {
  const Plan plan = MakeRight(Stack(), {}, LimitedTo(250));
  EXPECT_EQ(plan.footprint_bytes, 250);
  EXPECT_EQ(plan.host_bytes, 0);
  EXPECT_EQ(plan.residencies.size(), 3U);
  EXPECT_TRUE(plan.queues[1].empty());
  EXPECT_TRUE(plan.queues[2].empty());
}

TEST(ScheduleTest, SaysWhatADecisionNeedsAndWhere) {
  const Problem problem = Stack();
  const auto made = MakePlan(problem, {GapsOf(problem, {0})}, OneBytePerNs(), LimitedTo(149));
  ASSERT_TRUE(std::holds_alternative<Misfit>(made));
  EXPECT_EQ(std::get<Misfit>(made).needed_bytes, 150);
  EXPECT_EQ(std::get<Misfit>(made).position, 2);
  EXPECT_FALSE(std::get<Misfit>(made).host);
}

TEST(ScheduleTest, HoldsTheLimit) {
  const Problem problem = Stack();
  const Plan plan = MakeRight(problem, {GapsOf(problem, {0, 1})}, LimitedTo(100));
  EXPECT_EQ(plan.footprint_bytes, 100);
  EXPECT_EQ(plan.queues[1].size(), 2U);
  EXPECT_EQ(plan.queues[2].size(), 2U);
  EXPECT_EQ(plan.host_bytes, 200);
}

TEST(ScheduleTest, KeepsWhatNeedNotGo) {
  // Under an ample limit nobody waits for a copy out, and none is over in time.
  const Problem problem = Stack();
  const Plan plan = MakeRight(problem, {GapsOf(problem, {0, 1})}, LimitedTo(1000));
  EXPECT_TRUE(plan.queues[1].empty());
}

TEST(ScheduleTest, HoldsTheLoadLimitWhereItIsLower) {
  const Problem problem = Stack();
  ScheduleOptions options = LimitedTo(1000);
  options.load_limit_bytes = 150;
  const Plan plan = MakeRight(problem, {GapsOf(problem, {0, 1})}, options);
  EXPECT_LE(plan.footprint_bytes, 200) << "the load is at most 150";
  EXPECT_GE(plan.queues[1].size(), 1U);
  options.load_limit_bytes = 99;
  const auto made = MakePlan(problem, {GapsOf(problem, {0, 1})}, OneBytePerNs(), options);
  ASSERT_TRUE(std::holds_alternative<Misfit>(made));
  EXPECT_EQ(std::get<Misfit>(made).needed_bytes, 100);
}

TEST(ScheduleTest, SaysSoIfTheHostIsTooSmall) {
  const Problem problem = Stack();
  ScheduleOptions options = LimitedTo(100);
  options.host_limit_bytes = 199;
  const auto made = MakePlan(problem, {GapsOf(problem, {0, 1})}, OneBytePerNs(), options);
  ASSERT_TRUE(std::holds_alternative<Misfit>(made));
  EXPECT_TRUE(std::get<Misfit>(made).host);
  EXPECT_EQ(std::get<Misfit>(made).needed_bytes, 200);
  options.host_limit_bytes = 200;
  EXPECT_EQ(MakeRight(problem, {GapsOf(problem, {0, 1})}, options).host_bytes, 200);
}

TEST(ScheduleTest, AlignsOffsetsOnDeviceAndHost) {
  const Problem problem = Stack();
  ScheduleOptions options = LimitedTo(228);
  options.alignment = 128;
  const Plan plan = MakeRight(problem, {GapsOf(problem, {0, 1})}, options);
  for (const Residency& residency : plan.residencies) EXPECT_EQ(residency.offset % 128, 0);
  for (const Command& command : plan.commands) EXPECT_EQ(command.host_offset % 128, 0);
}

/// x is away three times; it is written before the first and the third of them only.
///
///     op     0    1    2    3    4    5    6
///     x      W─────────R─────────W─────────R     100 bytes, gaps [1, 2), [3, 4), [5, 6)
///     y           W         W         W          100 bytes each
Problem ThreeTimesAway() {
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {3}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(100, 0, 7, &problem);
  AddVariable(100, 1, 2, &problem);
  AddVariable(100, 3, 4, &problem);
  AddVariable(100, 5, 6, &problem);
  return problem;
}

TEST(ScheduleTest, UsesAHostCopyAgainUntilTheVariableIsWritten) {
  const Problem problem = ThreeTimesAway();
  const Decision decision = {GapsOf(problem, {0})};
  ASSERT_EQ(decision.swapped.size(), 3U);
  const Plan plan = MakeRight(problem, decision, LimitedTo(100));
  EXPECT_EQ(plan.queues[1].size(), 2U);
  ASSERT_EQ(plan.queues[2].size(), 3U);
  const auto host = [&](CommandIndex c) { return plan.commands[At(c)].host_offset; };
  EXPECT_EQ(host(plan.queues[1][0]), host(plan.queues[2][0]));
  EXPECT_EQ(host(plan.queues[1][0]), host(plan.queues[2][1]));
  EXPECT_EQ(host(plan.queues[1][1]), host(plan.queues[2][2]));
  EXPECT_EQ(plan.host_bytes, 100) << "the second copy takes the bytes of the first";
}

TEST(ScheduleTest, WhatAUselessAbsenceWouldHaveSavedTheNextOneSaves) {
  //     op     0    1    2    3    4    5
  //     x      W─────────R──────────────R     100 bytes, gaps [1, 2) and [3, 5); not written
  //     between y                          W          150 bytes, room for 150
  //
  // There is no time for the first absence, and no need. Without it, the second one must save x.
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(300, {}, {}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddVariable(100, 0, 6, &problem);
  AddVariable(150, 4, 5, &problem);
  const Decision decision = {GapsOf(problem, {0})};
  ASSERT_EQ(decision.swapped.size(), 2U);
  const Plan plan = MakeRight(problem, decision, LimitedTo(150));
  EXPECT_EQ(plan.queues[1].size(), 1U);
  EXPECT_EQ(plan.queues[2].size(), 1U);
  EXPECT_EQ(PredictIteration(problem, decision, OneBytePerNs(), LimitedTo(150)),
            problem.iteration_ns() + 100);
}

TEST(ScheduleTest, APersistentVariableThatNobodyWritesIsSavedOnceForAll) {
  //     op     0    1    2    3   │
  //     w      R         R        │     100 bytes, gaps [1, 2) and [3, 4)
  //     y           W         W   │     100 bytes each
  Problem problem;
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddPersistent(100, &problem);
  AddVariable(100, 1, 2, &problem);
  AddVariable(100, 3, 4, &problem);
  const Decision decision = {GapsOf(problem, {0})};
  ASSERT_EQ(decision.swapped.size(), 2U);
  const Plan plan = MakeRight(problem, decision, LimitedTo(100));
  EXPECT_EQ(plan.queues[1].size(), 1U);
  EXPECT_EQ(plan.queues[2].size(), 2U);
  EXPECT_EQ(plan.host_bytes, 100);
}

/// As a batch is: read at both ends of the iteration, written by nobody.
TEST(ScheduleTest, WhatNobodyWritesGoesWhileItIsRead) {
  Problem problem;
  AddTimedOp(50, {0}, {}, &problem);
  AddTimedOp(50, {}, {1}, &problem);
  AddTimedOp(50, {}, {}, &problem);
  AddTimedOp(50, {0}, {}, &problem);
  AddPersistent(50, &problem);
  AddVariable(60, 1, 2, &problem);
  const Decision decision{{GapsOf(problem, {0})[0]}};
  const Plan plan = MakeRight(problem, decision, LimitedTo(100));
  ASSERT_EQ(plan.queues[1].size(), 1U);
  // It waits for the last op of the iteration before, so that its bytes are free behind the first.
  EXPECT_EQ(plan.commands[At(plan.queues[1][0])].waits, (std::vector<Wait>{{3, 1}}));
  EXPECT_EQ(PredictIteration(problem, decision, OneBytePerNs(), LimitedTo(100)), 200);
}

TEST(ScheduleTest, APersistentVariableIsSavedWhereItHasBeenWritten) {
  //     op     0    1    2    3    4    5   │
  //     w      W         R         R        │     gaps [1, 2), [3, 4), [5, 6): one is saved
  //     y           W         W         W   │
  Problem problem;
  AddTimedOp(10, {}, {0}, &problem);
  AddTimedOp(10, {}, {1}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {2}, &problem);
  AddTimedOp(10, {0}, {}, &problem);
  AddTimedOp(10, {}, {3}, &problem);
  AddPersistent(100, &problem);
  for (const Position p : {1, 3, 5}) AddVariable(100, p, p + 1, &problem);
  const Decision decision = {GapsOf(problem, {0})};
  ASSERT_EQ(decision.swapped.size(), 3U);
  const Plan plan = MakeRight(problem, decision, LimitedTo(100));
  ASSERT_EQ(plan.queues[1].size(), 1U);
  EXPECT_EQ(plan.queues[2].size(), 3U);
  // It is the residency that op 0 writes that is saved.
  const Command& out = plan.commands[At(plan.queues[1][0])];
  EXPECT_EQ(plan.residencies[At(out.residency)].end % problem.period, 1);
  EXPECT_EQ(plan.host_bytes, 100);
}

TEST(ScheduleTest, PlacesAsLowAsCanBeIfAsked) {
  const Problem problem = Stack();
  ScheduleOptions options = LimitedTo(10'000);
  options.load_limit_bytes = 100;
  options.minimise = true;
  EXPECT_EQ(MakeRight(problem, {GapsOf(problem, {0, 1})}, options).footprint_bytes, 100);
}

TEST(ScheduleTest, PredictsWhatTheRehearsalTakes) {
  const Problem problem = Stack();
  EXPECT_EQ(PredictIteration(problem, {}, OneBytePerNs(), LimitedTo(250)), 150);
  EXPECT_EQ(PredictIteration(problem, {}, OneBytePerNs(), LimitedTo(249)), std::nullopt);
  // 10, wide out, 20, mid out, 30, mid in, 40, wide in, 50.
  EXPECT_EQ(PredictIteration(problem, {GapsOf(problem, {0, 1})}, OneBytePerNs(), LimitedTo(100)),
            150 + 4 * 100);
}

TEST(ScheduleTest, OfNothingIsNothing) {
  Problem problem;
  problem.period = 1;
  const Plan plan = MakeRight(problem, {}, LimitedTo(0));
  EXPECT_TRUE(plan.commands.empty());
  EXPECT_EQ(plan.footprint_bytes, 0);
}

TEST(ScheduleTest, EqualQuestionsHaveEqualPlans) {
  for (int c = 0; c < PlanCaseCount(200); ++c) {
    PlanRandom one(static_cast<std::uint64_t>(c) + 6'000'000'000);
    PlanRandom two(static_cast<std::uint64_t>(c) + 6'000'000'000);
    EXPECT_EQ(RandomPlan(&one), RandomPlan(&two)) << "case " << c;
  }
}

/// The load of the residencies at every position.
std::vector<Bytes> LoadOf(const Plan& plan) {
  std::vector<Bytes> load(At(plan.problem.period), 0);
  for (const Residency& x : plan.residencies) {
    for (Position p = x.begin; p < x.end; ++p) {
      load[At(p % plan.problem.period)] += plan.problem.variables[At(x.variable)].size_bytes;
    }
  }
  return load;
}

TEST(ScheduleTest, LoadsOfRandomPlansAreWithinTheirLimit) {
  int away = 0;
  for (int c = 0; c < PlanCaseCount(1000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 8'000'000'000);
    const Problem problem = Unroll(RandomProblem(&random).Make());
    const Decision decision = {ListGaps(problem, 0)};
    ScheduleOptions options = LimitedTo(1000);
    options.load_limit_bytes = LeastPeak(problem, decision) + random.Between(0, 3);
    options.prefetch = random.OneIn(2) ? kPrefetchEarly : kPrefetchJustInTime;
    const auto made = MakePlan(problem, decision, RandomMachine(&random), options);
    ASSERT_TRUE(std::holds_alternative<Plan>(made)) << "case " << c;
    const auto& plan = std::get<Plan>(made);
    ASSERT_TRUE(CheckPlan(plan).empty()) << "case " << c << "\n" << Dump(plan);
    const std::vector<Bytes> load = LoadOf(plan);
    ASSERT_LE(*std::max_element(load.begin(), load.end()), *options.load_limit_bytes)
        << "case " << c << "\n"
        << Dump(plan);
    away += plan.queues[2].empty() ? 0 : 1;
  }
  EXPECT_GT(away, 0);
}

}  // namespace
}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/planners/autoswap.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Problem Read(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
}

const Planner& Find(std::string_view name) { return *FindPlanner(name); }
plan::Machine H200() { return *plan::FindMachine("h200"); }

TEST(LargestReductionTest, FindsALimitBelowThePeakAtWhichThePlanIsAsFastAsWithout) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const auto outcome = LargestReduction(Find("autoswap-swdoa"), problem, H200(), {});
  ASSERT_TRUE(outcome && outcome->plan);
  EXPECT_LT(outcome->plan->limit_bytes, plan::ProfileLoad(problem).peak_bytes);
  EXPECT_LE(outcome->plan->footprint_bytes, outcome->plan->limit_bytes);
  EXPECT_EQ(outcome->timeline.iteration_ns, problem.iteration_ns());
  EXPECT_TRUE(plan::CheckPlan(*outcome->plan).empty());
}

TEST(LargestReductionTest, IsThePlanThatThePlannerMakesAtThatLimit) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const auto outcome = LargestReduction(Find("autoswap-aoa"), problem, H200(), {}, 0.1);
  ASSERT_TRUE(outcome && outcome->plan);
  PlannerOptions options;
  options.limit_bytes = outcome->plan->limit_bytes;
  const Outcome again = MakePlan(Find("autoswap-aoa"), problem, H200(), options);
  EXPECT_EQ(again.plan, outcome->plan);
}

TEST(LargestReductionTest, GoesLowerThanEveryStepThatPasses) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const auto outcome = LargestReduction(Find("autoswap-wdoa"), problem, H200(), {}, 0.05);
  ASSERT_TRUE(outcome && outcome->plan);
  const Bytes peak = plan::ProfileLoad(problem).peak_bytes;
  PlannerOptions options;
  for (int percent = 95; percent >= 25; percent -= 10) {
    options.limit_bytes = peak * percent / 100;
    // The steps of the search are of the peak in aligned sizes, a little above.
    if (options.limit_bytes > outcome->plan->limit_bytes - peak / 100) continue;
    const Outcome lower = MakePlan(Find("autoswap-wdoa"), problem, H200(), options);
    if (!lower.plan) continue;
    EXPECT_GT(static_cast<double>(lower.timeline.iteration_ns),
              1.05 * static_cast<double>(problem.iteration_ns()))
        << percent;
  }
}

TEST(LargestReductionTest, RecomputationGoesBelowWhatSwappingCan) {
  // Variable 0 is cheap to make again; to swap it takes ten times as long.
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(100, {}, {0}, &problem);
  plan::AddTimedOp(0, {}, {1}, &problem);
  plan::AddTimedOp(200, {0}, {}, &problem);
  problem.ops[0].traits.replayable = true;
  for (std::size_t i = 0; i < 3; ++i) problem.ops[i].position = static_cast<int>(2 * i) + 1;
  problem.period = 7;
  plan::AddVariable(1000, 0, 6, &problem);
  plan::AddVariable(1000, 2, 4, &problem);
  PlannerOptions options;
  options.least_bytes = options.alignment = 1;
  options.evaluations = 20;
  const auto outcome =
      LargestReduction(Find("joint"), problem, plan::OneBytePerNs(), options, 0.35);
  ASSERT_TRUE(outcome && outcome->plan);
  EXPECT_EQ(outcome->timeline.iteration_ns, 400);
  EXPECT_EQ(outcome->plan->limit_bytes, 1000);
}

TEST(LargestReductionTest, MoreOverheadBuysALowerLimit) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  Bytes last = kMaxBytes;
  for (const double most : {0.0, 0.2, 0.6}) {
    const auto outcome = LargestReduction(Find("autoswap-swdoa"), problem, H200(), {}, most);
    ASSERT_TRUE(outcome && outcome->plan);
    EXPECT_LT(outcome->plan->limit_bytes, last) << most;
    EXPECT_LE(static_cast<double>(outcome->timeline.iteration_ns),
              (1 + most) * static_cast<double>(problem.iteration_ns()));
    last = outcome->plan->limit_bytes;
  }
}

TEST(LargestReductionTest, WithoutSwapsTheFootprintIsAboveThePeak) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const auto outcome = LargestReduction(Find("none"), problem, H200(), {});
  ASSERT_TRUE(outcome && outcome->plan);
  const Bytes peak = plan::ProfileLoad(problem).peak_bytes;
  EXPECT_GE(outcome->plan->limit_bytes, peak);
  EXPECT_LE(outcome->plan->limit_bytes, peak + peak / 100);
}

TEST(LargestReductionTest, SaysSoWhereNoLimitPasses) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  // It always swaps everything, and such a link makes that slow.
  const plan::Machine slow{"slow", 0, 0, 1e9, 1e9, 1e9, 1e9};
  EXPECT_FALSE(LargestReduction(Find("geeps"), problem, slow, {}));
}

TEST(LargestReductionTest, EndsWhereItIsToldTo) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  PlannerOptions options;
  int asked = 0;
  options.stop = [&] { return ++asked >= 3; };
  const auto outcome = LargestReduction(Find("autoswap-doa"), problem, H200(), options);
  ASSERT_TRUE(outcome && outcome->plan);
  // At 110, 100 and 95 % it has planned; the planner itself does not ask.
  EXPECT_GE(outcome->plan->limit_bytes, plan::ProfileLoad(problem).peak_bytes * 95 / 100);
  EXPECT_LE(asked, 4);
}

TEST(MinimumCandidateLoadTest, IsWhatAllCandidatesTogetherReach) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const plan::Machine machine = H200();
  PlannerOptions options;
  const Question question{problem, machine, options};
  const Bytes least = MinimumCandidateLoad(question);
  EXPECT_GT(least, 0);
  EXPECT_LT(least, plan::ProfileLoad(problem).peak_bytes);
  // Down to it the candidates suffice; one byte lower something else must go as well.
  const ScoredGaps scored = ScoreCandidates(question);
  const std::vector<double> scores(scored.gaps.size(), 0);
  const auto count = [&](Bytes limit) {
    return Choose(question, scored.gaps, scores, limit).swapped.size();
  };
  EXPECT_LE(count(least), scored.gaps.size());
  EXPECT_GT(count(least - 1), scored.gaps.size());
}

TEST(MinimumCandidateLoadTest, IsThePeakIfNothingIsLargeEnough) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const plan::Machine machine = H200();
  PlannerOptions options;
  options.least_bytes = kMaxBytes;
  EXPECT_EQ(MinimumCandidateLoad({problem, machine, options}),
            plan::ProfileLoad(problem).peak_bytes);
}

/// Three ops and one copy out; times are set by hand.
///
///     position   0   1    2   3    4   5
///     op             F0       F1       B0      10 ns each
///     big 0      ├────────────────────────
///     top 1               ├─────────┤           the peak begins at position 2
class AvoidableOverheadTest : public testing::Test {
 protected:
  AvoidableOverheadTest() {
    plan::Problem& problem = plan_.problem;
    problem.period = 6;
    problem.variables = {{.id = 0, .size_bytes = 100, .begin = 0, .end = 6},
                         {.id = 1, .size_bytes = 10, .begin = 2, .end = 4}};
    for (const plan::Position position : {1, 3, 5}) {
      problem.ops.push_back({.duration_ns = 10, .position = position});
    }
    plan_.commands.resize(4);
    for (plan::CommandIndex c = 0; c < 3; ++c) plan_.commands[static_cast<std::size_t>(c)].op = c;
    plan_.commands[3].queue = plan::Queue::kCopyOut;
    plan_.queues = {{{0, 1, 2}, {3}, {}}};
  }
  /// F1 waits until `f1_ns`; B0 follows at once.
  Nanoseconds Avoidable(Nanoseconds f1_ns, sim::Span copy_out) const {
    sim::Timeline timeline;
    timeline.iteration_ns = f1_ns + 20;
    timeline.spans = {{0, 10}, {f1_ns, f1_ns + 10}, {f1_ns + 10, f1_ns + 20}, copy_out};
    return AvoidableOverhead(plan_, timeline);
  }

  plan::Plan plan_;
};

TEST_F(AvoidableOverheadTest, IsNoneWithoutOverhead) { EXPECT_EQ(Avoidable(10, {12, 18}), 0); }

TEST_F(AvoidableOverheadTest, IsTheTimeInWhichNoCopyOutRunsBeforeThePeak) {
  // F1, at the peak, begins at 50: 40 ns too late. The copy runs for 48 of the 50.
  EXPECT_EQ(Avoidable(50, {2, 50}), 2);
  EXPECT_EQ(Avoidable(50, {10, 45}), 15);
}

TEST_F(AvoidableOverheadTest, IsAtMostTheOverhead) {
  EXPECT_EQ(Avoidable(50, {49, 50}), 40);
  EXPECT_EQ(Avoidable(50, {60, 65}), 40);
}

TEST_F(AvoidableOverheadTest, CountsTheCopiesOfTheIterationBefore) {
  // The period is 70: the copy goes on for 30 ns in the next iteration.
  EXPECT_EQ(Avoidable(50, {55, 100}), 20);
  // It may belong to an earlier one altogether.
  EXPECT_EQ(Avoidable(50, {75, 120}), 5);
  EXPECT_EQ(Avoidable(50, {2 - 70, 50 - 70}), 2);
}

TEST_F(AvoidableOverheadTest, AnIterationThatRunsOnceHasNoneBefore) {
  plan_.problem.cyclic = false;
  EXPECT_EQ(Avoidable(50, {55, 100}), 40);
}

TEST_F(AvoidableOverheadTest, OfARealPlanIsWithinItsOverhead) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  PlannerOptions options;
  options.limit_bytes = plan::ProfileLoad(problem).peak_bytes / 2;
  const plan::Machine slow{"slow", 0, 0, 10e9, 10e9, 10e9, 10e9};
  const Outcome outcome = MakePlan(Find("autoswap-swdoa"), problem, slow, options);
  ASSERT_TRUE(outcome.plan);
  const Nanoseconds avoidable = AvoidableOverhead(*outcome.plan, outcome.timeline);
  EXPECT_GE(avoidable, 0);
  EXPECT_LT(avoidable, outcome.timeline.iteration_ns - problem.iteration_ns());
}

}  // namespace
}  // namespace plimsoll::planners

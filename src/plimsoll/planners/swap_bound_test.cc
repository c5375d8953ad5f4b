// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/swap_bound.h"

#include <gtest/gtest.h>

#include <string>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/sim/simulate.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

/// A byte per nanosecond each way, and three quarters of that both ways at once.
plan::Machine Link() { return {"test", 0, 0, 1e9, 1e9, 0.75e9, 0.75e9}; }

plan::Problem Parse(const std::string& events) {
  const std::string text = "trace 1\n{}\n" + events;
  return plan::MakeProblem(trace::ParseTrace(text, "test"));
}

TEST(LinkSecondsTest, IsTheLeastTimeOfBothDirections) {
  EXPECT_DOUBLE_EQ(LinkSeconds(Link(), 3'000'000'000, 0), 3);
  EXPECT_DOUBLE_EQ(LinkSeconds(Link(), 0, 3'000'000'000), 3);
  EXPECT_DOUBLE_EQ(LinkSeconds(Link(), 3'000'000'000, 3'000'000'000), 4);
  EXPECT_DOUBLE_EQ(LinkSeconds(Link(), 4'000'000'000, 3'000'000'000), 5);
  // One at a time is faster than a link that both directions slow down by more than half.
  plan::Machine shared = Link();
  shared.both_in_bytes_per_s = shared.both_out_bytes_per_s = 0.25e9;
  EXPECT_DOUBLE_EQ(LinkSeconds(shared, 3'000'000'000, 3'000'000'000), 6);
}

TEST(SwapBoundTest, CountsWhatMustComeInAndGoOut) {
  // Variable 2 is away while 3 is there; 100 bytes of weights nobody writes may be away for good.
  const plan::Problem problem = Parse(
      "p 1 100\nm 2 1000\nx 0.1 F a 1 2\nm 3 1000\nx 0.1 F b - 3\nx 0.1 B c 3 -\nf 3\n"
      "x 0.1 B d 1,2 -\nf 2\n");
  ASSERT_FALSE(problem.cyclic);
  EXPECT_EQ(SwapBound(problem, Link(), 2100), 400);
  // 1000 must come in, of which 100 were never out: 900 both ways at 0.75, then 100 in.
  EXPECT_EQ(SwapBound(problem, Link(), 1100), 1299);
}

TEST(SwapBoundTest, ScratchThatIsFreedInBetweenSharesItsBytes) {
  const std::string op = "x 0.1 F a 1 -\n";
  const auto need = [&](const std::string& scratch) {
    const plan::Problem problem = Parse("p 1 7\n" + op + scratch + op);
    return plan::LoadOps(problem)[1].needed_bytes();
  };
  EXPECT_EQ(need("m 2 10\nf 2\nm 3 20\nf 3\n"), 27);
  EXPECT_EQ(need("m 2 10\nm 3 20\nf 2\nf 3\n"), 37);
}

/// The same plan with a thousand times the bytes, so that the link matters and the rounding of the
/// simulator, less than a byte and a nanosecond a copy, does not.
void Enlarge(plan::Plan* plan) {
  constexpr std::int64_t kTimes = 1000;
  for (plan::Variable& variable : plan->problem.variables) variable.size_bytes *= kTimes;
  for (plan::Residency& residency : plan->residencies) residency.offset *= kTimes;
  for (plan::Command& command : plan->commands) command.host_offset *= kTimes;
  for (Bytes* bytes :
       {&plan->limit_bytes, &plan->host_limit_bytes, &plan->footprint_bytes, &plan->host_bytes}) {
    *bytes *= kTimes;
  }
}

TEST(SwapBoundTest, NoRandomPlanBeatsIt) {
  plan::PlanRandom random(11);
  int binding = 0;
  int reached = 0;
  for (int k = 0; k < plan::PlanCaseCount(3000); ++k) {
    std::optional<plan::Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    Enlarge(&*plan);
    plan->machine.both_in_bytes_per_s *= static_cast<double>(random.Between(1, 10)) / 10;
    plan->machine.both_out_bytes_per_s *= static_cast<double>(random.Between(1, 10)) / 10;
    ASSERT_TRUE(plan::CheckPlan(*plan).empty());
    const sim::Timeline timeline = sim::Simulate(*plan);
    const Nanoseconds bound = SwapBound(plan->problem, plan->machine, plan->limit_bytes);
    const auto copies = static_cast<Nanoseconds>(plan->queues[1].size() + plan->queues[2].size());
    const Nanoseconds rounding = 1 + copies * 100;  // A byte takes 100 ns at most.
    ASSERT_GE(timeline.iteration_ns + rounding, bound) << "case " << k << "\n" << Dump(*plan);
    if (bound == plan->problem.iteration_ns()) continue;
    ++binding;
    if (timeline.iteration_ns < bound + bound / 10) ++reached;
  }
  EXPECT_GT(binding, 0) << "the link never mattered";
  EXPECT_GT(reached, 0) << "the bound was never near";
}

TEST(SwapBoundTest, NoPlanHasALimitBelowItsLargestOp) {
  plan::PlanRandom random(12);
  int equal = 0;
  for (int k = 0; k < plan::PlanCaseCount(2000); ++k) {
    const std::optional<plan::Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    const std::vector<plan::OpLoad> loads = plan::LoadOps(plan->problem);
    const Bytes needed = loads[static_cast<std::size_t>(plan::FindLargestOp(loads))].needed_bytes();
    ASSERT_GE(plan->limit_bytes, needed) << Dump(*plan);
    equal += plan->limit_bytes == needed ? 1 : 0;
  }
  EXPECT_GT(equal, 0);
}

TEST(SwapBoundTest, FallsWithTheLimitAndHoldsOnTraces) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/resnet18_b100.trace.gz";
  const plan::Problem problem = plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
  const plan::Machine machine = *plan::FindMachine("v100");
  PlannerOptions options;
  Nanoseconds before = 0;
  for (const Bytes limit : {Bytes{4} << 30, Bytes{1} << 30, Bytes{800} << 20}) {
    const Nanoseconds bound = SwapBound(problem, machine, limit);
    EXPECT_GE(bound, before) << limit;
    before = bound;
    options.limit_bytes = limit;
    const Outcome outcome = MakePlan(*FindPlanner("autoswap-aoa"), problem, machine, options);
    if (outcome.plan) {
      EXPECT_GE(outcome.timeline.iteration_ns, bound) << limit;
    }
  }
  EXPECT_EQ(SwapBound(problem, machine, kMaxBytes), problem.iteration_ns());
  EXPECT_GT(before, problem.iteration_ns());
}

}  // namespace
}  // namespace plimsoll::planners

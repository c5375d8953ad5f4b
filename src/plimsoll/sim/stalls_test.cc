// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/sim/stalls.h"

#include <gtest/gtest.h>

#include <limits>

#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::sim {
namespace {

TEST(StallsTest, NameWhatWasWaitedFor) {
  // Op 0 makes the variable, op 1 runs without it, op 2 needs it back.
  plan::Plan plan;
  plan.problem.cyclic = false;
  plan.problem.period = 3;
  plan.problem.variables = {{.size_bytes = 100, .end = 3}};
  plan.problem.ops = {{.duration_ns = 10, .position = 0},
                      {.duration_ns = 20, .position = 1},
                      {.duration_ns = 30, .position = 2}};
  plan.machine = {"test", 0, 0, 1e9, 2e9, 1e9, 2e9};
  plan.residencies = {{.end = 1, .copy_out = 3}, {.begin = 2, .end = 3, .copy_in = 4}};
  plan.commands = {{plan::Queue::kCompute, 0, -1, 0, {}},
                   {plan::Queue::kCompute, 1, -1, 0, {}},
                   {plan::Queue::kCompute, 2, -1, 0, {{4, 0}}},
                   {plan::Queue::kCopyOut, -1, 0, 0, {{0, 0}}},
                   {plan::Queue::kCopyIn, -1, 1, 0, {{3, 0}}}};
  plan.queues = {{{0, 1, 2}, {3}, {4}}};
  const Timeline timeline = Simulate(plan);
  EXPECT_EQ(timeline.iteration_ns, 10 + 100 + 50 + 30);
  const Usage usage = MeasureUsage(plan, timeline, 10);
  EXPECT_EQ(usage.busy_ns, (std::array<Nanoseconds, 3>{60, 100, 50}));
  EXPECT_EQ(usage.stall_ns, 130);
  ASSERT_EQ(usage.stalls.size(), 1U);
  EXPECT_EQ(usage.stalls[0].command, 2);
  EXPECT_EQ(usage.stalls[0].awaited, 4);
  EXPECT_EQ(usage.stalls[0].start_ns, 30);
  EXPECT_EQ(usage.stalls[0].length_ns, 130);
}

TEST(StallsTest, AddUpToTheStallTime) {
  plan::PlanRandom random(5);
  int stalled = 0;
  for (int k = 0; k < plan::PlanCaseCount(500); ++k) {
    const std::optional<plan::Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    const Timeline timeline = Simulate(*plan);
    const Usage usage = MeasureUsage(*plan, timeline, std::numeric_limits<std::size_t>::max());
    EXPECT_EQ(usage.busy_ns[0], plan->problem.iteration_ns());
    Nanoseconds sum = 0;
    for (const Stall& stall : usage.stalls) {
      sum += stall.length_ns;
      EXPECT_GE(stall.awaited, 0) << Dump(*plan);
    }
    EXPECT_EQ(sum, usage.stall_ns) << Dump(*plan);
    stalled += sum > 0 ? 1 : 0;
  }
  EXPECT_GT(stalled, 0);
}

}  // namespace
}  // namespace plimsoll::sim

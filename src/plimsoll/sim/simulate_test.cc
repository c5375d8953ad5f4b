// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/sim/stalls.h"

namespace plimsoll::sim {
namespace {

using plan::CommandIndex;
using plan::Plan;
using plan::Queue;
using plan::Wait;

/// A plan of ops of these durations. A byte takes a nanosecond either way.
Plan Ops(bool cyclic, std::initializer_list<Nanoseconds> durations) {
  Plan plan;
  plan.problem.cyclic = cyclic;
  plan.machine = {"test", 0, 0, 1e9, 1e9, 1e9, 1e9};
  for (const Nanoseconds duration : durations) {
    const auto i = static_cast<plan::OpIndex>(plan.problem.ops.size());
    plan.problem.ops.push_back({.duration_ns = duration, .position = i});
    plan.commands.push_back({Queue::kCompute, i, -1, 0, {}});
    plan.queues[0].push_back(i);
  }
  plan.problem.period = static_cast<plan::Position>(durations.size());
  return plan;
}

/// Appends a copy of so many bytes, and returns its command. What it copies does not matter here.
CommandIndex AddCopy(Queue queue, Bytes bytes, std::vector<Wait> waits, Plan* plan) {
  const auto index = static_cast<CommandIndex>(plan->commands.size());
  plan->problem.variables.push_back({.size_bytes = bytes});
  plan->residencies.push_back(
      {.variable = static_cast<plan::VariableIndex>(plan->problem.variables.size()) - 1});
  plan->commands.push_back({queue, -1,
                            static_cast<plan::ResidencyIndex>(plan->residencies.size()) - 1, 0,
                            std::move(waits)});
  plan->queues[static_cast<std::size_t>(queue)].push_back(index);
  return index;
}

void ExpectSpan(const Timeline& timeline, CommandIndex command, Nanoseconds start_ns,
                Nanoseconds end_ns) {
  const Span& span = timeline.spans[static_cast<std::size_t>(command)];
  EXPECT_EQ(span.start_ns, start_ns) << "command " << command;
  EXPECT_EQ(span.end_ns, end_ns) << "command " << command;
}

TEST(SimulateTest, OfNothingTakesNoTime) {
  const Timeline timeline = Simulate(Plan{});
  EXPECT_FALSE(timeline.deadlocked);
  EXPECT_EQ(timeline.iteration_ns, 0);
}

TEST(SimulateTest, OpsFollowEachOther) {
  for (const bool cyclic : {true, false}) {
    const Timeline timeline = Simulate(Ops(cyclic, {10, 0, 30}));
    EXPECT_FALSE(timeline.deadlocked);
    EXPECT_EQ(timeline.iteration_ns, 40);
    ExpectSpan(timeline, 0, 0, 10);
    ExpectSpan(timeline, 1, 10, 10);
    ExpectSpan(timeline, 2, 10, 40);
  }
}

TEST(SimulateTest, ACommandWaitsForItsQueueAndItsEdges) {
  //     compute    │0│─ 1 ─│              │2│
  //     copy out     ├── 3 ──┤── 4 ──┤             4 waits for nothing, but for 3 before it
  //     copy in              ├──── 5 ────┤
  //     ns         0 10     60       110  130
  Plan plan = Ops(false, {10, 30, 10});
  const CommandIndex first = AddCopy(Queue::kCopyOut, 50, {{0, 0}}, &plan);
  const CommandIndex second = AddCopy(Queue::kCopyOut, 50, {}, &plan);
  const CommandIndex in = AddCopy(Queue::kCopyIn, 70, {{first, 0}}, &plan);
  plan.commands[2].waits = {{in, 0}};
  const Timeline timeline = Simulate(plan);
  EXPECT_FALSE(timeline.deadlocked);
  EXPECT_EQ(timeline.iterations, 1);
  EXPECT_EQ(timeline.iteration_ns, 140);
  ExpectSpan(timeline, 1, 10, 40);
  ExpectSpan(timeline, 2, 130, 140);
  ExpectSpan(timeline, first, 10, 60);
  ExpectSpan(timeline, second, 60, 110);
  ExpectSpan(timeline, in, 60, 130);
}

TEST(SimulateTest, CopiesShareTheLink) {
  Plan plan = Ops(false, {10, 10});
  plan.machine.both_out_bytes_per_s = plan.machine.both_in_bytes_per_s = 0.5e9;
  const CommandIndex out = AddCopy(Queue::kCopyOut, 100, {}, &plan);
  const CommandIndex in = AddCopy(Queue::kCopyIn, 60, {}, &plan);
  plan.commands[1].waits = {{out, 0}};
  const Timeline timeline = Simulate(plan);
  ExpectSpan(timeline, in, 0, 120);
  ExpectSpan(timeline, out, 0, 160);
  EXPECT_EQ(timeline.iteration_ns, 170);
}

TEST(SimulateTest, CopiesCostOpsWhatTheMachineSays) {
  Plan plan = Ops(false, {100, 10, 10});
  plan.machine.slowdown_by_out = 2;
  plan.machine.handover_ns = 5;
  const CommandIndex out = AddCopy(Queue::kCopyOut, 60, {}, &plan);
  plan.commands[1].waits = {{out, 0}};
  plan.commands[2].waits = {{0, 0}};
  const Timeline timeline = Simulate(plan);
  ExpectSpan(timeline, out, 0, 60);
  ExpectSpan(timeline, 0, 0, 130);
  ExpectSpan(timeline, 1, 130, 145);  // It loses 5 ns, though the copy has long been over.
  ExpectSpan(timeline, 2, 145, 155);  // It waits for an op alone.
}

TEST(SimulateTest, AnEdgeMayReachBackIntoTheIterationBefore) {
  //     compute    │0│1│            │0│1│            │0│...
  //     copy out     ├───── 2 ─────┤  ├───── 2 ─────┤
  Plan plan = Ops(true, {10, 20});
  const CommandIndex out = AddCopy(Queue::kCopyOut, 100, {{0, 0}}, &plan);
  plan.commands[0].waits = {{out, 1}};
  const Timeline timeline = Simulate(plan);
  EXPECT_FALSE(timeline.deadlocked);
  EXPECT_EQ(timeline.iteration_ns, 110);
  ExpectSpan(timeline, 0, 0, 10);
  ExpectSpan(timeline, 1, 10, 30);
  ExpectSpan(timeline, out, 10, 110);
}

TEST(SimulateTest, TheFirstIterationsDoNotCount) {
  // Twice as long a reach lets two iterations go before anybody waits: they take 30 ns.
  Plan plan = Ops(true, {10, 20});
  const CommandIndex out = AddCopy(Queue::kCopyOut, 100, {{0, 0}}, &plan);
  plan.commands[0].waits = {{out, 2}};
  const Timeline timeline = Simulate(plan);
  EXPECT_EQ(timeline.iteration_ns, 100);
  EXPECT_GT(timeline.iterations, 2);
}

TEST(SimulateTest, ALinkThatCannotKeepUpSetsThePace) {
  // Four variables leave and come back in every iteration, each in time for a while; but the copies
  // out take 320 ns, the ops 308 ns, and so each iteration begins with 12 ns more of arrears.
  Plan plan = Ops(true, {77, 77, 77, 77});
  for (CommandIndex i = 0; i < 4; ++i) {
    const CommandIndex out = AddCopy(Queue::kCopyOut, 80, {{i, 0}}, &plan);
    const CommandIndex in = AddCopy(Queue::kCopyIn, 10, {{out, i == 3 ? 1 : 0}}, &plan);
    plan.commands[static_cast<std::size_t>(i)].waits = {{in, i == 3 ? 0 : 1}};
  }
  // The copy in for the last op comes first in its queue: its copy out is of the iteration before.
  std::vector<CommandIndex>& ins = plan.queues[2];
  std::rotate(ins.begin(), ins.end() - 1, ins.end());
  const Timeline timeline = Simulate(plan);
  ASSERT_FALSE(timeline.deadlocked);
  EXPECT_EQ(timeline.iteration_ns, 320);
}

TEST(SimulateTest, SeesCommandsThatWaitForEachOther) {
  Plan plan = Ops(false, {10, 10});
  const CommandIndex out = AddCopy(Queue::kCopyOut, 5, {}, &plan);
  const CommandIndex in = AddCopy(Queue::kCopyIn, 5, {{out, 0}}, &plan);
  plan.commands[static_cast<std::size_t>(out)].waits = {{in, 0}};
  plan.commands[1].waits = {{in, 0}};
  EXPECT_TRUE(Simulate(plan).deadlocked);
  plan.commands[static_cast<std::size_t>(out)].waits = {{0, 0}};
  EXPECT_FALSE(Simulate(plan).deadlocked);
}

TEST(SimulateTest, SeesACommandThatWaitsForOneBehindItInItsQueue) {
  for (const bool cyclic : {true, false}) {
    Plan plan = Ops(cyclic, {10, 10});
    plan.commands[0].waits = {{1, 0}};
    EXPECT_TRUE(Simulate(plan).deadlocked);
    plan.commands[0].waits = {{1, 1}};
    EXPECT_FALSE(Simulate(plan).deadlocked);
  }
}

TEST(SimulateTest, CopiesMayEndInTheNextIteration) {
  //     compute    │─── 0 ───│1│─── 0 ───│1│
  //     copy out              ├── 2 ──┤           from 40 to 90, of 50 ns
  Plan plan = Ops(true, {40, 10});
  const CommandIndex out = AddCopy(Queue::kCopyOut, 50, {{0, 0}}, &plan);
  plan.commands[1].waits = {{out, 1}};
  const Timeline timeline = Simulate(plan);
  EXPECT_EQ(timeline.iteration_ns, 50);
  ExpectSpan(timeline, out, 40, 90);
}

TEST(SimulateTest, EverySpanOfARandomPlanKeepsItsOrder) {
  int looked = 0;
  for (int c = 0; c < plan::PlanCaseCount(2000); ++c) {
    plan::PlanRandom random(static_cast<std::uint64_t>(c) + 5'000'000'000);
    const std::optional<Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    ++looked;
    const Timeline timeline = Simulate(*plan);
    ASSERT_FALSE(timeline.deadlocked) << Dump(*plan);
    ASSERT_GE(timeline.iteration_ns, plan->problem.iteration_ns()) << Dump(*plan);
    const auto span = [&](CommandIndex x) { return timeline.spans[static_cast<std::size_t>(x)]; };
    for (std::size_t x = 0; x < plan->commands.size(); ++x) {
      for (const Wait& wait : plan->commands[x].waits) {
        if (wait.lag > 0 && !plan->problem.cyclic) continue;
        ASSERT_GE(timeline.spans[x].start_ns,
                  span(wait.command).end_ns - wait.lag * timeline.iteration_ns)
            << "case " << c << ", command " << x << "\n"
            << Dump(*plan);
      }
    }
    const Usage usage = MeasureUsage(*plan, timeline, 0);
    for (std::size_t q = 0; q < plan::kQueues; ++q) {
      const auto& queue = plan->queues[q];
      for (std::size_t k = 1; k < queue.size(); ++k) {
        ASSERT_LE(span(queue[k - 1]).end_ns, span(queue[k]).start_ns) << Dump(*plan);
      }
      if (!plan->problem.cyclic) continue;
      ASSERT_LE(usage.busy_ns[q], timeline.iteration_ns) << "case " << c << "\n" << Dump(*plan);
    }
  }
  EXPECT_GT(looked, 0);
}

TEST(SimulateTest, PlansTakeAboutAsLongAsThePredictionSays) {
  int swapped = 0;
  int slower = 0;
  for (int c = 0; c < plan::PlanCaseCount(3000); ++c) {
    plan::PlanRandom random(static_cast<std::uint64_t>(c) + 6'100'000'000);
    const plan::Problem problem = plan::Unroll(plan::RandomProblem(&random).Make());
    const plan::Decision decision = {plan::ListGaps(problem, 0)};
    plan::ScheduleOptions options;
    options.alignment = 1;
    options.load_limit_bytes = plan::LeastPeak(problem, decision) + random.Between(0, 2);
    options.limit_bytes = *options.load_limit_bytes + 1000;  // Whatever fragmentation takes.
    const plan::Machine machine = plan::RandomMachine(&random);
    const auto made = plan::MakePlan(problem, decision, machine, options);
    const auto predicted = plan::PredictIteration(problem, decision, machine, options);
    ASSERT_TRUE(std::holds_alternative<Plan>(made) && predicted) << "case " << c;
    if (std::get<Plan>(made).queues[2].empty()) continue;
    ++swapped;
    const Nanoseconds simulated = Simulate(std::get<Plan>(made)).iteration_ns;
    slower += simulated > *predicted + *predicted / 20 ? 1 : 0;
  }
  std::cout << slower << " of " << swapped << " plans are slower than predicted\n";
  EXPECT_GT(swapped, 0);
  // A rehearsal looks at one lap, and memory changes hands a bit differently in the others.
  EXPECT_LT(slower, swapped / 25);
}

}  // namespace
}  // namespace plimsoll::sim

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/plan/check_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

/// Weights stay; x leaves for the host, and y has its bytes meanwhile.
///
///     position   0   1    2   3    4   5    6   7
///     compute        conv     relu     back
///     weights    ├────────────────────────────┤   at 0
///     x          ├────────┤        ├────────┤     at 4, out and in again
///     y                   ├────────┤              at 4
Plan Swap() {
  Plan plan;
  plan.problem.period = 7;
  plan.problem.op_names = {"conv", "relu", "back"};
  plan.problem.variables = {
      {.id = 10, .size_bytes = 4, .begin = 0, .end = 7, .kind = VariableKind::kPersistent},
      {.id = 11, .size_bytes = 4, .begin = 0, .end = 6},
      {.id = 12, .size_bytes = 4, .begin = 2, .end = 4}};
  plan.residencies = {
      {0, 0, 7, 0, -1, -1}, {1, 0, 2, 4, -1, -1}, {1, 4, 6, 4, -1, -1}, {2, 2, 4, 4, -1, -1}};
  AddOp(1, {{0, 0}}, {{1, 0}}, {}, &plan);
  AddOp(3, {{0, 0}}, {{2, 0}}, {{3, 0}}, &plan);
  AddOp(5, {{1, 0}}, {{0, 0}}, {{4, 0}}, &plan);
  AddCopy(Queue::kCopyOut, 1, 0, {{0, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 2, 0, {{3, 0}, {1, 0}}, &plan);
  plan.limit_bytes = plan.footprint_bytes = 8;
  plan.host_limit_bytes = plan.host_bytes = 4;
  return plan;
}

/// Swap(), and u beside x, at 8 of the arena and at 4 of the slab.
Plan SwapTwo() {
  Plan plan = Swap();
  plan.problem.variables.push_back({.id = 13, .size_bytes = 4, .begin = 0, .end = 6});
  plan.problem.operands = {{0, 0}, {1, 0}, {3, 0}, {0, 0}, {2, 0}, {1, 0}, {3, 0}, {0, 0}};
  plan.problem.ops[0].write_count = 2;
  plan.problem.ops[1].first_operand = 3;
  plan.problem.ops[2].first_operand = 5;
  plan.problem.ops[2].read_count = 2;
  plan.residencies.push_back({3, 0, 2, 8, -1, -1});
  plan.residencies.push_back({3, 4, 6, 8, -1, -1});
  AddCopy(Queue::kCopyOut, 4, 4, {{0, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 5, 4, {{5, 0}}, &plan);
  plan.commands[2].waits = {{6, 0}};
  plan.limit_bytes = plan.footprint_bytes = 12;
  plan.host_limit_bytes = plan.host_bytes = 8;
  return plan;
}

/// Weights leave after the only op that needs them and come back before the iteration ends; y has
/// their bytes meanwhile. Their copy in is for the next iteration.
///
///     position   0   1    2   3    4
///     compute        conv     relu     │   conv
///     weights    ────────┤         ├───────────── at 0
///     y                   ├────────┤              at 0
Plan Ring() {
  Plan plan;
  plan.problem.period = 5;
  plan.problem.op_names = {"conv", "relu"};
  plan.problem.variables = {
      {.id = 10, .size_bytes = 4, .begin = 0, .end = 5, .kind = VariableKind::kPersistent},
      {.id = 11, .size_bytes = 4, .begin = 2, .end = 4}};
  plan.residencies = {{0, 4, 7, 0, -1, -1}, {1, 2, 4, 0, -1, -1}};
  AddOp(1, {{0, 0}}, {{0, 0}}, {{3, 1}}, &plan);
  AddOp(3, {}, {{1, 0}}, {{2, 0}}, &plan);
  AddCopy(Queue::kCopyOut, 0, 0, {{0, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 0, 0, {{2, 0}, {1, 0}}, &plan);
  plan.limit_bytes = plan.footprint_bytes = plan.host_limit_bytes = plan.host_bytes = 4;
  return plan;
}

/// One op with two workspaces, both freed before it runs, as recorders write it down.
Plan Workspaces(Position second_begin) {
  Plan plan;
  plan.problem.period = 6;
  plan.problem.op_names = {"conv"};
  plan.problem.variables = {
      {.size_bytes = 4, .begin = 0, .end = 2, .kind = VariableKind::kWorkspace},
      {.size_bytes = 4, .begin = second_begin, .end = 3, .kind = VariableKind::kWorkspace}};
  plan.residencies = {{0, 0, 2, 0, -1, -1}, {1, second_begin, 3, 0, -1, -1}};
  AddOp(4, {}, {}, {}, &plan);
  plan.limit_bytes = plan.footprint_bytes = 4;
  return plan;
}

TEST(CheckTest, AcceptsPlansThatAreRight) {
  Plan nothing;
  nothing.problem.period = 1;
  ExpectAccepted(nothing);
  ExpectAccepted(Swap());
  ExpectAccepted(SwapTwo());
  ExpectAccepted(Ring());
}

TEST(CheckTest, AcceptsAPlanThatRunsOnce) {
  Plan plan = SwapTwo();
  plan.problem.cyclic = false;
  ExpectAccepted(plan);
}

TEST(CheckTest, KeepsAsManyViolationsAsAskedFor) {
  Plan plan = SwapTwo();
  for (Command& command : plan.commands) command.waits.clear();
  EXPECT_EQ(CheckPlan(plan, 3).size(), 3U);
  EXPECT_TRUE(CheckPlan(plan, 0).empty());
  plan.queues[1][0] = 77;
  EXPECT_TRUE(CheckPlan(plan, 0).empty());
}

TEST(CheckTest, RefusesOpsOutOfProgramOrder) {
  Plan plan = Swap();
  std::swap(plan.queues[0][0], plan.queues[0][1]);
  ExpectRefused(plan, PlanLaw::kShape, {"op 0 (conv)", "op 1 (relu)"});
}

TEST(CheckTest, RefusesIndicesOutOfRange) {
  const auto refuse = [](auto change) {
    Plan plan = Swap();
    change(&plan);
    ExpectRefused(plan, PlanLaw::kShape, {});
  };
  refuse([](Plan* plan) { plan->queues[1][0] = 77; });
  refuse([](Plan* plan) { plan->queues[1].push_back(3); });
  refuse([](Plan* plan) { plan->queues[2].clear(); });
  refuse([](Plan* plan) { plan->commands[3].residency = 4; });
  refuse([](Plan* plan) { plan->commands[3].residency = 3; });
  refuse([](Plan* plan) { plan->commands[2].op = -1; });
  refuse([](Plan* plan) { plan->commands[2].waits = {{5, 0}}; });
  refuse([](Plan* plan) { plan->commands[2].waits = {{4, -1}}; });
  refuse([](Plan* plan) { plan->residencies[0].variable = 3; });
  refuse([](Plan* plan) { plan->residencies[0].copy_in = 4; });
  refuse([](Plan* plan) { plan->problem.variables[1].instances = 2; });
  refuse([](Plan* plan) { plan->problem.operands[0].variable = 9; });
  refuse([](Plan* plan) { plan->problem.operands[1].age = 1; });
  refuse([](Plan* plan) { plan->problem.ops[2].first_operand = 5; });
  // Sums of these leave 64 bits.
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  refuse([](Plan* plan) { plan->problem.ops[2].first_operand = kHuge; });
  refuse([](Plan* plan) { plan->problem.operands[1].age = std::numeric_limits<int>::max(); });
  refuse([](Plan* plan) {
    plan->problem.period = plan->problem.variables[0].end = plan->residencies[0].end = kHuge;
  });
}

TEST(CheckTest, RefusesIterationsThatDoNotFitTogether) {
  Plan plan = Swap();
  plan.problem.cyclic = false;
  plan.commands[1].waits = {{3, 1}};
  ExpectRefused(plan, PlanLaw::kBoundary, {"command 1", "command 3"});
  plan = Swap();
  plan.residencies[0].end = 8;
  ExpectRefused(plan, PlanLaw::kBoundary, {"variable 0"});
  plan = Swap();
  plan.residencies[0].begin = 1;  // There is no way back to where the iteration began.
  ExpectRefused(plan, PlanLaw::kBoundary, {"op 0 (conv)", "op 2 (back)"});
  plan = Ring();
  plan.residencies[0].copy_in = -1;
  plan.queues[2].clear();
  plan.commands.pop_back();
  plan.commands[0].waits.clear();
  ExpectRefused(plan, PlanLaw::kBoundary, {"variable 0", "op 0 (conv)"});
}

TEST(CheckTest, RefusesWhatReachesOverALimit) {
  Plan plan = Swap();
  plan.limit_bytes = 7;
  ExpectRefused(plan, PlanLaw::kLimit, {"variable 1", "of 7"});
  plan = Swap();
  plan.residencies[0].offset = -1;
  ExpectRefused(plan, PlanLaw::kLimit, {"variable 0"});
  plan = Swap();
  plan.host_limit_bytes = 3;
  ExpectRefused(plan, PlanLaw::kLimit, {"copy-out 3 of variable 1"});
  plan.commands[3].host_offset = plan.commands[4].host_offset = plan.residencies[1].offset =
      std::numeric_limits<Bytes>::max();
  ExpectRefused(plan, PlanLaw::kLimit, {"residency 1 of variable 1"});
  plan = Swap();
  plan.footprint_bytes = 7;
  ExpectRefused(plan, PlanLaw::kLimit, {"footprint"});
  plan = Swap();
  plan.host_bytes = 5;
  ExpectRefused(plan, PlanLaw::kLimit, {"host"});
}

TEST(CheckTest, RefusesCycles) {
  Plan plan = Swap();
  plan.commands[1].waits = {{4, 0}};
  ExpectRefused(plan, PlanLaw::kDeadlock, {"op 1 (relu)", "copy-in 4 of variable 1"});
  plan = Swap();
  plan.commands[0].waits = {{2, 0}};  // A later one of its own queue.
  ExpectRefused(plan, PlanLaw::kDeadlock, {"op 0 (conv)", "op 2 (back)"});
  plan.commands[0].waits = {{2, 1}};
  ExpectAccepted(plan);
}

TEST(CheckTest, RefusesOperandsThatAreNotThere) {
  Plan plan = Swap();
  plan.residencies[2].end = 5;
  ExpectRefused(plan, PlanLaw::kContent, {"op 2 (back)", "variable 1", "0 residencies"});
  plan = Swap();
  plan.residencies[1].end = 6;
  ExpectRefused(plan, PlanLaw::kContent, {"op 2 (back)", "variable 1", "2 residencies"});
  plan = Swap();
  plan.residencies.pop_back();
  ExpectRefused(plan, PlanLaw::kContent, {"op 1 (relu)", "variable 2"});
}

TEST(CheckTest, RefusesContentFromNowhere) {
  Plan plan = Swap();  // Neither malloc nor copy in.
  plan.residencies[3].begin = 3;
  ExpectRefused(plan, PlanLaw::kContent, {"variable 2", "op 1 (relu)"});
  plan = Swap();  // Not saved, yet brought back.
  plan.residencies[1].copy_out = -1;
  plan.residencies[2].copy_in = 3;
  plan.commands.erase(plan.commands.begin() + 3);
  plan.commands[3] = {Queue::kCopyIn, -1, 2, 0, {}};
  plan.commands[1].waits = plan.commands[2].waits = {};
  plan.queues[1].clear();
  plan.queues[2] = {3};
  ExpectRefused(plan, PlanLaw::kContent, {"variable 1", "op 0 (conv)", "copy-in 3 of variable 1"});
}

TEST(CheckTest, RefusesAVersionThatIsTooOld) {
  Plan plan = Swap();
  plan.commands[0].waits = {{3, 0}};
  plan.commands[3].waits = {};
  ExpectRefused(plan, PlanLaw::kContent, {"copy-out 3 of variable 1", "op 0 (conv)"});
}

TEST(CheckTest, RefusesACopyInOfWhatIsNotSaved) {
  Plan plan = Swap();
  plan.residencies[3].offset = 8;  // y elsewhere: its op waits for nobody.
  plan.limit_bytes = plan.footprint_bytes = 12;
  plan.commands[1].waits = {};
  ExpectAccepted(plan);
  plan.commands[4].waits = {{1, 0}};
  ExpectRefused(plan, PlanLaw::kSaved, {"copy-in 4 of variable 1", "copy-out 3 of variable 1"});
  plan.commands[4].waits = {{3, 1}, {1, 0}};  // Of the iteration before.
  ExpectRefused(plan, PlanLaw::kSaved, {"copy-in 4 of variable 1", "copy-out 3 of variable 1"});
  plan = SwapTwo();
  plan.commands[4].host_offset = 4;
  ExpectRefused(plan, PlanLaw::kSaved, {"copy-in 4 of variable 1", "copy-out 3 of variable 1"});
}

TEST(CheckTest, RefusesAnOpThatDoesNotWaitForItsCopy) {
  Plan plan = Swap();
  plan.commands[2].waits = {};
  ExpectRefused(plan, PlanLaw::kArrival, {"copy-in 4 of variable 1", "op 2 (back)"});
  plan = Ring();
  plan.commands[0].waits = {{3, 2}};  // Of an iteration too early.
  ExpectRefused(plan, PlanLaw::kArrival, {"copy-in 3 of variable 0", "op 0 (conv)"});
}

TEST(CheckTest, RefusesAWriteUnderACopy) {
  Plan plan = Swap();
  plan.commands[3].waits = {};
  ExpectRefused(plan, PlanLaw::kCopiedWrite, {"copy-out 3 of variable 1", "op 0 (conv)"});
}

TEST(CheckTest, RefusesBytesInUse) {
  Plan plan = Swap();
  plan.commands[1].waits = {};
  ExpectRefused(plan, PlanLaw::kAddress,
                {"copy-out 3 of variable 1", "op 1 (relu) of variable 2", "[4, 8)"});
  plan = Swap();
  plan.commands[4].waits = {{3, 0}};
  ExpectRefused(plan, PlanLaw::kAddress, {"op 1 (relu) of variable 2", "copy-in 4 of variable 1"});
  plan = Swap();
  plan.residencies[3].offset = 3;  // One byte of the weights.
  ExpectRefused(plan, PlanLaw::kAddress,
                {"op 1 (relu) of variable 2", "op 0 (conv) of variable 0", "[3, 4)"});
}

TEST(CheckTest, RefusesBytesInUseByTheIterationBefore) {
  Plan plan = Ring();
  plan.commands[3].waits = {{2, 0}, {1, 1}};
  ExpectRefused(plan, PlanLaw::kAddress, {"op 1 (relu) of variable 1", "copy-in 3 of variable 0"});
  // Alone at its bytes, a copy in still has to wait for its own copy out of the lap before.
  plan = Ring();
  plan.residencies[1].offset = 4;
  plan.limit_bytes = plan.footprint_bytes = 8;
  plan.commands[1].waits = {};
  plan.commands[3].waits = {{2, 0}};
  ExpectAccepted(plan);
}

TEST(CheckTest, LetsWorkspacesOfOneOpFollowEachOtherAsRecorded) {
  ExpectAccepted(Workspaces(2));
  ExpectRefused(Workspaces(1), PlanLaw::kAddress, {"variable 0", "variable 1", "op 0 (conv)"});
}

TEST(CheckTest, RefusesScratchThatEndsBeforeItsFree) {
  Plan plan = Workspaces(1);
  plan.residencies[0].end = 1;  // As if the program had freed it before the second malloc.
  ExpectRefused(plan, PlanLaw::kContent, {"residency 0 of variable 0", "op 0 (conv)"});
}

TEST(CheckTest, RefusesACopyIntoTheScratchOfAnOpThatRunsLater) {
  Plan plan = Swap();  // y becomes scratch of relu, freed before relu runs.
  plan.problem.variables[2].kind = VariableKind::kWorkspace;
  plan.problem.variables[2].end = plan.residencies[3].end = 3;
  plan.problem.ops[1].write_count = 0;
  ExpectAccepted(plan);
  plan.commands[4].waits = {{3, 0}};
  ExpectRefused(plan, PlanLaw::kAddress, {"op 1 (relu) of variable 2", "copy-in 4 of variable 1"});
}

TEST(CheckTest, RefusesHostBytesInUse) {
  Plan plan = SwapTwo();
  plan.commands[5].host_offset = plan.commands[6].host_offset = 3;
  plan.host_bytes = 7;
  ExpectRefused(plan, PlanLaw::kHostAddress,
                {"copy-in 4 of variable 1", "copy-out 5 of variable 3", "[3, 4)"});
}

/// The op that needs the weights back has scratch, freed before it runs: both are there together.
///
///     position   0    1    2   3   4
///     compute    conv relu         back
///     weights    ●─────────────────●
///     scratch              ├───┤   ╵ used here
TEST(CheckTest, SchedulerCountsScratchUntilItsOpRuns) {
  Plan plan;
  AddOp(0, {{0, 0}}, {}, {}, &plan);
  AddOp(1, {}, {}, {}, &plan);
  AddOp(4, {{0, 0}}, {}, {}, &plan);
  Problem problem = plan.problem;
  problem.period = 5;
  problem.op_names = {"conv", "relu", "back"};
  problem.variables = {{.size_bytes = 4, .begin = 0, .end = 5, .kind = VariableKind::kPersistent},
                       {.size_bytes = 4, .begin = 2, .end = 3, .kind = VariableKind::kWorkspace}};
  const Decision decision{ListGaps(problem, 0)};
  const Machine machine = *FindMachine("h200");
  const auto small = MakePlan(problem, decision, machine, {.limit_bytes = 4, .alignment = 1});
  EXPECT_TRUE(std::holds_alternative<Misfit>(small));
  const auto large = MakePlan(problem, decision, machine, {.limit_bytes = 8, .alignment = 1});
  ASSERT_TRUE(std::holds_alternative<Plan>(large));
  ExpectAccepted(std::get<Plan>(large));
}

TEST(CheckTest, AcceptsWhateverTheSchedulerMakes) {
  const int cases = PlanCaseCount(4000);
  int made = 0;
  int copies = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c));
    const std::optional<Plan> plan = RandomPlan(&random);
    if (!plan) continue;
    ++made;
    copies += static_cast<int>(plan->queues[1].size());
    const std::vector<PlanViolation> violations = CheckPlan(*plan);
    ASSERT_TRUE(violations.empty())
        << "case " << c << "\n"
        << Dump(*plan) << Name(violations[0].law) << ": " << violations[0].message;
    ASSERT_LE(plan->footprint_bytes, plan->limit_bytes);
  }
  EXPECT_GT(made, cases / 3);
  EXPECT_GT(copies, cases / 3);
  std::cout << made << " plans of " << cases << " problems, " << copies << " copies out\n";
}

}  // namespace
}  // namespace plimsoll::plan

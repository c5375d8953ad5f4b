// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <initializer_list>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/check_for_test.h"
#include "plimsoll/plan/host_copies_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

/// x is saved once and brought back twice, from the same host bytes: back only reads it. Then u is
/// saved to those bytes, and comes back to where x was dropped.
///
///     position   0   1    2   3    4   5    6   7    8   9    10
///     compute        conv     relu     back     loss     update
///     x          ├────────┤        ├────────┤                    at 0, out and in again
///                                                    ├────────┤  at 8, in again
///     y                   ├────────┤                             at 0
///     u          ├────────┤                                      at 4
///                                                    ├────────┤  at 0
///     host                [x out][x in]    [x in]
///                                               [u out][u in]    at 0 of the slab
Plan Reuse() {
  Plan plan;
  plan.problem.period = 11;
  plan.problem.op_names = {"conv", "relu", "back", "loss", "update"};
  plan.problem.variables = {{.size_bytes = 4, .begin = 0, .end = 10},
                            {.size_bytes = 4, .begin = 0, .end = 10},
                            {.size_bytes = 4, .begin = 2, .end = 4}};
  plan.residencies = {{0, 0, 2, 0, -1, -1}, {0, 4, 6, 0, -1, -1},  {0, 8, 10, 8, -1, -1},
                      {1, 0, 2, 4, -1, -1}, {1, 8, 10, 0, -1, -1}, {2, 2, 4, 0, -1, -1}};
  AddOp(1, {}, {{0, 0}, {1, 0}}, {}, &plan);
  AddOp(3, {}, {{2, 0}}, {{5, 0}}, &plan);
  AddOp(5, {{0, 0}}, {}, {{6, 0}}, &plan);
  AddOp(7, {}, {}, {}, &plan);
  AddOp(9, {{0, 0}, {1, 0}}, {}, {{9, 0}}, &plan);
  AddCopy(Queue::kCopyOut, 0, 0, {{0, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 1, 0, {{5, 0}, {1, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 2, 0, {{5, 0}}, &plan);
  AddCopy(Queue::kCopyOut, 3, 0, {{0, 0}, {7, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 4, 0, {{8, 0}, {2, 0}}, &plan);
  plan.limit_bytes = plan.footprint_bytes = 12;
  plan.host_limit_bytes = plan.host_bytes = 4;
  return plan;
}

/// Weights that conv writes and back reads leave twice per iteration, and are saved once.
///
///     position   0   1    2   3    4   5    6   7    8
///     compute        conv     relu     back     loss     │   conv
///     weights    ────────┤         ├────────┤        ├───────────── at 0
///     y                   ├────────┤                                at 0
///     z                                     ├────────┤              at 0
///     host                [out] [in]            [in]
Plan ReuseRing() {
  Plan plan;
  plan.problem.period = 9;
  plan.problem.op_names = {"conv", "relu", "back", "loss"};
  plan.problem.variables = {
      {.size_bytes = 4, .begin = 0, .end = 9, .kind = VariableKind::kPersistent},
      {.size_bytes = 4, .begin = 2, .end = 4},
      {.size_bytes = 4, .begin = 6, .end = 8}};
  plan.residencies = {
      {0, 8, 11, 0, -1, -1}, {0, 4, 6, 0, -1, -1}, {1, 2, 4, 0, -1, -1}, {2, 6, 8, 0, -1, -1}};
  AddOp(1, {{0, 0}}, {{0, 0}}, {{6, 1}}, &plan);
  AddOp(3, {}, {{1, 0}}, {{4, 0}}, &plan);
  AddOp(5, {{0, 0}}, {}, {{5, 0}}, &plan);
  AddOp(7, {}, {{2, 0}}, {}, &plan);
  AddCopy(Queue::kCopyOut, 0, 0, {{0, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 1, 0, {{4, 0}, {1, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 0, 0, {{3, 0}}, &plan);
  plan.limit_bytes = plan.footprint_bytes = plan.host_limit_bytes = plan.host_bytes = 4;
  return plan;
}

TEST(CheckDropsTest, AcceptsAHostCopyThatIsUsedAgain) {
  Plan plan = Reuse();
  ExpectAccepted(plan);
  plan.problem.cyclic = false;
  ExpectAccepted(plan);
  plan = ReuseRing();
  ExpectAccepted(plan);
  plan.problem.cyclic = false;
  plan.commands[0].waits = {};
  ExpectAccepted(plan);
}

TEST(CheckDropsTest, RefusesToDropWhatIsWritten) {
  Plan plan = Reuse();
  plan.problem.ops[2].read_count = 0;  // Back writes x instead.
  plan.problem.ops[2].write_count = 1;
  ExpectRefused(plan, PlanLaw::kContent, {"copy-in 7 of variable 0", "op 2 (back)"});
  plan = ReuseRing();  // What back has read is saved, and what conv has written is not.
  plan.residencies[0].copy_out = -1;
  plan.residencies[1].copy_out = 4;
  plan.commands[4].residency = 1;
  plan.commands[4].waits = {{2, 0}};
  plan.commands[1].waits = {};
  plan.commands[5].waits = {{1, 0}};
  plan.commands[3].waits = {{4, 0}};
  ExpectRefused(plan, PlanLaw::kContent, {"copy-in 5 of variable 0", "op 0 (conv)"});
}

TEST(CheckDropsTest, RefusesToDropWhatWasNeverSaved) {
  Plan plan = Reuse();
  host_copies::RemoveCommand(5, &plan);
  ExpectRefused(plan, PlanLaw::kContent, {"copy-in 5 of variable 0", "op 0 (conv)"});
  std::swap(plan.problem.ops[0].read_count, plan.problem.ops[0].write_count);
  ExpectRefused(plan, PlanLaw::kContent, {"copy-in 5 of variable 0", "op 0 (conv)"});
  plan = ReuseRing();
  host_copies::RemoveCommand(4, &plan);
  ExpectRefused(plan, PlanLaw::kBoundary, {"copy-in 4 of variable 0", "op 0 (conv)"});
}

TEST(CheckDropsTest, RefusesASecondCopyInOfWhatIsNotSaved) {
  const auto refuse = [](Plan plan, std::initializer_list<std::string> words) {
    ExpectRefused(plan, PlanLaw::kSaved, words);
  };
  Plan plan = Reuse();
  plan.commands[7].host_offset = 1;
  plan.host_limit_bytes = plan.host_bytes = 5;
  refuse(plan, {"copy-in 7 of variable 0", "copy-out 5 of variable 0"});
  plan = Reuse();
  plan.queues[2] = {7, 6, 9};
  plan.commands[7].waits = {};
  refuse(plan, {"copy-in 7 of variable 0", "copy-out 5 of variable 0"});
  plan.commands[7].waits = {{5, 1}};  // Of the iteration before.
  refuse(plan, {"copy-in 7 of variable 0", "copy-out 5 of variable 0"});
  plan = ReuseRing();
  plan.queues[2] = {6, 5};
  plan.commands[6].waits = {{3, 1}};
  refuse(plan, {"copy-in 6 of variable 0", "copy-out 4 of variable 0"});
}

TEST(CheckDropsTest, RefusesHostBytesThatWillBeReadAgain) {
  Plan plan = Reuse();
  plan.commands[8].waits = {{0, 0}, {6, 0}};  // After the first copy in of x alone.
  ExpectRefused(plan, PlanLaw::kHostAddress,
                {"copy-in 7 of variable 0", "copy-out 8 of variable 1", "[0, 4)"});
  plan.queues[2] = {7, 6, 9};  // Now that is the last one.
  ExpectAccepted(plan);
  plan.commands[8].waits = {{0, 0}, {7, 0}};
  ExpectRefused(plan, PlanLaw::kHostAddress,
                {"copy-in 6 of variable 0", "copy-out 8 of variable 1", "[0, 4)"});
}

TEST(CheckDropsTest, RefusesBytesOfWhatIsDroppedBeforeItsLastOp) {
  Plan plan = Reuse();
  plan.commands[9].waits = {{8, 0}};
  ExpectRefused(plan, PlanLaw::kAddress, {"op 2 (back) of variable 0", "copy-in 9 of variable 1"});
  plan = Reuse();
  plan.residencies[1].end = 8;
  plan.problem.ops[3].read_count = 1;  // Loss reads x, too.
  ExpectRefused(plan, PlanLaw::kAddress, {"op 3 (loss) of variable 0", "copy-in 9 of variable 1"});
  plan.commands[9].waits = {{8, 0}, {3, 0}};
  ExpectAccepted(plan);
  plan = ReuseRing();
  plan.commands[6].waits = {};
  ExpectRefused(plan, PlanLaw::kAddress, {"op 2 (back) of variable 0", "copy-in 6 of variable 0"});
}

TEST(CheckDropsTest, FollowsAHostCopyOfWhatIsFirstTouchedInTheNextIteration) {
  Plan plan = Reuse();  // x is malloc'ed at the very end, and all ops find it an iteration old.
  plan.problem.variables[0].begin = 10;
  plan.problem.variables[0].end = 21;
  plan.residencies[0].begin = 10;
  plan.residencies[0].end = 13;
  for (const std::size_t operand : {0, 3, 4}) plan.problem.operands[operand].age = 1;
  ExpectAccepted(plan);
  Plan broken = plan;
  broken.commands[8].waits = {{0, 0}, {6, 0}};
  ExpectRefused(broken, PlanLaw::kHostAddress,
                {"copy-in 7 of variable 0", "copy-out 8 of variable 1"});
  broken = plan;
  std::swap(broken.problem.ops[2].read_count, broken.problem.ops[2].write_count);
  ExpectRefused(broken, PlanLaw::kContent, {"copy-in 7 of variable 0", "op 2 (back)"});
  broken.problem.variables[0].size_bytes = 0;  // Nothing to lose, but no less wrong.
  broken.footprint_bytes = 8;
  ExpectRefused(broken, PlanLaw::kContent, {"copy-in 7 of variable 0", "op 2 (back)"});
  broken = plan;
  broken.residencies[2].begin = 5;
  ExpectRefused(broken, PlanLaw::kContent, {"op 2 (back)", "variable 0", "2 residencies"});
  broken = plan;
  broken.queues[2] = {7, 6, 9};
  broken.commands[7].waits = {{5, 2}};
  ExpectRefused(broken, PlanLaw::kSaved, {"copy-in 7 of variable 0", "copy-out 5 of variable 0"});
}

/// ReuseRing(), with another beginning: the stay that is dropped lasts around the end, when the
/// weights are on the device and on the host.
///
///     position   0    1   2    3   4   5    6   7    8
///     compute    back     loss         conv     relu     │ back
///     weights    ─────┤        ├────────────┤        ├──────────
TEST(CheckDropsTest, FollowsAHostCopyAroundTheEnd) {
  Plan plan;
  plan.problem.period = 9;
  plan.problem.op_names = {"back", "loss", "conv", "relu"};
  plan.problem.variables = {
      {.size_bytes = 4, .begin = 0, .end = 9, .kind = VariableKind::kPersistent},
      {.size_bytes = 4, .begin = 6, .end = 8},
      {.size_bytes = 4, .begin = 1, .end = 3}};
  plan.residencies = {
      {0, 3, 6, 0, -1, -1}, {0, 8, 10, 0, -1, -1}, {1, 6, 8, 0, -1, -1}, {2, 1, 3, 0, -1, -1}};
  AddOp(0, {{0, 0}}, {}, {{6, 1}}, &plan);
  AddOp(2, {}, {{2, 0}}, {}, &plan);
  AddOp(5, {{0, 0}}, {{0, 0}}, {{5, 0}}, &plan);
  AddOp(7, {}, {{1, 0}}, {{4, 0}}, &plan);
  AddCopy(Queue::kCopyOut, 0, 0, {{2, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 0, 0, {{1, 0}}, &plan);
  AddCopy(Queue::kCopyIn, 1, 0, {{4, 0}, {3, 0}}, &plan);
  plan.limit_bytes = plan.footprint_bytes = plan.host_limit_bytes = plan.host_bytes = 4;
  ExpectAccepted(plan);
  Plan broken = plan;
  broken.commands[5].waits = {{1, 1}};
  ExpectRefused(broken, PlanLaw::kAddress,
                {"op 0 (back) of variable 0", "copy-in 5 of variable 0"});
  broken = plan;
  broken.commands[0].waits = {{6, 2}};
  ExpectRefused(broken, PlanLaw::kArrival, {"op 0 (back)", "copy-in 6 of variable 0"});
  broken = plan;
  broken.problem.ops[0].read_count = 0;
  broken.problem.ops[0].write_count = 1;
  ExpectRefused(broken, PlanLaw::kContent, {"copy-in 5 of variable 0", "op 0 (back)"});
}

TEST(CheckDropsTest, RefusesADroppedCopyThatNoOpTouches) {
  Plan plan = Reuse();
  plan.problem.ops[2].read_count = 0;
  ExpectRefused(plan, PlanLaw::kContent, {"copy-in 6 of variable 0", "residency 1"});
}

TEST(CheckDropsTest, AcceptsPlansThatUseHostCopiesAgain) {
  const int cases = PlanCaseCount(4000);
  int made = 0;
  int drops = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 2'000'000'000);
    std::optional<Plan> plan = RandomPlan(&random);
    if (!plan) continue;
    ++made;
    drops += host_copies::ReuseHostCopies(&*plan, &random);
    const std::vector<PlanViolation> violations = CheckPlan(*plan);
    ASSERT_TRUE(violations.empty())
        << "case " << c << "\n"
        << Dump(*plan) << Name(violations[0].law) << ": " << violations[0].message;
  }
  EXPECT_GT(drops, cases / 10);
  std::cout << made << " plans of " << cases << " problems, " << drops << " drops\n";
}

}  // namespace
}  // namespace plimsoll::plan

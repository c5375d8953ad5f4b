// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/replay_mutations_for_test.h"
#include "plimsoll/plan/replays_for_test.h"

namespace plimsoll::plan {
namespace {

using replays::ComputesTheSame;
using replays::PlainPlan;
using replays::Replayed;

TEST(CheckReplayRandomTest, AcceptedPlansWithReplaysComputeTheSame) {
  const int cases = PlanCaseCount(4000);
  int made = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 5'000'000'000);
    const std::optional<Plan> plan = replays::RandomReplayPlan(&random);
    if (!plan) continue;
    ++made;
    const auto violations = CheckPlan(*plan);
    ASSERT_TRUE(violations.empty())
        << "case " << c << "\n"
        << Dump(*plan) << Name(violations[0].law) << ": " << violations[0].message;
    ASSERT_TRUE(ComputesTheSame({plan->problem, *plan->rewriting})) << Dump(*plan);
  }
  EXPECT_GT(made, cases / 20);
  std::cout << made << " plans with replays of " << cases << " problems\n";
}

/// The position behind the last op that names a variable, and whether a recorded one does.
struct LastUse {
  Position behind = 0;
  bool recorded = false;
};

std::vector<LastUse> ListLastUses(const Replayed& replayed) {
  const Problem& problem = replayed.problem;
  std::vector<LastUse> uses(problem.variables.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const Op& op = problem.ops[i];
    for (std::int32_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = problem.operands[At(op.first_operand + k)];
      LastUse& use = uses[At(operand.variable)];
      use.behind = op.position + 1;
      use.recorded = use.recorded || replayed.rewriting.is_replay[i] == 0;
    }
  }
  return uses;
}

TEST(CheckReplayRandomTest, WhatOnlyReplaysUseDoesNotLastToTheEnd) {
  const int cases = PlanCaseCount(4000);
  int found = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c));
    const std::optional<Replayed> replayed = replays::RandomReplayed(&random);
    if (!replayed) continue;
    const std::vector<LastUse> uses = ListLastUses(*replayed);
    for (std::size_t v = 0; v < uses.size(); ++v) {
      const Variable& variable = replayed->problem.variables[v];
      const bool around = variable.persistent() || variable.end > replayed->problem.period;
      if (uses[v].recorded || uses[v].behind == 0 || around) continue;
      ++found;
      EXPECT_LT(variable.end, replayed->problem.period) << "variable " << v << ", case " << c;
    }
  }
  EXPECT_GT(found, cases / 20);
}

struct Tally {
  int accepted = 0;
  int refused = 0;  ///< By the law of replays.
  int seen = 0;     ///< Of those, computes something else.
};

void RunMutant(const Replayed& mutant, bool must_pass, Tally* tally) {
  const Plan plan = PlainPlan(mutant);
  const auto violations = CheckPlan(plan);
  if (violations.empty()) {
    ++tally->accepted;
    ASSERT_TRUE(ComputesTheSame(mutant)) << Dump(plan);
  } else if (violations[0].law != PlanLaw::kShape) {
    ASSERT_EQ(violations[0].law, PlanLaw::kReplay) << violations[0].message << "\n" << Dump(plan);
    ++tally->refused;
    if (must_pass) FAIL() << violations[0].message << "\n" << Dump(plan);
    tally->seen += ComputesTheSame(mutant) ? 0 : 1;
  }
}

TEST(CheckReplayRandomTest, MutantsComputeSomethingElseOnlyIfTheyAreRefused) {
  const int cases = PlanCaseCount(6000);
  std::array<Tally, replays::kReplayMutations.size()> tallies;
  int subjects = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 6'000'000'000);
    std::optional<Replayed> replayed = replays::RandomReplayed(&random);
    if (!replayed) continue;
    ++subjects;
    replays::Reorder(replays::SameOrder(*replayed), &*replayed);
    for (std::size_t m = 0; m < tallies.size(); ++m) {
      Replayed mutant = *replayed;
      const auto& info = replays::kReplayMutations[m];
      if (!replays::Mutate(info.mutation, &mutant, &random)) continue;
      SCOPED_TRACE(std::string(info.name) + ", case " + std::to_string(c));
      ASSERT_NO_FATAL_FAILURE(RunMutant(mutant, m == 0, &tallies[m]));
    }
  }
  for (std::size_t m = 0; m < tallies.size(); ++m) {
    const auto& info = replays::kReplayMutations[m];
    const Tally& tally = tallies[m];
    std::cout << info.name << ": " << tally.accepted << " accepted, " << tally.refused
              << " refused, " << tally.seen << " of them seen to go wrong\n";
    if (info.accepted == replays::Accepted::kNone) {
      EXPECT_EQ(tally.accepted, 0) << info.name;
    } else if (info.accepted == replays::Accepted::kSome) {
      EXPECT_GT(tally.accepted, subjects / 50) << info.name;
    }
    const bool changes = info.mutation != replays::ReplayMutation::kNone;
    EXPECT_GE(tally.refused, changes ? subjects / 50 : 0) << info.name;
    EXPECT_TRUE(changes || tally.refused == 0);
    EXPECT_GE(tally.seen * 100, tally.refused * info.seen_percent) << info.name;
  }
  std::cout << subjects << " problems with replays of " << cases << "\n";
}

}  // namespace
}  // namespace plimsoll::plan

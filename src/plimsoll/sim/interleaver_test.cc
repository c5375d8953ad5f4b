// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/host_copies_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/sim/interleaver_for_test.h"
#include "plimsoll/sim/mutations_for_test.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::sim {
namespace {

using plan::CheckPlan;
using plan::Plan;
using plan::PlanRandom;

/// Lets host copies share bytes wherever the judge allows it.
void PackHost(Plan* plan, PlanRandom* random) {
  for (const plan::host_copies::HostCopyForTest& copy : plan::host_copies::ListHostCopies(*plan)) {
    Plan packed = *plan;
    mutations::MoveHostCopy(copy, random->Between(0, plan->commands[At(copy.out)].host_offset),
                            &packed);
    mutations::Measure(&packed);
    if (CheckPlan(packed, 1).empty()) *plan = std::move(packed);
  }
}

/// A random plan, most of them with host copies that are used again and share the slab.
std::optional<Plan> Subject(PlanRandom* random) {
  std::optional<Plan> plan = plan::RandomPlan(random);
  if (!plan || random->OneIn(4)) return plan;
  plan::host_copies::ReuseHostCopies(&*plan, random);
  if (!random->OneIn(3)) PackHost(&*plan, random);
  return plan;
}

/// Runs a plan in several random orders; returns what goes wrong in the first that does.
std::string RunOften(const Plan& plan, int runs, PlanRandom* random) {
  for (int run = 0; run < runs; ++run) {
    const std::string wrong = Interleaver(plan, 4, random).Run();
    if (!wrong.empty()) return wrong;
  }
  return "";
}

TEST(InterleaverTest, AcceptedPlansAreRightInEveryOrder) {
  const int cases = plan::PlanCaseCount(2000);
  int made = 0;
  int with_drops = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c));
    const std::optional<Plan> plan = Subject(&random);
    if (!plan) continue;
    ++made;
    with_drops += plan::host_copies::ListDrops(*plan).empty() ? 0 : 1;
    SCOPED_TRACE("case " + std::to_string(c));
    const auto violations = CheckPlan(*plan);
    ASSERT_TRUE(violations.empty()) << plan::Dump(*plan) << violations[0].message;
    ASSERT_LE(plan->footprint_bytes, plan->limit_bytes);
    ASSERT_FALSE(Simulate(*plan).deadlocked) << plan::Dump(*plan);
    const std::string wrong = RunOften(*plan, 10, &random);
    ASSERT_EQ(wrong, "") << plan::Dump(*plan);
  }
  EXPECT_GT(made, cases / 3);
  EXPECT_GT(with_drops, cases / 30);
  std::cout << made << " plans of " << cases << " problems, " << with_drops << " with drops\n";
}

struct Tally {
  int accepted = 0;
  int refused = 0;
  int seen = 0;  ///< Refused, and seen to go wrong.
};

/// Judges a mutant, and runs it.
void RunMutant(const Plan& mutant, bool run_refused, PlanRandom* random, Tally* tally) {
  const auto violations = CheckPlan(mutant);
  if (violations.empty()) {
    ++tally->accepted;
    ASSERT_EQ(RunOften(mutant, 10, random), "") << plan::Dump(mutant);
  } else {
    ++tally->refused;
    if (run_refused && !RunOften(mutant, 60, random).empty()) ++tally->seen;
  }
}

TEST(InterleaverTest, MutatedPlansGoWrongOnlyIfTheyAreRefused) {
  const int cases = plan::PlanCaseCount(1000);
  std::array<Tally, mutations::kMutations.size()> tallies;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 1'000'000'000);
    const std::optional<Plan> plan = Subject(&random);
    if (!plan) continue;
    for (std::size_t m = 0; m < mutations::kMutations.size(); ++m) {
      Plan mutant = *plan;
      if (!mutations::Mutate(mutations::kMutations[m].mutation, &mutant, &random)) continue;
      mutations::Measure(&mutant);
      SCOPED_TRACE("case " + std::to_string(c) + ": " + mutations::kMutations[m].name);
      RunMutant(mutant, mutations::kMutations[m].seen_percent > 0, &random, &tallies[m]);
      if (HasFatalFailure()) return;
    }
  }
  for (std::size_t m = 0; m < mutations::kMutations.size(); ++m) {
    const Tally& tally = tallies[m];
    const mutations::MutationInfo& info = mutations::kMutations[m];
    SCOPED_TRACE(info.name);
    std::cout << info.name << ": " << tally.accepted << " accepted, " << tally.refused
              << " refused";
    if (info.seen_percent > 0) std::cout << ", " << tally.seen << " of them seen to go wrong";
    std::cout << "\n";
    if (info.accepted_one_in > 0) {
      EXPECT_GT(tally.accepted, cases / info.accepted_one_in);
    }
    if (info.refused_one_in > 0) {
      EXPECT_GT(tally.refused, cases / info.refused_one_in);
    }
    EXPECT_GE(tally.seen * 100, tally.refused * info.seen_percent);
  }
}

TEST(InterleaverTest, PlansWithManyMutationsGoWrongOnlyIfTheyAreRefused) {
  const int cases = plan::PlanCaseCount(1000);
  Tally tally;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 3'000'000'000);
    const std::optional<Plan> plan = Subject(&random);
    if (!plan) continue;
    Plan mutant = *plan;
    // What is still accepted is changed further.
    for (int step = 0; step < 12; ++step) {
      const Plan before = mutant;
      const std::size_t m = random.Index(mutations::kMutations.size());
      if (!mutations::Mutate(mutations::kMutations[m].mutation, &mutant, &random)) continue;
      mutations::Measure(&mutant);
      SCOPED_TRACE("case " + std::to_string(c) + ", at last " + mutations::kMutations[m].name);
      RunMutant(mutant, false, &random, &tally);
      if (HasFatalFailure()) return;
      if (!CheckPlan(mutant, 1).empty()) mutant = before;
    }
  }
  std::cout << tally.accepted << " mutants of mutants accepted, " << tally.refused << " refused\n";
  EXPECT_GT(tally.accepted, cases);
  EXPECT_GT(tally.refused, cases);
}

/// Takes away or changes what the judge does not miss, edges and the order of copies, and moves
/// host copies to bytes of others. Half of the plans get the room for it, with residencies that
/// share no bytes.
void Loosen(Plan* plan, PlanRandom* random) {
  using mutations::Mutation;
  if (random->OneIn(2)) {
    Bytes top = 0;
    for (plan::Residency& r : plan->residencies) {
      r.offset = top;
      top += plan->problem.variables[At(r.variable)].size_bytes;
    }
    mutations::Measure(plan);
  }
  for (int step = 0; step < 40; ++step) {
    constexpr std::array kinds = {Mutation::kDropEdge,   Mutation::kRetargetEdge,
                                  Mutation::kSwapCopies, Mutation::kReadLater,
                                  Mutation::kMoveHost,   Mutation::kMoveHost};
    Plan looser = *plan;
    if (!mutations::Mutate(kinds[random->Index(kinds.size())], &looser, random)) continue;
    mutations::Measure(&looser);
    if (CheckPlan(looser, 1).empty()) *plan = std::move(looser);
  }
}

TEST(InterleaverTest, PlansWithNoEdgeTooManyAreRightInEveryOrder) {
  const int cases = plan::PlanCaseCount(2000);
  int with_drops = 0;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 4'000'000'000);
    std::optional<Plan> plan = Subject(&random);
    if (!plan) continue;
    Loosen(&*plan, &random);
    with_drops += plan::host_copies::ListDrops(*plan).empty() ? 0 : 1;
    ASSERT_EQ(RunOften(*plan, 10, &random), "") << "case " << c << "\n" << plan::Dump(*plan);
  }
  EXPECT_GT(with_drops, cases / 30);
}

}  // namespace
}  // namespace plimsoll::sim

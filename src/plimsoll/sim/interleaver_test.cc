// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/sim/interleaver_for_test.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::sim {
namespace {

using plan::CheckPlan;
using plan::Plan;
using plan::PlanRandom;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

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
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c));
    const std::optional<Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    ++made;
    SCOPED_TRACE("case " + std::to_string(c));
    const auto violations = CheckPlan(*plan);
    ASSERT_TRUE(violations.empty()) << plan::Dump(*plan) << violations[0].message;
    ASSERT_LE(plan->footprint_bytes, plan->limit_bytes);
    ASSERT_FALSE(Simulate(*plan).deadlocked) << plan::Dump(*plan);
    const std::string wrong = RunOften(*plan, 10, &random);
    ASSERT_EQ(wrong, "") << plan::Dump(*plan);
  }
  EXPECT_GT(made, cases / 3);
}

enum class Mutation { kDropEdge, kRetargetEdge, kChangeLag, kSwapCopies, kMove, kMoveHost };
constexpr int kMutations = 6;

/// Makes the recorded maxima and the limits those of what a plan says now.
void Measure(Plan* plan) {
  plan->footprint_bytes = 0;
  plan->host_bytes = 0;
  const auto size_of = [&](const plan::Residency& r) {
    return plan->problem.variables[At(r.variable)].size_bytes;
  };
  for (const plan::Residency& r : plan->residencies) {
    if (size_of(r) == 0) continue;
    plan->footprint_bytes = std::max(plan->footprint_bytes, r.offset + size_of(r));
  }
  for (const plan::Command& command : plan->commands) {
    if (command.residency < 0) continue;
    const Bytes size = size_of(plan->residencies[At(command.residency)]);
    if (size == 0) continue;
    plan->host_bytes = std::max(plan->host_bytes, command.host_offset + size);
  }
  plan->limit_bytes = std::max(plan->limit_bytes, plan->footprint_bytes);
  plan->host_limit_bytes = std::max(plan->host_limit_bytes, plan->host_bytes);
}

plan::Wait* AnyWait(Plan* plan, PlanRandom* random) {
  std::vector<plan::Wait*> all;
  for (plan::Command& command : plan->commands) {
    for (plan::Wait& wait : command.waits) all.push_back(&wait);
  }
  return all.empty() ? nullptr : all[random->Index(all.size())];
}

bool DropEdge(Plan* plan, PlanRandom* random) {
  const plan::Wait* chosen = AnyWait(plan, random);
  if (chosen == nullptr) return false;
  for (plan::Command& command : plan->commands) {
    for (std::size_t k = 0; k < command.waits.size(); ++k) {
      if (&command.waits[k] != chosen) continue;
      command.waits.erase(command.waits.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    }
  }
  return false;
}

bool SwapCopies(Plan* plan, PlanRandom* random) {
  auto& queue = plan->queues[random->OneIn(2) ? 1 : 2];
  if (queue.size() < 2) return false;
  const std::size_t first = random->Index(queue.size() - 1);
  std::swap(queue[first], queue[first + 1 + random->Index(queue.size() - first - 1)]);
  return true;
}

bool MoveHost(Plan* plan, PlanRandom* random) {
  if (plan->queues[1].empty()) return false;
  const plan::CommandIndex c = plan->queues[1][random->Index(plan->queues[1].size())];
  const Bytes offset = random->Between(0, plan->host_bytes);
  plan->commands[At(c)].host_offset = offset;
  // The scheduler makes copies in pairs; more often than not, the pair moves.
  if (!random->OneIn(4)) plan->commands[At(c) + 1].host_offset = offset;
  return true;
}

/// Changes one thing; returns whether there was anything to change.
bool Mutate(Mutation mutation, Plan* plan, PlanRandom* random) {
  if (mutation == Mutation::kDropEdge) return DropEdge(plan, random);
  if (mutation == Mutation::kSwapCopies) return SwapCopies(plan, random);
  if (mutation == Mutation::kMoveHost) return MoveHost(plan, random);
  if (mutation == Mutation::kMove) {
    plan::Residency& r = plan->residencies[random->Index(plan->residencies.size())];
    r.offset = random->Between(0, plan->footprint_bytes);
    return true;
  }
  plan::Wait* wait = AnyWait(plan, random);
  if (wait == nullptr || !plan->problem.cyclic) return false;
  if (mutation == Mutation::kRetargetEdge) {
    wait->command = static_cast<plan::CommandIndex>(random->Index(plan->commands.size()));
  } else {
    wait->lag = wait->lag == 0 || random->OneIn(2) ? wait->lag + 1 : wait->lag - 1;
  }
  return true;
}

struct Tally {
  int accepted = 0;
  int refused = 0;
  int seen = 0;  ///< Refused, and seen to go wrong.
};

TEST(InterleaverTest, MutatedPlansGoWrongOnlyIfTheyAreRefused) {
  const int cases = plan::PlanCaseCount(2000);
  std::array<Tally, kMutations> tallies;
  for (int c = 0; c < cases; ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 1'000'000'000);
    const std::optional<Plan> plan = plan::RandomPlan(&random);
    if (!plan) continue;
    for (int m = 0; m < kMutations; ++m) {
      Plan mutant = *plan;
      if (!Mutate(static_cast<Mutation>(m), &mutant, &random)) continue;
      Measure(&mutant);
      const auto violations = CheckPlan(mutant);
      Tally& tally = tallies[At(m)];
      if (violations.empty()) {
        ++tally.accepted;
        const std::string wrong = RunOften(mutant, 10, &random);
        ASSERT_EQ(wrong, "") << "case " << c << ", mutation " << m << "\n" << plan::Dump(mutant);
      } else {
        ++tally.refused;
        if (!RunOften(mutant, 60, &random).empty()) ++tally.seen;
      }
    }
  }
  for (int m = 0; m < kMutations; ++m) {
    const Tally& tally = tallies[At(m)];
    SCOPED_TRACE("mutation " + std::to_string(m));
    EXPECT_GT(tally.accepted, cases / 40);
    EXPECT_GT(tally.refused, cases / 10);
    // What is refused without going wrong, moved bytes for the most part, is wrong only in an order
    // that was not tried, or in bytes that nobody reads again.
    EXPECT_GT(tally.seen, tally.refused * 4 / 5);
    RecordProperty("seen_of_refused_" + std::to_string(m),
                   std::to_string(tally.seen) + " of " + std::to_string(tally.refused));
  }
}

}  // namespace
}  // namespace plimsoll::sim

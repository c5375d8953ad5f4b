// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/rewrite.h"
#include "plimsoll/planners/joint_search_internal.h"
#include "plimsoll/planners/small_network_for_test.h"

namespace plimsoll::planners {
namespace {

/// The lowest target that the choices are within.
Bytes LeastTarget(JointSearch* search, Scored state) {
  Bytes low = 1;
  Bytes high = Bytes{1} << 20;
  while (low < high) {
    const Bytes middle = (low + high) / 2;
    search->set_target(middle);
    EXPECT_TRUE(search->Weigh(state.choices, &state.worth));
    if (state.worth.excess > 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

TEST(JointSearchTest, WhatReplaysHaveNoRoomForIsSwapped) {
  int above = 0;
  int brought_under = 0;
  for (int k = 0; k < plan::PlanCaseCount(500); ++k) {
    SCOPED_TRACE(k);
    plan::PlanRandom random(static_cast<std::uint64_t>(k));
    const plan::Problem problem = SmallNetwork(&random).Make(false);
    const plan::Machine machine = SmallMachine(&random);
    const plan::Rewriter rewriter(problem, 0);
    JointSearch search(rewriter, machine, 1, 1);
    // Everything is rebuilt that can be, and the rest swapped: nothing is left to let go.
    Scored state;
    for (std::size_t g = 0; g < rewriter.gaps().size(); ++g) {
      state.choices.gaps.push_back(rewriter.CanDrop(g) ? Choice::kDrop : Choice::kSwap);
    }
    Scored swapped = state;
    std::ranges::fill(swapped.choices.gaps, Choice::kSwap);
    if (!search.Weigh(state.choices, &state.worth)) continue;
    // With replays, whose inputs must be there, too, more may be needed than if all is swapped.
    search.set_target(LeastTarget(&search, swapped));
    ASSERT_TRUE(search.Weigh(state.choices, &state.worth));
    if (state.worth.excess == 0) continue;
    ++above;
    const Scored before = state;
    search.SwapForReplays(&state, [] { return false; });
    if (state.worth.excess > 0) continue;
    ++brought_under;
    EXPECT_LT(state.worth.time_ns, Worth::kNoTime);
    for (std::size_t g = 0; g < rewriter.gaps().size(); ++g) {
      const bool same = state.choices.gaps[g] == before.choices.gaps[g];
      EXPECT_TRUE(same || state.choices.gaps[g] == Choice::kSwap) << g;
    }
  }
  EXPECT_GT(above, plan::PlanCaseCount(500) / 20);
  EXPECT_GT(brought_under, above / 2);
}

}  // namespace
}  // namespace plimsoll::planners

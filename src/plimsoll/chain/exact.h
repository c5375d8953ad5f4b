// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "plimsoll/chain/planner.h"

namespace plimsoll::chain {

/// Chains of at most so many stages have an exact solution within seconds.
inline constexpr std::size_t kMostExactStages = 20;

struct ExactAnswer {
  std::optional<Schedule> schedule;
  /// No schedule in which all transfers out precede all transfers in ends earlier.
  Nanoseconds lower_bound_ns = 0;
  /// Whether the schedule was shown to be optimal: it ends at the lower bound.
  bool proven = false;
};

/// More steps than any machine makes.
inline constexpr std::int64_t kMostWork = std::int64_t{1} << 62;

/// Finds an optimal schedule among those in which all transfers out precede all transfers in, over
/// all sets of activations and all orders both ways. It begins with `start`, a valid schedule if
/// there is one, and is the faster the better that is. If the time budget ends first, or after
/// `most_work` steps (a few million a second), the best so far comes with the bound that holds by
/// then. REQUIRES: at most kMostExactStages stages.
ExactAnswer SolveExactly(const Question& question, const PlannerOptions& options,
                         std::optional<Schedule> start, std::int64_t most_work = kMostWork);

}  // namespace plimsoll::chain

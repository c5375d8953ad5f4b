// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "plimsoll/plan/plan.h"
#include "plimsoll/planners/joint_sketch_internal.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// Problems with at most so many gaps have an exact answer within a second or so.
inline constexpr std::size_t kMostExactGaps = 9;

/// The best of all choices.
struct ExactAnswer {
  Choices choices;
  double prefetch = plan::kPrefetchJustInTime;
  plan::Plan plan;
  Nanoseconds iteration_ns = 0;  ///< Simulated.
  std::int64_t plans = 0;        ///< How many were made on the way.
};

/// Tries all that `joint` chooses among, and returns the fastest plan; nothing if none fits, or
/// none is faster than `below_ns`. It is exact over
///
///   - keep, drop or swap for every gap, of any size;
///   - every set of variables that linger for replays, of those that are rebuilt beyond their free
///     if none lingers: no other is read by a replay behind its free;
///   - every horizon of what is rebuilt on the way;
///   - copies in just in time or as early as memory allows;
///
/// each made into a plan by plan::MakePlan() with the load at the limit, or, where that cannot be
/// placed, at the highest of LoadShares() that can; judged by plan::CheckPlan() and timed by
/// sim::Simulate(). It is not exact over other orders of copies than the scheduler's, replays
/// elsewhere than right before the op that needs them, or placements that `tight` does not find
/// within the options' nodes: LeastScheduleNs() in joint_relaxation.h is below all of these.
///
/// Left out is only what cannot be better: choices whose ops and replays alone take as long as the
/// best so far, or that exceed the limit with all that they swap away for as long as it can be.
///
/// O(3^gaps) plans. Deterministic. REQUIRES: every variable has one instance; at most
/// kMostExactGaps gaps; options.least_bytes is 1.
std::optional<ExactAnswer> ExactJoint(
    const Question& question, Nanoseconds below_ns = std::numeric_limits<Nanoseconds>::max());

}  // namespace plimsoll::planners

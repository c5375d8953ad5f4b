// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "plimsoll/planners/planner.h"

/// How far swapping goes, and how much of what it costs it need not cost: the figures of merit of
/// paper 001, section VI-B.
namespace plimsoll::planners {

/// The most plans that LargestReduction() makes.
inline constexpr int kMostReductionPlans = 24;

/// Returns the planner's plan at the smallest limit at which its simulated overhead, a fraction of
/// the iteration without a limit, is at most `max_overhead`: "maximum memory reduction without
/// overhead" (Table II). The limit is that of the plan returned. Nothing if there is no such limit
/// up to 110 % of the peak load.
///
/// Overhead does not always rise as the limit falls (section VI-B2), since variables come in lumps.
/// So the whole range is looked at, from above, in steps of 5 % of the peak load, down to where
/// a bound (joint_bound.h, swap_bound.h) proves that nothing can be found any more, or three steps
/// in a row have failed; then the step below the smallest limit that passes by the percent, and the
/// last percent by halves:
///
///     overhead   0    0    0    2 %  0    3 %  4 %  │ bound
///     limit     110  100   95   90   85   80   75  70 %
///                                    └─┬─┘ refined
///
/// Between two steps a smaller limit may still pass: the answer is one that holds, not proved to be
/// the smallest. At most kMostReductionPlans plans are made. If options.stop says true, the best so
/// far is returned. options.limit_bytes is not looked at.
///
/// REQUIRES: every variable of the problem has one instance (plan::Unroll()); max_overhead >= 0.
std::optional<Outcome> LargestReduction(const Planner& planner, const plan::Problem& problem,
                                        const plan::Machine& machine, const PlannerOptions& options,
                                        double max_overhead = 0);

/// Returns load_min (section VI-B1): the peak of the load, in sizes as asked for, with every
/// candidate of AutoSwap out of memory whenever it is not in use, as if copies took no time. With a
/// lower limit, something besides the candidates must be swapped.
Bytes MinimumCandidateLoad(const Question& question);

/// Returns how much of a plan's overhead swapping more might at most avoid (section VI-B3). While
/// the load climbs, whatever does not leave in time is waited for; time in which no copy out runs
/// then is time in which other variables could have left.
///
///     compute     │ F0 F1 F2 ......F3  F4 │ B4 ...       overhead: F3 waits
///     copy out    │    [x0 ][x1      ]    │ [x2 ]
///     idle        ├──┤               ├────┤ peak load    the sum of these, at most the overhead
///
/// The climb lasts from the moment when the first op of the iteration begins to the moment when the
/// first op at or behind the peak of the load without a limit does. Copies of the iteration before
/// that reach into it count as busy. Where several iterations are planned together, the result is
/// the sum over all of them, as timeline.iteration_ns is.
///
/// REQUIRES: the timeline is that of the plan, and not deadlocked.
Nanoseconds AvoidableOverhead(const plan::Plan& plan, const sim::Timeline& timeline);

}  // namespace plimsoll::planners

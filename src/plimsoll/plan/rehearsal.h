// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

struct RehearsalOptions {
  Bytes load_limit_bytes = 0;
  Bytes alignment = 1;  ///< Loads count sizes rounded up to it.
  double prefetch = kPrefetchJustInTime;
};

/// Runs an iteration ahead of time, with the durations that ops and copies are predicted to take,
/// to find out when memory had best change hands. Sets `released` and `acquired` of every absence;
/// absences that turn out to be useless, since the copy out would not be over when the variable is
/// needed again, are removed. If one that is left relied on the copy that one of them saves, it
/// must save its own: the caller sees to that.
///
/// Slot i is the time from the end of op i - 1 to the end of op i; a variable is away for whole
/// slots, at most from the slot behind `after` to the one before `before`.
///
///   - Copies out run in the order of the ops that their gaps follow, each from the last op on that
///     writes the variable. Once a copy and the op before the gap have ended, the next slot has its
///     bytes. An op that needs bytes sooner takes them from the oldest copies out that
///     have not ended, and waits for these.
///   - Copies in run in the order of the ops that need them. One begins when its bytes are there
///     and stay there: in no slot from now to its op may the load, with all that can be away being
///     away, exceed the limit. When its op is due it begins in any case.
///
/// A cyclic problem is run three times around; the second lap counts, as it knows what the first
/// one leaves behind. The loads of the lap before and after may still differ from it: the caller
/// makes sure of the limit.
///
/// REQUIRES: with every absence as long as it can be, the load is within the limit; absences are in
/// the order of (after, variable). O((ops + absences) log ops).
///
/// Returns how long the iteration took.
Nanoseconds Rehearse(const Problem& problem, const Machine& machine,
                     const RehearsalOptions& options, std::vector<Absence>* absences);

}  // namespace plimsoll::plan

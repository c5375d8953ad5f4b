// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/sim/simulate.h"

/// What an iteration's time is spent on: which queue is busy, and what the ops wait for.
namespace plimsoll::sim {

/// A stretch in which the compute queue has nothing to run.
///
///     compute    ┌op 3┐.......┌op 4┐
///     copy in    [copy in 12 ]           op 4 waits for 12
struct Stall {
  plan::CommandIndex command = -1;  ///< The op that has to wait.
  plan::CommandIndex awaited = -1;  ///< What ended last of all that it waits for; -1 if unknown.
  Nanoseconds start_ns = 0;         ///< From the iteration's beginning, as in Timeline::spans.
  Nanoseconds length_ns = 0;
};

/// How busy the queues are during one iteration of the plan.
struct Usage {
  std::array<Nanoseconds, plan::kQueues> busy_ns{};  ///< By queue.
  Nanoseconds stall_ns = 0;                          ///< The iteration's time less that of its ops.
  std::vector<Stall> stalls;                         ///< The longest, the longest first.
};

/// Returns the usage with at most `most` stalls.
/// REQUIRES: the timeline is that of the plan, and not deadlocked.
Usage MeasureUsage(const plan::Plan& plan, const Timeline& timeline, std::size_t most);

}  // namespace plimsoll::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::sim {

/// When a command of the last simulated iteration ran, from the iteration's beginning.
struct Span {
  Nanoseconds start_ns = 0;
  Nanoseconds end_ns = 0;
};

/// What happens when a plan is run over and over.
struct Timeline {
  Nanoseconds iteration_ns = 0;  ///< The steady-state period.
  std::vector<Span> spans;       ///< By command; copies of an iteration may end in the next one.
  std::int32_t iterations = 0;   ///< How many were simulated until the period was steady.
  bool deadlocked = false;       ///< Some command waits for ever; nothing else is meaningful then.
};

/// Runs the three queues as early as possible, in integer nanoseconds: a command starts when the
/// one before it in its queue and all that it waits for have ended. Copies share the link: while
/// both directions are busy, each goes at its rate for that. Deterministic; linear in commands and
/// edges per simulated iteration. A plan that is not cyclic is run once.
Timeline Simulate(const plan::Plan& plan);

}  // namespace plimsoll::sim

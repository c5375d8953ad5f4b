// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// The bytes in use over one iteration. Sizes are as asked for.
struct LoadProfile {
  std::vector<Bytes> load_bytes;      ///< Per position: after the event there.
  std::vector<Nanoseconds> start_ns;  ///< Per position: the ops before it, in real time.
  Bytes peak_bytes = 0;
  Position peak_position = 0;  ///< The first position with the peak load.
};

LoadProfile ProfileLoad(const Problem& problem);

/// A variable that is live at some position, with the number of its live instances.
struct LiveVariable {
  VariableIndex variable = 0;
  std::int32_t instances = 1;
};

/// Returns what is live at a position, the largest first.
std::vector<LiveVariable> LiveAt(const Problem& problem, Position position);

/// Counts and bytes of a group of variables.
struct Group {
  std::int64_t count = 0;
  Bytes total_bytes = 0;    ///< Of all of them, live together or not.
  Bytes at_peak_bytes = 0;  ///< Of those live at the peak.
};

/// Variables and ops by what they are for and when.
struct Breakdown {
  std::array<Group, kVariableKinds> kinds;  ///< By VariableKind.
  std::array<Group, 3> phases;              ///< Of all but persistent ones, by phase of birth.
  std::array<std::int64_t, 3> phase_ops{};  ///< Number of ops by phase.
  std::array<Nanoseconds, 3> phase_ns{};    ///< Their time.
};

Breakdown BreakDown(const Problem& problem, const LoadProfile& profile);

/// How values are distributed: their quantiles.
struct Spread {
  std::int64_t least = 0;
  std::int64_t median = 0;
  std::int64_t ninety_percent = 0;
  std::int64_t most = 0;
};

/// Sizes and lifetimes of all variables but persistent ones.
struct Spreads {
  Spread size_bytes;
  Spread lifetime_events;
  Spread lifetime_ns;
};

Spreads SpreadOf(const Problem& problem, const LoadProfile& profile);

}  // namespace plimsoll::plan

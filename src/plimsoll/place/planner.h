// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/place/problem.h"

namespace plimsoll::place {

struct PlannerOptions {
  /// Stop as soon as the footprint is at or under this; negative to minimise.
  Bytes capacity_bytes = -1;
  /// Anytime planners return the best that they have after this many seconds.
  double time_budget_seconds = 5;
  /// If not negative, the budget is instead so many nodes of the search, whatever time they take,
  /// so that equal questions have equal answers; and no rivals are tried.
  std::int64_t node_budget = -1;
  /// For planners that draw random numbers; equal seeds give equal placements as long as the time
  /// budget does not cut the search off.
  std::uint64_t seed = 1;
  /// Called now and then by long searches with the best footprint so far and the bound.
  std::function<void(Bytes best, Bytes lower_bound)> on_progress{};
};

/// A placement algorithm: a pure function of the problem and its options.
using PlaceFunction = Placement (*)(const Problem&, const PlannerOptions&);

struct Planner {
  std::string_view name;
  std::string_view summary;  ///< One line: what it is.
  std::string_view source;   ///< The paper or system that it comes from.
  /// Replays an allocator that knows nothing of the future: it cannot honour fixed offsets.
  bool online = false;
  PlaceFunction place = nullptr;
};

/// All planners, the baselines first and the default, "tight", last.
const std::vector<Planner>& Planners();

/// Returns the planner of that name, or nullptr.
const Planner* FindPlanner(std::string_view name);

// The planners; each has a file of its own, where it is described.
Placement PlaceCudaMalloc(const Problem& problem, const PlannerOptions& options);
Placement PlaceCaffe(const Problem& problem, const PlannerOptions& options);
Placement PlaceCnmem(const Problem& problem, const PlannerOptions& options);
Placement PlaceBfc(const Problem& problem, const PlannerOptions& options);
Placement PlaceCaching(const Problem& problem, const PlannerOptions& options);
Placement PlaceFirstFit(const Problem& problem, const PlannerOptions& options);
Placement PlaceBestFit(const Problem& problem, const PlannerOptions& options);
Placement PlaceTight(const Problem& problem, const PlannerOptions& options);

}  // namespace plimsoll::place

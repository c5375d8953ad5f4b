// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "plimsoll/chain/schedule.h"

namespace plimsoll::chain {

/// What is asked: the chain on a link, to be run within a limit. The parts must outlive it.
struct Question {
  const Chain& chain;
  const Model& model;     ///< Of the same chain.
  Bytes limit_bytes = 0;  ///< At least model.smallest_limit_bytes.
};

struct PlannerOptions {
  /// Anytime planners return the best that they have after this many seconds.
  double time_budget_seconds = 1;
  /// For planners that draw random numbers; equal seeds give equal schedules as long as the time
  /// budget does not cut the search off.
  std::uint64_t seed = 1;
  /// Called now and then by long searches with the best iteration so far and the bound.
  std::function<void(Nanoseconds best, Nanoseconds lower_bound)> on_progress{};
};

/// An algorithm: a pure function of the question and its options. Returns nothing if it
/// finds no schedule within the limit.
using PlanFunction = std::optional<Schedule> (*)(const Question&, const PlannerOptions&);

struct Planner {
  std::string_view name;
  std::string_view summary;  ///< One line: what it is.
  std::string_view source;   ///< The paper or system that it comes from.
  PlanFunction plan = nullptr;
  bool recomputes = false;  ///< Whether ops may run again in its schedules.
};

/// All planners: those that only offload, the competitors first and "chainsearch" last, then those
/// that recompute. The exact solver is not among them, since it is for short chains only: exact.h.
const std::vector<Planner>& Planners();

/// Returns the planner of that name, or nullptr.
const Planner* FindPlanner(std::string_view name);

// The planners; each has a file of its own, where it is described.
std::optional<Schedule> PlanGreedy(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanDynProg(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanVdnn(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanTflms(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanAutoSwap(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanChainSearch(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanRotor(const Question& question, const PlannerOptions& options);
std::optional<Schedule> PlanPofo(const Question& question, const PlannerOptions& options);

}  // namespace plimsoll::chain

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "plimsoll/plan/schedule.h"
#include "plimsoll/sim/simulate.h"

/// Planners decide which gaps are swapped; all else is the same for all of them: scheduling,
/// placement, judgement and simulation. So a comparison of planners is a comparison of decisions.
namespace plimsoll::planners {

struct PlannerOptions {
  Bytes limit_bytes = 0;
  Bytes host_limit_bytes = kMaxBytes;
  Bytes least_bytes = Bytes{1} << 20;  ///< Smaller variables stay (paper 001, section IV-A).
  Bytes alignment = kDefaultAlignment;
  std::uint64_t seed = 1;
  double place_seconds = 0.25;  ///< For each placement of residencies.
  /// Called by long searches with the best iteration time so far.
  std::function<void(Nanoseconds best_ns)> on_progress{};
  /// Asked by long searches before each evaluation. If it says true, the search ends there,
  /// with the best so far, once it has found anything that fits.
  std::function<bool()> stop{};
};

/// What a planner is asked: bring the load under `load_limit_bytes`, which is at or under the
/// limit.
struct Question {
  const plan::Problem& problem;
  const plan::Machine& machine;
  Bytes load_limit_bytes = 0;
  const PlannerOptions& options;
};

/// Returns a decision, the best that the planner has if it cannot meet the load limit.
using DecideFunction = plan::Decision (*)(const Question&);

struct Planner {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  DecideFunction decide = nullptr;
  bool lowers_load = false;  ///< Whether it asks itself for lower loads; then it is asked once.
};

/// All planners of iterations, in the order of the papers.
const std::vector<Planner>& Planners();
const Planner* FindPlanner(std::string_view name);

/// The outcome of planning: a plan with its predicted timeline, or why there is none.
struct Outcome {
  std::optional<plan::Plan> plan;
  sim::Timeline timeline;
  plan::Misfit misfit;  ///< If there is no plan.
};

/// Asks the planner, makes a plan of its decision and simulates it; where fragmentation pushes the
/// footprint over the limit, asks again for a lower load. Every plan returned has passed
/// plan::CheckPlan(): one that does not is a bug, and aborts. Equal questions have equal answers as
/// long as `place_seconds` cuts no placement off.
/// REQUIRES: every variable of the problem has one instance (plan::Unroll()).
Outcome MakePlan(const Planner& planner, const plan::Problem& problem, const plan::Machine& machine,
                 const PlannerOptions& options);

/// A decision and what became of it.
struct Attempt {
  plan::Decision decision;
  std::variant<plan::Plan, plan::Misfit> made;

  const plan::Plan* plan() const { return std::get_if<plan::Plan>(&made); }
};

/// Makes a plan of what `decide` says for a load limit. If that does not fit, asks for less, as
/// long as the decision changes. Returns the first that fits, or the one that needs least.
Attempt MakeFit(const Question& question, const std::function<plan::Decision(Bytes)>& decide);

/// Returns the smallest limit at which a plan was found with everything swapped that can be, within
/// one percent. What no planner that swaps can go below by more than fragmentation.
Bytes SmallestLimit(const plan::Problem& problem, const plan::Machine& machine,
                    const PlannerOptions& options);

// The decisions; each has a file of its own, where it is described.
plan::Decision DecideNothing(const Question& question);
plan::Decision DecideDoa(const Question& question);
plan::Decision DecideAoa(const Question& question);
plan::Decision DecideWdoa(const Question& question);
plan::Decision DecideSwdoa(const Question& question);
plan::Decision DecideBayes(const Question& question);
plan::Decision DecideVdnnAll(const Question& question);
plan::Decision DecideVdnnConv(const Question& question);
plan::Decision DecideTflms(const Question& question);
plan::Decision DecideGeeps(const Question& question);
plan::Decision DecideLru(const Question& question);

}  // namespace plimsoll::planners

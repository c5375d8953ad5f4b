// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/planner.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "plimsoll/base/check.h"
#include "plimsoll/plan/check.h"

namespace plimsoll::planners {
namespace {

constexpr int kMostAttempts = 8;

plan::ScheduleOptions ToScheduleOptions(const PlannerOptions& options) {
  plan::ScheduleOptions schedule;
  schedule.limit_bytes = options.limit_bytes;
  schedule.host_limit_bytes = options.host_limit_bytes;
  schedule.alignment = options.alignment;
  schedule.seed = options.seed;
  schedule.place_seconds = options.place_seconds;
  return schedule;
}

}  // namespace

const std::vector<Planner>& Planners() {
  static const std::vector<Planner> planners = {
      {"none", "swaps nothing", "", &DecideNothing},
      {"autoswap-doa", "longest absence first", "AutoSwap, paper 001, section IV-B", &DecideDoa},
      {"autoswap-aoa", "largest absence times size first", "AutoSwap, paper 001, section IV-B",
       &DecideAoa},
      {"autoswap-wdoa", "largest area under the load first", "AutoSwap, paper 001, section IV-B",
       &DecideWdoa},
      {"autoswap-swdoa", "the same, with the load updated after each choice",
       "AutoSwap, paper 001, section IV-B", &DecideSwdoa},
      {"autoswap-bo", "the four scores combined by Bayesian optimisation",
       "AutoSwap, paper 001, section IV-C", &DecideBayes, true},
      {"vdnn-all", "every feature map that backward needs", "vDNN", &DecideVdnnAll},
      {"vdnn-conv", "the inputs of convolutions that backward needs", "vDNN", &DecideVdnnConv},
      {"tflms", "feature maps by distance to their use, as few as will do", "TFLMS", &DecideTflms},
      {"geeps", "everything that is not in use", "GeePS", &DecideGeeps},
      {"lru", "on demand: the least recently used goes first", "SuperNeurons' cache", &DecideLru},
  };
  return planners;
}

const Planner* FindPlanner(std::string_view name) {
  for (const Planner& planner : Planners()) {
    if (planner.name == name) return &planner;
  }
  return nullptr;
}

Attempt MakeFit(const Question& question, const std::function<plan::Decision(Bytes)>& decide) {
  const plan::ScheduleOptions schedule = ToScheduleOptions(question.options);
  const auto make = [&](plan::Decision decision) {
    auto made = plan::MakePlan(question.problem, decision, question.machine, schedule);
    return Attempt{std::move(decision), std::move(made)};
  };
  Bytes load_limit = question.load_limit_bytes;
  plan::Decision decision = decide(load_limit);
  Attempt best = make(decision);
  for (int k = 1; k < kMostAttempts && best.plan() == nullptr; ++k) {
    const auto& misfit = std::get<plan::Misfit>(best.made);
    if (misfit.host) break;
    // Ask for less by half of what was missing, and at least by a percent.
    const Bytes missing = std::max<Bytes>(misfit.needed_bytes - schedule.limit_bytes, 0);
    load_limit -= std::max({missing / 2, schedule.limit_bytes / 100, Bytes{1}});
    if (load_limit <= 0) break;
    plan::Decision next = decide(load_limit);
    if (next.swapped == decision.swapped) break;
    decision = std::move(next);
    Attempt attempt = make(decision);
    const auto* still = std::get_if<plan::Misfit>(&attempt.made);
    if (still == nullptr || (!still->host && still->needed_bytes < misfit.needed_bytes)) {
      best = std::move(attempt);
    }
  }
  return best;
}

Outcome MakePlan(const Planner& planner, const plan::Problem& problem, const plan::Machine& machine,
                 const PlannerOptions& options) {
  const Question question{problem, machine, options.limit_bytes, options};
  std::optional<plan::Decision> only;
  if (planner.lowers_load) only = planner.decide(question);
  Attempt attempt = MakeFit(question, [&](Bytes load_limit) {
    return only ? *only : planner.decide({problem, machine, load_limit, options});
  });
  Outcome outcome;
  if (attempt.plan() == nullptr) {
    outcome.misfit = std::get<plan::Misfit>(attempt.made);
    return outcome;
  }
  outcome.plan = std::move(std::get<plan::Plan>(attempt.made));
  outcome.plan->planner = planner.name;
  const std::vector<plan::PlanViolation> violations = plan::CheckPlan(*outcome.plan);
  PLIMSOLL_CHECK(violations.empty(), outcome.plan->planner + ": " + violations.front().message);
  outcome.timeline = sim::Simulate(*outcome.plan);
  PLIMSOLL_CHECK(!outcome.timeline.deadlocked, outcome.plan->planner + " deadlocks");
  return outcome;
}

Bytes SmallestLimit(const plan::Problem& problem, const plan::Machine& machine,
                    const PlannerOptions& options) {
  PlannerOptions lowered = options;
  lowered.least_bytes = 1;
  const plan::Decision everything{plan::ListGaps(problem, 1)};
  const std::vector<Bytes> load = plan::LeastLoad(problem, everything);
  const Bytes floor = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
  for (Bytes limit = floor;; limit += std::max<Bytes>(limit / 100, options.alignment)) {
    lowered.limit_bytes = limit;
    lowered.host_limit_bytes = kMaxBytes;
    const auto made = plan::MakePlan(problem, everything, machine, ToScheduleOptions(lowered));
    if (std::holds_alternative<plan::Plan>(made)) return limit;
    if (limit > 2 * floor + (Bytes{1} << 30)) return limit;
  }
}

}  // namespace plimsoll::planners

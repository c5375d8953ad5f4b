// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/planner.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <variant>

#include "plimsoll/base/check.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll::planners {
namespace {

constexpr Nanoseconds kNeverNs = std::numeric_limits<Nanoseconds>::max();

/// Of the limit, what the load is held to. Packing what swapping leaves takes up to ten percent as
/// a rule, and more where the limit is very low.
constexpr std::array kLoadShares = {1.0,  0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.93, 0.92,
                                    0.91, 0.9,  0.88, 0.86, 0.83, 0.8,  0.76, 0.72, 0.67};

/// A plan's time is a little more or less than was predicted: what may turn out to be faster.
constexpr double kPromising = 1.01;

struct Candidate {
  plan::Decision decision;
  Bytes load_limit_bytes = 0;
  Nanoseconds predicted_ns = kNeverNs;
};

/// Bytes of the arena that a misfit asks for; what the host lacks, no arena gives.
Bytes Needs(const plan::Misfit& misfit) { return misfit.host ? kMaxBytes : misfit.needed_bytes; }

using GiveUp = std::function<bool()>;

/// What `decide` says for each of the load shares, down to that at which it is given up, with its
/// predicted time, the fastest first.
std::vector<Candidate> Candidates(const Question& question, const Decider& decide,
                                  const GiveUp& give_up = {}) {
  plan::ScheduleOptions schedule = ToScheduleOptions(question.options);
  std::vector<Candidate> candidates;
  for (const double share : kLoadShares) {
    const auto load_limit =
        static_cast<Bytes>(share * static_cast<double>(question.options.limit_bytes));
    Candidate candidate{.decision = decide(load_limit), .load_limit_bytes = load_limit};
    schedule.load_limit_bytes = load_limit;
    const auto predicted =
        plan::PredictIteration(question.problem, candidate.decision, question.machine, schedule);
    candidate.predicted_ns = predicted.value_or(kNeverNs);
    const bool same =
        !candidates.empty() && candidates.back().decision.swapped == candidate.decision.swapped;
    if (same && !predicted) break;  // Nor will it do with less room.
    if (same && candidates.back().predicted_ns == candidate.predicted_ns) candidates.pop_back();
    candidates.push_back(std::move(candidate));
    if (give_up && give_up()) break;
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.predicted_ns < b.predicted_ns; });
  return candidates;
}

Attempt Place(const Question& question, Candidate candidate, Misfits* misfits) {
  const Bytes load_limit = candidate.load_limit_bytes;
  const plan::Misfit* known = misfits->Find(candidate.decision, load_limit);
  if (known != nullptr) return {std::move(candidate.decision), *known, load_limit};
  plan::ScheduleOptions schedule = ToScheduleOptions(question.options);
  schedule.load_limit_bytes = load_limit;
  auto made = plan::MakePlan(question.problem, candidate.decision, question.machine, schedule);
  if (const auto* misfit = std::get_if<plan::Misfit>(&made)) {
    misfits->Add(candidate.decision, load_limit, *misfit);
  }
  return {std::move(candidate.decision), std::move(made), load_limit};
}

/// The first candidate that fits, or the one that needs least.
Attempt MakeFastest(const Question& question, std::vector<Candidate> candidates,
                    Nanoseconds below_ns, Misfits* misfits) {
  std::optional<Attempt> best;
  for (Candidate& candidate : candidates) {
    if (best && candidate.predicted_ns >= below_ns) break;
    Attempt attempt = Place(question, std::move(candidate), misfits);
    const auto* misfit = std::get_if<plan::Misfit>(&attempt.made);
    if (best && misfit != nullptr && Needs(*misfit) >= Needs(std::get<plan::Misfit>(best->made))) {
      continue;
    }
    best = std::move(attempt);
    if (best->plan() != nullptr) break;
  }
  return std::move(*best);
}

}  // namespace

std::span<const double> LoadShares() { return kLoadShares; }

plan::ScheduleOptions ToScheduleOptions(const PlannerOptions& options) {
  plan::ScheduleOptions schedule;
  schedule.limit_bytes = options.limit_bytes;
  schedule.host_limit_bytes = options.host_limit_bytes;
  schedule.alignment = options.alignment;
  schedule.seed = options.seed;
  schedule.place_nodes = options.place_nodes;
  return schedule;
}

Bytes LeastBytesFor(const plan::Problem& problem) {
  constexpr Bytes kShareOfPeak = 1000;
  return std::clamp<Bytes>(plan::ProfileLoad(problem).peak_bytes / kShareOfPeak, 1,
                           PlannerOptions{}.least_bytes);
}

const std::vector<Planner>& Planners() {
  static const std::vector<Planner> planners = {
      {"joint", "keeps, swaps or recomputes, gap by gap", "", nullptr, &PlanJoint, true},
      {"dqn", "a deep Q-network that learns what to swap and what to recompute", "paper 000",
       nullptr, &PlanDqn, true, nullptr, true},
      {"dqn-swap", "the same, which only swaps", "paper 000", nullptr, &PlanDqnSwap, true, nullptr,
       true},
      {"none", "swaps nothing", "", &DecideNothing},
      {"autoswap-doa", "longest absence first", "AutoSwap, paper 001, section IV-B", &DecideDoa,
       nullptr, true},
      {"autoswap-aoa", "largest absence times size first", "AutoSwap, paper 001, section IV-B",
       &DecideAoa, nullptr, true},
      {"autoswap-wdoa", "largest area under the load first", "AutoSwap, paper 001, section IV-B",
       &DecideWdoa, nullptr, true},
      {"autoswap-swdoa", "the same, with the load updated after each choice",
       "AutoSwap, paper 001, section IV-B", &DecideSwdoa, nullptr, true},
      {"autoswap-bo", "the four scores combined by Bayesian optimisation",
       "AutoSwap, paper 001, section IV-C", nullptr, &PlanBayes, true},
      {"layrub-intra", "gradients take the place of what they are the gradients of; swaps nothing",
       "Layrub, paper 003, section 3.2", nullptr, &PlanLayrubIntra},
      {"layrub-inter", "every feature map, with a barrier after each layer",
       "Layrub, paper 003, section 3.3", nullptr, &PlanLayrubInter},
      {"layrub-hybrid", "both of these", "Layrub, paper 003, section 3.4", nullptr,
       &PlanLayrubHybrid},
      {"vdnn-all", "every feature map that backward needs", "vDNN", &DecideVdnnAll},
      {"vdnn-conv", "the inputs of convolutions that backward needs", "vDNN", &DecideVdnnConv},
      {"tflms", "feature maps by distance to their use, as few as will do", "TFLMS", &DecideTflms},
      {"geeps", "everything that is not in use", "GeePS", &DecideGeeps},
      {"lru", "on demand: the least recently used goes first", "SuperNeurons' cache", &DecideLru,
       nullptr, true},
      {"memonger", "recomputes segments of a byte budget, which is searched for",
       "Chen et al. 2016, algorithm 3", nullptr, nullptr, false, &ChooseMemonger},
      {"superneurons", "recomputes cheap layers, swaps the outputs of the others by age",
       "SuperNeurons", nullptr, nullptr, false, &ChooseSuperNeurons},
      {"superneurons-swap", "its swapping alone", "SuperNeurons", nullptr, nullptr, false,
       &ChooseSuperNeuronsSwap},
      {"superneurons-recompute", "its recomputation alone", "SuperNeurons", nullptr, nullptr, false,
       &ChooseSuperNeuronsRecompute},
      {"capuchin", "swaps what hides, recomputes the rest by bytes saved per second", "Capuchin",
       nullptr, nullptr, false, &ChooseCapuchin},
      {"dtr", "on demand: drops what is cheap, large and stale", "DTR", nullptr, nullptr, false,
       &ChooseDtr},
      {"checkpoint-blocks", "recomputes every block, whatever the limit",
       "torch.utils.checkpoint, by hand", nullptr, nullptr, false, &ChooseCheckpointBlocks},
  };
  return planners;
}

const Planner* FindPlanner(std::string_view name) {
  for (const Planner& planner : Planners()) {
    if (planner.name == name) return &planner;
  }
  return nullptr;
}

const plan::Misfit* Misfits::Find(const plan::Decision& decision, Bytes load_limit) const {
  const auto at = at_load_.find(load_limit);
  if (at == at_load_.end()) return nullptr;
  for (const Seen& seen : at->second) {
    if (seen.decision.swapped == decision.swapped) return &seen.misfit;
  }
  return nullptr;
}

void Misfits::Add(const plan::Decision& decision, Bytes load_limit, const plan::Misfit& misfit) {
  at_load_[load_limit].push_back({decision, misfit});
}

Attempt MakeFit(const Question& question, const Decider& decide) {
  Misfits misfits;
  return MakeFastest(question, Candidates(question, decide), kNeverNs, &misfits);
}

Attempt MakeFit(const Question& question, const Decider& decide, Nanoseconds below_ns,
                Misfits* misfits) {
  return MakeFastest(question, Candidates(question, decide), below_ns, misfits);
}

std::optional<Attempt> MakeFaster(const Question& question, const Decider& decide,
                                  Nanoseconds below_ns, const std::function<bool()>& give_up) {
  const auto promising_ns = static_cast<Nanoseconds>(kPromising * static_cast<double>(below_ns));
  Misfits misfits;
  for (Candidate& candidate : Candidates(question, decide, give_up)) {
    if (candidate.predicted_ns > promising_ns || give_up()) break;
    Attempt attempt = Place(question, std::move(candidate), &misfits);
    if (attempt.plan() == nullptr) continue;
    if (sim::Simulate(*attempt.plan()).iteration_ns < below_ns) return attempt;
  }
  return std::nullopt;
}

Outcome MakePlan(const Planner& planner, const plan::Problem& problem, const plan::Machine& machine,
                 const PlannerOptions& options) {
  const Question question{problem, machine, options};
  Attempt attempt = planner.plan != nullptr     ? planner.plan(question)
                    : planner.choose != nullptr ? MakeFitByChoices(question, planner.choose)
                                                : MakeFit(question, planner.decide(question));
  if (attempt.plan() == nullptr && planner.goes_to_any_length) attempt = MakeSmallest(question);
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

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/planners/choices_internal.h"

namespace plimsoll::planners {
namespace {

/// A state and the target that it was rehearsed for.
struct Candidate {
  JointState state;
  Bytes target_bytes = 0;
};

/// Bytes of the arena that a misfit asks for; what the host lacks, no arena gives.
Bytes Needs(const plan::Misfit& misfit) { return misfit.host ? kMaxBytes : misfit.needed_bytes; }

bool IsSame(const JointState& a, const JointState& b) {
  return a.choices == b.choices && a.horizon == b.horizon;
}

/// What the planner has for ever lower loads, each thing once, and only what holds its load.
std::vector<Candidate> ListCandidates(const Question& question, const Chooser& choose,
                                      JointEvaluator* evaluator) {
  std::vector<Candidate> candidates;
  for (const double share : LoadShares()) {
    const auto target =
        static_cast<Bytes>(share * static_cast<double>(question.options.limit_bytes));
    Candidate next{Consider(choose(target), target, evaluator), target};
    if (next.state.time_ns == kNever) break;  // Nor is it held with less room.
    const bool same = !candidates.empty() && IsSame(candidates.back().state, next.state);
    if (same && candidates.back().state.time_ns == next.state.time_ns) candidates.pop_back();
    candidates.push_back(std::move(next));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.state.time_ns < b.state.time_ns; });
  return candidates;
}

/// The answer if no load is held: what the planner's best for the limit would need.
Attempt MakeMisfit(const Question& question, const Chooser& choose, JointEvaluator* evaluator) {
  const Bytes limit = question.options.limit_bytes;
  const JointState state = Consider(choose(limit), limit, evaluator);
  return evaluator->Make(state);
}

}  // namespace

JointState Consider(Offer offer, Bytes target_bytes, JointEvaluator* evaluator) {
  evaluator->set_target(target_bytes);
  JointState state;
  state.choices = std::move(offer.choices);
  state.horizon = offer.horizon;
  if (!evaluator->Evaluate(&state)) {
    state.choices = KeepAll(*evaluator).choices;
    const bool possible = evaluator->Evaluate(&state);
    PLIMSOLL_CHECK(possible, "what stays need not be rebuilt");
  }
  evaluator->Rehearse(&state);
  return state;
}

JointState ConsiderRival(const Planner& planner, const Question& question, Bytes load_limit_bytes,
                         JointEvaluator* evaluator) {
  const Chooser choose = planner.choose(question, evaluator);
  return Consider(choose(load_limit_bytes), load_limit_bytes, evaluator);
}

Attempt MakeFit(const Question& question, const Chooser& choose, JointEvaluator* evaluator,
                double below_ns) {
  std::optional<Attempt> best;
  for (const Candidate& candidate : ListCandidates(question, choose, evaluator)) {
    if (best && candidate.state.time_ns >= below_ns) break;
    evaluator->set_target(candidate.target_bytes);
    Attempt attempt = evaluator->Make(candidate.state);
    const auto* misfit = std::get_if<plan::Misfit>(&attempt.made);
    if (best && misfit != nullptr && Needs(*misfit) >= Needs(std::get<plan::Misfit>(best->made))) {
      continue;
    }
    best = std::move(attempt);
    if (misfit == nullptr) break;
  }
  return best ? std::move(*best) : MakeMisfit(question, choose, evaluator);
}

Attempt MakeFitByChoices(const Question& question, ChooseFunction choose, double below_ns) {
  JointEvaluator evaluator(question);
  return MakeFit(question, choose(question, &evaluator), &evaluator, below_ns);
}

Family::Family(const Question& question, JointEvaluator* evaluator)
    : question_(question), evaluator_(evaluator) {
  Add(KeepAll(*evaluator));
}

Bytes Family::Add(Offer offer) {
  JointState state;
  state.choices = offer.choices;
  state.horizon = offer.horizon;
  if (!evaluator_->Evaluate(&state)) return kMaxBytes;
  members_.push_back({std::move(offer), PeakOf(question_, state), state.cost_ns});
  return members_.back().peak_bytes;
}

const Offer& Family::For(Bytes load_limit_bytes) const {
  const Member* best = nullptr;
  const Member* lowest = nullptr;
  for (const Member& member : members_) {
    if (lowest == nullptr || member.peak_bytes < lowest->peak_bytes) lowest = &member;
    if (member.peak_bytes > load_limit_bytes) continue;
    if (best == nullptr || member.cost_ns < best->cost_ns) best = &member;
  }
  return (best != nullptr ? best : lowest)->offer;
}

Bytes PeakOf(const Question& question, const JointState& state) {
  const std::vector<Bytes> load =
      plan::LeastLoad(state.rewritten->problem, state.swaps, question.options.alignment);
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

Offer KeepAll(const JointEvaluator& evaluator) {
  return {std::vector<Choice>(evaluator.gaps().size(), Choice::kKeep)};
}

std::vector<bool> ListDroppable(const JointEvaluator& evaluator, const Lineage& lineage) {
  std::vector<bool> droppable(evaluator.gaps().size());
  for (std::size_t g = 0; g < droppable.size(); ++g) {
    const plan::Gap& gap = evaluator.gaps()[g];
    droppable[g] = evaluator.CanDrop(g) &&
                   lineage.CanRebuild(lineage.After(gap.variable, gap.after), gap.before);
  }
  return droppable;
}

}  // namespace plimsoll::planners

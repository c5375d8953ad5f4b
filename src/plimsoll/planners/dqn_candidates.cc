// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/dqn_candidates_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;

/// Gaps count as candidates if they span a load above this part of the limit.
constexpr double kCandidateShare = 0.85;
/// Variables smaller than this part of the peak load are not candidates, if what is left can bring
/// the load under the other part of the limit.
constexpr double kLargeShare = 0.01;
/// The same if variables can only be swapped: then the link must be busy from the first layers on,
/// and what is small fills it where nothing else would.
constexpr double kLargeShareOfSwaps = 0.001;
constexpr double kEnoughShare = 0.85;
/// A gap is not swapped if it is shorter than this part of its copies.
constexpr double kLeastAbsence = 0.25;

/// Whether a gap begins in the forward phase and ends behind it, as those of section 4.5 do; any
/// gap of an iteration that has one phase only.
bool IsFromForward(const plan::Problem& problem, const plan::Gap& gap) {
  const auto phase = [&](OpIndex op) { return problem.ops[At(op)].phase; };
  const bool from_forward =
      phase(gap.after) == trace::Phase::kForward && phase(gap.before) != trace::Phase::kForward;
  return from_forward || std::ranges::all_of(problem.ops, [&](const plan::Op& op) {
           return op.phase == problem.ops.front().phase;
         });
}

class CandidateList {
 public:
  CandidateList(const Question& question, const JointEvaluator& evaluator, bool may_remove)
      : question_(question),
        problem_(question.problem),
        evaluator_(evaluator),
        may_remove_(may_remove),
        writers_(problem_.variables.size()) {
    const std::vector<Bytes> load = LoadOf({});
    const double level = kCandidateShare * static_cast<double>(question.options.limit_bytes);
    for (OpIndex i = 0; At(i) < problem_.ops.size(); ++i) {
      const plan::Op& op = problem_.ops[At(i)];
      const bool high = static_cast<double>(load[At(op.position)]) > level;
      high_.push_back(high_.back() + (high ? 1 : 0));
      end_ns_.push_back(end_ns_.back() + op.duration_ns);
      for (const plan::Operand& x : problem_.writes(op)) {
        auto& list = writers_[At(x.variable)];
        if (list.empty() || list.back() != i) list.push_back(i);
      }
    }
    peak_bytes_ = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
  }

  /// Halves what counts as small until the candidates will do.
  DqnCandidates Run() const {
    const auto enough =
        static_cast<Bytes>(kEnoughShare * static_cast<double>(question_.options.limit_bytes));
    const double large = may_remove_ ? kLargeShare : kLargeShareOfSwaps;
    auto least = static_cast<Bytes>(large * static_cast<double>(peak_bytes_));
    while (true) {
      DqnCandidates chosen = List(least);
      plan::Decision all;
      for (const learn::Candidate& candidate : chosen.candidates) {
        all.swapped.push_back(candidate.gap);
      }
      const std::vector<Bytes> load = LoadOf(all);
      const bool fits = std::ranges::all_of(load, [&](Bytes bytes) { return bytes <= enough; });
      if (fits || least <= question_.options.least_bytes) return chosen;
      least /= 2;
    }
  }

 private:
  std::vector<Bytes> LoadOf(const plan::Decision& decision) const {
    return plan::LeastLoad(problem_, decision, question_.options.alignment);
  }

  DqnCandidates List(Bytes least_bytes) const {
    DqnCandidates chosen;
    for (std::size_t g = 0; g < evaluator_.gaps().size(); ++g) {
      const plan::Gap& gap = evaluator_.gaps()[g];
      if (evaluator_.SizeOf(g) < least_bytes || !Spans(gap)) continue;
      learn::Candidate candidate{.gap = gap};
      candidate.can_swap =
          static_cast<double>(LengthNs(gap)) >= kLeastAbsence * evaluator_.CopyNs(g);
      candidate.can_remove = may_remove_ && evaluator_.CanDrop(g) && IsFromForward(problem_, gap);
      if (!candidate.can_swap && !candidate.can_remove) continue;
      for (const OpIndex writer : writers_[At(gap.variable)]) {
        if (writer <= gap.after) candidate.recompute_ns += problem_.ops[At(writer)].duration_ns;
      }
      chosen.candidates.push_back(candidate);
      chosen.gaps.push_back(g);
    }
    return chosen;
  }

  /// Whether the load is high at an op of the gap.
  bool Spans(const plan::Gap& gap) const {
    if (gap.end < problem_.period) {
      return gap.after + 1 < gap.before && high_[At(gap.before)] > high_[At(gap.after) + 1];
    }
    return high_.back() > high_[At(gap.after) + 1] || high_[At(gap.before)] > 0;
  }

  Nanoseconds LengthNs(const plan::Gap& gap) const {
    const bool around = gap.end >= problem_.period;
    return end_ns_[At(gap.before)] - end_ns_[At(gap.after) + 1] + (around ? end_ns_.back() : 0);
  }

  const Question& question_;
  const plan::Problem& problem_;
  const JointEvaluator& evaluator_;
  const bool may_remove_;
  std::vector<std::vector<OpIndex>> writers_;  // Per variable.
  std::vector<std::int32_t> high_ = {0};       // Per op, how many before it have a high load.
  std::vector<Nanoseconds> end_ns_ = {0};      // Per op, when the one before it ends.
  Bytes peak_bytes_ = 0;
};

}  // namespace

DqnCandidates ChooseDqnCandidates(const Question& question, const JointEvaluator& evaluator,
                                  bool may_remove) {
  return CandidateList(question, evaluator, may_remove).Run();
}

}  // namespace plimsoll::planners

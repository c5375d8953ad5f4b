// SPDX-License-Identifier: Apache-2.0
//
// `capuchin`: Peng et al., "Capuchin: tensor-based GPU memory management for deep learning", ASPLOS
// 2020. Costs are those of the recorded iteration, tensor by tensor, whatever the layer.
//
//   1. Swap what hides: gaps by decreasing free time (the time between both uses less both copies)
//      as long as no copy is late on a link that carries one copy a direction at a time.
//   2. Of the rest, whatever saves most memory per second of recomputation goes next (MSPS). What
//      it costs is reckoned anew when that of its sources has changed: they may have gone. If a
//      copy would be late by less than the recomputation takes, it is swapped after all (their
//      hybrid policy).
//   3. What cannot be recomputed is swapped, late or not, by free time.
//
// Reproduced: free time, the lane, MSPS with its updates, the hybrid policy. Different: what comes
// of choices is looked at in the rewritten iteration, and more goes until its load is within the
// limit; the paper counts bytes instead, and corrects itself by feedback while training. What is
// rebuilt on the way stays while memory allows (collective recomputation), by one rule for the
// iteration.
#include <algorithm>
#include <array>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/swap_lane_internal.h"

namespace plimsoll::planners {
namespace {

/// How long what is rebuilt on the way stays.
constexpr std::array<plan::OpIndex, 5> kHorizons = {plan::Rewriter::kFar, 50, 24, 6, 0};
/// How often, and by how much, the goal is lowered because rebuilding takes room, too.
constexpr int kRounds = 15;
constexpr double kLower = 0.97;

/// The highest load up to every op since the one before.
std::vector<Bytes> LoadByOp(const Question& question) {
  const std::vector<Bytes> load = plan::LeastLoad(question.problem, {}, question.options.alignment);
  std::vector<Bytes> by_op;
  plan::Position position = 0;
  for (const plan::Op& op : question.problem.ops) {
    Bytes highest = 0;
    for (; position <= op.position; ++position) highest = std::max(highest, load[At(position)]);
    by_op.push_back(highest);
  }
  return by_op;
}

/// What is the same for every limit.
struct Model {
  Model(const Question& of, JointEvaluator* with)
      : question(of),
        evaluator(with),
        lineage(of.problem),
        droppable(ListDroppable(*with, lineage)),
        load(LoadByOp(of)),
        gaps_of(of.problem.variables.size()) {
    const SwapLane lane(of);
    for (std::size_t g = 0; g < droppable.size(); ++g) {
      const plan::Gap& gap = with->gaps()[g];
      if (of.problem.variables[At(gap.variable)].persistent()) continue;
      if (gap.end >= of.problem.period) continue;
      by_free_time.emplace_back(lane.FreeTime(gap), g);
      gaps_of[At(gap.variable)].push_back(g);
    }
    for (std::size_t g = 0; g < droppable.size(); ++g) least_ns.push_back(LeastNs(g));
    std::stable_sort(by_free_time.begin(), by_free_time.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
  }

  /// Time to rebuild a gap's variable if nothing else is dropped.
  Nanoseconds LeastNs(std::size_t g) const {
    const plan::Gap& gap = evaluator->gaps()[g];
    if (!droppable[g]) return 0;
    return lineage.RebuildNs(lineage.After(gap.variable, gap.after),
                             [&](Content content) { return lineage.IsThere(content, gap.before); });
  }

  const Question& question;
  JointEvaluator* const evaluator;
  const Lineage lineage;
  const std::vector<bool> droppable;
  const std::vector<Bytes> load;                                  // Per op.
  std::vector<std::pair<Nanoseconds, std::size_t>> by_free_time;  // The longest first.
  std::vector<std::vector<std::size_t>> gaps_of;                  // Per variable.
  std::vector<Nanoseconds> least_ns;                              // Per gap.
};

/// The choice for one limit.
class Policy {
 public:
  Policy(const Model& model, Bytes limit_bytes)
      : model_(model),
        limit_(limit_bytes),
        goal_(limit_bytes),
        offer_(KeepAll(*model.evaluator)),
        without_dropped_(model.load),
        load_(model.load),
        lane_(model.question),
        lowest_(offer_) {}

  Offer Choose() {
    Count();
    SwapWhatHides();
    for (int k = 0; k < kRounds; ++k) {
      RecomputeTheRest();
      // With what is rebuilt on the way kept for good, nothing is cheaper than the first that
      // holds.
      if (Look() && best_.horizon == plan::Rewriter::kFar) break;
      goal_ = static_cast<Bytes>(kLower * static_cast<double>(goal_));
      Count();
    }
    if (best_ns_ == kNever) SwapTheRest();
    return best_ns_ < kNever ? best_ : lowest_;
  }

 private:
  const plan::Gap& GapOf(std::size_t g) const { return model_.evaluator->gaps()[g]; }

  /// Counts anew where the load is above the goal.
  void Count() {
    over_.assign(1, 0);
    for (const Bytes bytes : load_) over_.push_back(over_.back() + (bytes > goal_ ? 1 : 0));
  }
  bool IsOver() const { return over_.back() > 0; }

  /// Whether the load is above the goal anywhere in a gap.
  bool Helps(std::size_t g) const {
    return over_[At(GapOf(g).before)] > over_[At(GapOf(g).after) + 1];
  }

  void Swap(std::size_t g) {
    offer_.choices[g] = Choice::kSwap;
    lane_.Add(GapOf(g));
    load_ = without_dropped_;
    lane_.Relieve(&load_);
    Count();
  }

  void Drop(std::size_t g) {
    offer_.choices[g] = Choice::kDrop;
    for (plan::OpIndex i = GapOf(g).after + 1; i < GapOf(g).before; ++i) {
      without_dropped_[At(i)] -= model_.evaluator->SizeOf(g);
      load_[At(i)] -= model_.evaluator->SizeOf(g);
    }
    Count();
  }

  void SwapWhatHides() {
    for (const auto& [free_ns, g] : model_.by_free_time) {
      if (free_ns < 0 || !IsOver()) return;
      if (Helps(g) && lane_.LatenessWith(GapOf(g)) == 0) Swap(g);
    }
  }

  bool IsDropped(plan::VariableIndex v, plan::OpIndex at) const {
    return std::any_of(
        model_.gaps_of[At(v)].begin(), model_.gaps_of[At(v)].end(), [&](std::size_t g) {
          return offer_.choices[g] == Choice::kDrop && GapOf(g).after < at && at <= GapOf(g).before;
        });
  }

  Nanoseconds RecomputeNs(std::size_t g) const {
    const plan::Gap& gap = GapOf(g);
    return model_.lineage.RebuildNs(model_.lineage.After(gap.variable, gap.after),
                                    [&](Content content) {
                                      return model_.lineage.IsThere(content, gap.before) &&
                                             !IsDropped(content.variable, gap.before);
                                    });
  }

  /// Memory saved per second.
  double Msps(std::size_t g, Nanoseconds recompute_ns) const {
    return static_cast<double>(model_.evaluator->SizeOf(g)) / static_cast<double>(recompute_ns + 1);
  }

  void RecomputeTheRest() {
    std::priority_queue<std::pair<double, std::size_t>> queue;
    for (const auto& [free_ns, g] : model_.by_free_time) {
      const bool open = offer_.choices[g] == Choice::kKeep && model_.droppable[g];
      // At best; what it is now is looked at when it comes to the top.
      if (open && Helps(g)) queue.emplace(Msps(g, model_.least_ns[g]), g);
    }
    while (!queue.empty() && IsOver()) {
      const std::size_t g = queue.top().second;
      queue.pop();
      if (!Helps(g)) continue;
      const Nanoseconds recompute_ns = RecomputeNs(g);
      const double msps = Msps(g, recompute_ns);
      if (!queue.empty() && msps < queue.top().first) {
        queue.emplace(msps, g);
        continue;
      }
      const Nanoseconds late_ns = lane_.LatenessWith(GapOf(g)) - lane_.lateness();
      if (late_ns < recompute_ns) {
        Swap(g);
      } else {
        Drop(g);
      }
    }
  }

  /// Looks at the rewritten iteration by each of the rules for what stays; whether one holds the
  /// limit. Notes what is rehearsed to be fastest.
  bool Look() {
    model_.evaluator->set_target(limit_);
    for (const plan::OpIndex horizon : kHorizons) {
      JointState state;
      state.choices = offer_.choices;
      state.horizon = horizon;
      if (!model_.evaluator->Evaluate(&state)) continue;
      if (state.excess < lowest_excess_) {
        lowest_excess_ = state.excess;
        lowest_ = {offer_.choices, horizon};
      }
      if (state.excess > 0) continue;
      model_.evaluator->Rehearse(&state);
      if (state.time_ns < best_ns_) {
        best_ns_ = state.time_ns;
        best_ = {offer_.choices, horizon};
      }
      return true;
    }
    return false;
  }

  void SwapTheRest() {
    std::size_t batch = 1;
    std::size_t taken = 0;
    for (const auto& [free_ns, g] : model_.by_free_time) {
      if (offer_.choices[g] != Choice::kKeep) continue;
      offer_.choices[g] = Choice::kSwap;
      if (++taken < batch) continue;
      if (Look()) return;
      taken = 0;
      batch *= 2;
    }
    Look();
  }

  const Model& model_;
  const Bytes limit_;
  Bytes goal_;  // What the load is brought under, as reckoned here.
  Offer offer_;
  std::vector<Bytes> without_dropped_;  // Per op: the load, less what is dropped,
  std::vector<Bytes> load_;             // and less what is swapped.
  std::vector<std::int64_t> over_;      // Per op: how many before it are above the goal.
  SwapLane lane_;
  Offer best_;  // That holds the limit.
  double best_ns_ = kNever;
  Offer lowest_;  // That exceeds it least.
  double lowest_excess_ = kNever;
};

}  // namespace

Chooser ChooseCapuchin(const Question& question, JointEvaluator* evaluator) {
  const auto model = std::make_shared<const Model>(question, evaluator);
  return [model](Bytes load_limit) { return Policy(*model, load_limit).Choose(); };
}

}  // namespace plimsoll::planners

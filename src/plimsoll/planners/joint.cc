// SPDX-License-Identifier: Apache-2.0
//
// `joint`: keep, swap or recompute, gap by gap.
//
//   1. Starts. The link is filled with what is dear to rebuild, then gaps are dropped, cheapest
//   bytes
//      first, until the load is within the target, and a little further: copies on their way need
//      room, too. Then whatever has become needless is kept again.
//   2. Search: random changes, and small parts torn down and built anew, with simulated annealing
//   on
//      an estimate of the iteration; what seems better is rehearsed.
//   3. Plans are made of the best, for ever lower targets under the limit until one can be placed:
//      fragmentation takes an unknown part of it. The search goes on from there.
//
// A first plan is made at once, so that there is one whenever time is up. In the end, what the
// other planners would do is looked at, and taken if it is better.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "plimsoll/base/clock.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/joint_search_internal.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {
namespace {

/// How much of the iteration a random change may cost, at first.
constexpr double kHeat = 0.0005;
/// How many choices are looked at between two looks at the clock's progress.
constexpr std::int64_t kChunk = 500;
/// Of the budget: when the last start begins, and when plans are to be made.
constexpr double kStartsEnd = 0.2;
constexpr double kSearchEnd = 0.6;
/// Of the target, what is given up if a plan cannot be placed.
constexpr double kGiveUp = 0.006;
constexpr double kGiveUpFirst = 0.02;
constexpr int kMostFirst = 16;

/// Where a search begins.
struct Start {
  double share;  ///< JointSearch::FillLink(); 0: the link is left empty at first.
  bool area;     ///< JointSearch::Reduce()
};
constexpr std::array<Start, 8> kStarts = {{{0.6, false},
                                           {0, true},
                                           {0.75, true},
                                           {0.4, false},
                                           {0.6, true},
                                           {0.75, false},
                                           {0.4, true},
                                           {0, false}}};

class Joint {
 public:
  explicit Joint(const Question& question)
      : question_(question),
        evaluator_(question),
        search_(evaluator_.rewriter(), question.machine, question.options.alignment,
                question.options.seed),
        deadline_(question.options.time_budget_seconds),
        base_ns_(question.problem.iteration_ns()) {}

  Attempt Run() {
    search_.set_target(question_.options.limit_bytes);
    std::size_t next = 0;
    while (next < kStarts.size() && best_.worth.time_ns == Worth::kNoTime) {
      best_ = Begin(kStarts[next++]);
    }
    if (best_.worth.time_ns == Worth::kNoTime) best_ = LastResort();
    if (best_.worth.time_ns < Worth::kNoTime) {
      MakeFirst();
      Search(next);
    }
    if (!made_) made_ = MakeSmallest(question_);
    if (made_->plan() != nullptr) TakeBetterRival(&*made_);
    return std::move(*made_);
  }

 private:
  /// How much of the budget is spent.
  double Progress() const {
    const PlannerOptions& options = question_.options;
    if (options.evaluations > 0) {
      return static_cast<double>(search_.evaluations()) / static_cast<double>(options.evaluations);
    }
    return 1 - deadline_.remaining_seconds() / options.time_budget_seconds;
  }
  bool IsOver(double progress = 1) const {
    const auto& stop = question_.options.stop;
    return Progress() >= progress || (stop && stop());
  }
  JointSearch::IsOver Until(double progress) const {
    return [this, progress] { return IsOver(progress); };
  }

  Scored Empty() const {
    Scored state;
    state.choices.gaps.assign(search_.gaps().size(), Choice::kKeep);
    return state;
  }

  /// However short the time is, there must be something to begin with.
  JointSearch::IsOver UntilFound() const {
    return [this] { return best_.worth.time_ns < Worth::kNoTime && IsOver(); };
  }

  /// Finds choices for the target from scratch; ones that take for ever if it finds none.
  Scored Begin(const Start& start) {
    const JointSearch::IsOver is_over = UntilFound();
    Scored state = Empty();
    if (start.share > 0) search_.FillLink(&state, start.share, is_over);
    search_.Descend(&state, start.area, is_over);
    if (state.worth.time_ns == Worth::kNoTime) return state;
    search_.Relax(&state, Until(1));
    search_.Convert(&state, Until(1));
    return state;
  }

  /// Everything goes to the host, and what is better rebuilt is rebuilt.
  Scored LastResort() {
    Scored state = Empty();
    search_.SwapAll(&state);
    search_.Time(state.choices, &state.worth);
    if (state.worth.time_ns < Worth::kNoTime) search_.ConvertBack(&state, Until(1));
    return state;
  }

  /// Makes a plan of the best choices as they are, or of ones for lower targets.
  void MakeFirst() {
    Scored state = best_;
    for (int k = 0; k < kMostFirst && !Make(state); ++k) {
      GiveUp(kGiveUpFirst);
      if (!Tighten(&state)) break;
    }
    search_.set_target(question_.options.limit_bytes);
  }

  /// Lowers the target by a part of itself, or by more if the last plan was far from being placed.
  void GiveUp(double part) {
    const double over = static_cast<double>(needed_bytes_) / Limit() - 1;
    const double share = 1 - std::clamp(over / 2, part, 0.1);
    search_.set_target(static_cast<Bytes>(static_cast<double>(search_.target()) * share));
  }

  double Limit() const { return static_cast<double>(question_.options.limit_bytes); }

  /// Brings choices under a target that is lower than it was. False if that cannot be done.
  bool Tighten(Scored* state) {
    search_.Descend(state, false, [] { return false; });
    return state->worth.time_ns < Worth::kNoTime;
  }

  /// Makes a plan of choices; keeps it if it is the best so far. Returns whether it can be placed.
  bool Make(const Scored& state) {
    evaluator_.set_target(search_.target());
    JointState exact;
    exact.choices = state.choices.gaps;
    exact.lingers = state.choices.lingers;
    exact.horizon = state.choices.horizon;
    if (!evaluator_.Evaluate(&exact)) return false;
    Attempt attempt = evaluator_.Make(exact);
    if (const auto* misfit = std::get_if<plan::Misfit>(&attempt.made)) {
      needed_bytes_ = misfit->needed_bytes;
      return false;
    }
    const Nanoseconds ns = sim::Simulate(*attempt.plan()).iteration_ns;
    if (ns < made_ns_) {
      made_ns_ = ns;
      made_ = std::move(attempt);
      if (question_.options.on_progress) question_.options.on_progress(ns);
    }
    return true;
  }

  /// Looks for better choices, from other starts, the first of them `next`, and on from the best.
  void Search(std::size_t next) {
    if (made_ns_ <= base_ns_) return;
    search_.Activate(best_.choices);
    for (std::size_t k = next; k < kStarts.size() && !IsOver(kStartsEnd); ++k) {
      Scored state = Begin(kStarts[k]);
      if (state.worth.time_ns < best_.worth.time_ns) best_ = std::move(state);
    }
    Scored state = best_;
    while (!IsOver(kSearchEnd) && best_.worth.time_ns > base_ns_) AnnealOn(&state);
    while (!IsOver() && made_ns_ > base_ns_) {
      if (best_.worth.time_ns < made_ns_ && !Make(best_)) {
        // Less room, and on from there.
        GiveUp(kGiveUp);
        if (!Tighten(&best_)) return;
        state = best_;
      }
      const Nanoseconds before = best_.worth.time_ns;
      do {
        AnnealOn(&state);
      } while (!IsOver() && best_.worth.time_ns >= std::min(before, made_ns_));
      for (int k = 1; k < kChunksPerPlan && !IsOver(); ++k) AnnealOn(&state);
    }
    if (best_.worth.time_ns < made_ns_) Make(best_);
  }

  void AnnealOn(Scored* state) {
    const double cold = std::clamp(1 - Progress(), 0.0, 1.0);
    const double heat = kHeat * static_cast<double>(base_ns_) * cold * cold;
    search_.Anneal(state, &best_, kChunk, heat, Until(1));
  }

  /// Looks at what the planners that only swap would do, and takes it if it is better.
  void TakeBetterRival(Attempt* best) const {
    Nanoseconds made_ns = sim::Simulate(*best->plan()).iteration_ns;
    const Bytes limit = question_.options.limit_bytes;
    // No plan that only swaps is faster than this.
    if (made_ns <= JointBound(question_.problem, question_.machine, limit, false)) return;
    const auto take = [&](Attempt attempt) {
      if (attempt.plan() == nullptr) return;
      const Nanoseconds ns = sim::Simulate(*attempt.plan()).iteration_ns;
      if (ns >= made_ns) return;
      made_ns = ns;
      *best = std::move(attempt);
    };
    bool close = false;
    for (const Planner& rival : Planners()) {
      if (rival.decide == nullptr || made_ns <= base_ns_) continue;
      const Decider decide = rival.decide(question_);
      const auto predicted =
          plan::PredictIteration(question_.problem, decide(question_.options.limit_bytes),
                                 question_.machine, ToScheduleOptions(question_.options));
      if (!predicted) continue;
      close = close || *predicted < made_ns + made_ns / 4;
      if (*predicted < made_ns) take(MakeFit(question_, decide, made_ns));
    }
    if (close && made_ns > base_ns_) take(PlanBayes(question_));
  }

  static constexpr int kChunksPerPlan = 6;

  const Question& question_;
  JointEvaluator evaluator_;
  JointSearch search_;
  const Deadline deadline_;
  const Nanoseconds base_ns_;  // Nothing is faster than the recorded ops alone.
  Scored best_;                // For the target, whether it can be placed or not.
  Bytes needed_bytes_ = 0;     // By the last plan that could not be placed.
  std::optional<Attempt> made_;
  Nanoseconds made_ns_ = Worth::kNoTime;
};

}  // namespace

Attempt PlanJoint(const Question& question) { return Joint(question).Run(); }

}  // namespace plimsoll::planners

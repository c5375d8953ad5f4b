// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <span>
#include <vector>

#include "plimsoll/plan/estimate.h"
#include "plimsoll/plan/machine.h"
#include "plimsoll/planners/joint_sketch_internal.h"

/// The search behind `joint`: which gaps are dropped, which are swapped.
namespace plimsoll::planners {

/// What choices are worth.
struct Worth {
  double excess = 0;              ///< Bytes above the target, summed over ops.
  Nanoseconds replay_ns = 0;      ///< Of what runs again.
  Nanoseconds time_ns = kNoTime;  ///< Of the rehearsed iteration, if nothing is above the target.

  static constexpr Nanoseconds kNoTime = std::numeric_limits<Nanoseconds>::max();
};

/// Choices and what they are worth.
struct Scored {
  Choices choices;
  Worth worth;
};

/// Choices for a target of the load, and ways to better ones: joint_search.cc says what choices are
/// worth, joint_greedy.cc goes straight down, joint_anneal.cc here and there. Not thread safe.
class JointSearch {
 public:
  /// How early copies in may begin.
  static constexpr std::array kPrefetches = {0.8, plan::kPrefetchJustInTime, 1.25, 1.6, 2.5, 4.0};
  /// Asked before each evaluation.
  using IsOver = std::function<bool()>;

  /// Keeps references to rewriter and machine.
  JointSearch(const plan::Rewriter& rewriter, const plan::Machine& machine, Bytes alignment,
              std::uint64_t seed);

  /// For copies that go other ways.
  void set_seed(std::uint64_t seed) { random_.seed(seed); }
  /// When there should be something to begin with, in a large problem.
  void set_in_hurry(IsOver in_hurry) { in_hurry_ = std::move(in_hurry); }
  /// How many times larger batches of a large problem may grow while all goes well: faster, and
  /// often worse.
  void set_stride(std::size_t stride) { stride_ = stride; }
  /// Of what is swapped, summed up: what is above is not looked at. That is more than a plan needs
  /// on the host, where several may have the same bytes in turn.
  void set_host_limit(Bytes bytes) { host_limit_ = bytes; }
  /// How early copies in may begin.
  void set_most_prefetch(double prefetch) { most_prefetch_ = prefetch; }
  void set_target(Bytes bytes) { target_ = bytes; }
  Bytes target() const { return target_; }
  std::int64_t evaluations() const { return evaluations_; }

  /// Rewrites in outline and adds up. False if it cannot be done, or replays alone take the
  /// iteration beyond `below_ns`.
  bool Weigh(const Choices& choices, Worth* worth, Nanoseconds below_ns = Worth::kNoTime);
  /// The same, and rehearses the iteration if the load allows. Roughly: estimates it, no further
  /// than to see that it takes longer than `below_ns`.
  bool Time(const Choices& choices, Worth* worth, Nanoseconds below_ns = Worth::kNoTime,
            bool roughly = false);
  // The parts of these:
  bool Draw(const Choices& choices, Nanoseconds below_ns);
  /// REQUIRES: the choices are drawn, and within the target.
  void TimeDrawn(const Choices& choices, Worth* worth, Nanoseconds below_ns, bool roughly);

  /// Drops gaps, cheapest bytes first, until the load is within the target; swaps where drops
  /// cannot help. By `area`, a gap's bytes count as often as there are ops above the target in it.
  void Reduce(Scored* state, bool area, const IsOver& is_over);
  /// Reduces to the target and beyond, as long as the iteration gets shorter: what is on its way in
  /// or out needs room, too.
  void Descend(Scored* state, bool area, const IsOver& is_over);
  /// What the descents came to that did not reach the target itself: the closest; nothing if all
  /// did.
  const Scored& stuck() const { return stuck_; }
  /// Where there is nothing left to let go, and still too little room, replays need more than is
  /// there: what is rebuilt for the ops that are above the target is swapped instead.
  void SwapForReplays(Scored* state, const IsOver& is_over);
  /// Swaps so many bytes of what is persistent across the end of the iteration, the longest
  /// absences first.
  void SwapPersistent(Scored* state, Bytes bytes) const;
  /// Swaps whatever may help.
  void SwapAll(Scored* state) const;
  /// Turns swaps into replays while that makes the iteration shorter, the cheapest bytes first.
  void ConvertBack(Scored* state, const IsOver& is_over);
  /// Swaps what the link carries on the side, the longest absences first; not the `share` of bytes
  /// that is cheapest to rebuild.
  void FillLink(Scored* state, double share, const IsOver& is_over);
  /// Swaps the moments that the link carries at no cost at all; nothing if there is nothing to
  /// gain.
  void SwapMoments(Scored* state);
  /// Keeps again what need not go, the most expensive first.
  void Relax(Scored* state, const IsOver& is_over);
  /// Turns replays into swaps while that makes the iteration shorter.
  void Convert(Scored* state, const IsOver& is_over);
  /// Random changes with simulated annealing, until it is over or so many evaluations are spent.
  /// `heat` is the time that a change may cost, more or less; memory that it leaves has a price,
  /// too. Notes the best that it meets, as rehearsed; what it goes by is an estimate.
  void Anneal(Scored* state, Scored* best, std::int64_t evaluations, double heat_ns,
              const IsOver& is_over);
  /// Lists the gaps that may matter for the target.
  void Activate(const Choices& choices);
  /// Whether any does.
  bool CanChange() const { return !active_.empty(); }
  std::size_t active_count() const { return active_.size(); }

  /// Whether there is time to look at every gap.
  bool IsSmall() const;
  /// Whether the gap is that of a moment around the end of the iteration (plan::IsMoment()).
  bool IsOfMoment(std::size_t gap) const;
  Bytes SizeOf(std::size_t gap) const;
  double CopyNs(std::size_t gap) const;
  const std::vector<plan::Gap>& gaps() const { return gaps_; }

 private:
  /// A choice that may be made, and the bytes that it takes off per nanosecond, as far as is known.
  struct Entry {
    double worth;
    std::size_t gap;
    Choice choice;
    bool operator<(const Entry& other) const {
      return worth != other.worth ? worth < other.worth : gap > other.gap;
    }
  };
  struct Step {
    Scored next;
    double worth = 0;
    bool good = false;  ///< Whether it lowers the excess.
  };
  void SwapIfFree(std::span<const std::size_t> gaps, Scored* state);
  bool LingerRevenants(Choices* choices, double* bytes) const;
  double DropFamily(Choices* choices, const std::vector<double>& relief) const;
  Step WeighStep(const Scored& state, const std::vector<Entry>& taken,
                 const std::vector<double>& relief, bool area);
  void TakeBest(std::priority_queue<Entry>* entries, const std::vector<double>& relief, bool area,
                std::size_t most, Scored* state, const IsOver& is_over);
  void Recreate(Scored* state, const IsOver& is_over);
  std::vector<double> EstimateRelief(bool area) const;
  Nanoseconds Rehearse(double prefetch);
  void SaveAgain();
  bool Stay(const plan::Exit& exit);
  void KeepUseless(Choices* choices) const;
  std::size_t AnyOf(const std::vector<std::size_t>& list);
  std::size_t AnyNear(std::size_t gap);
  Choice AnyAway(std::size_t gap);
  std::size_t AnyGone(const Choices& choices);
  plan::OpIndex FullestIn(std::size_t gap) const;
  bool Covers(std::size_t gap, plan::OpIndex op) const;
  bool HasRoomFor(std::size_t gap) const;
  std::size_t AnySubstitute(std::size_t gap, const Choices& choices);
  void DropAndLinger(bool family, Choices* choices);
  void FlipLingering(Choices* choices);
  void Turn(std::size_t gap, bool exchange, Choices* choices);
  void Return(std::size_t gap, int others, bool stay_too, Choices* choices);
  void LetGo(Choices* choices);
  void Change(Choices* choices);
  void Improve(Scored* state, Scored* best, std::int64_t evaluations, const IsOver& is_over);
  double PriceOf(const Scored& state) const;
  void NoteBest(Scored* state, Scored* best);

  const plan::Rewriter& rewriter_;
  const plan::Machine& machine_;
  const std::vector<plan::Gap>& gaps_;
  bool IsInHurry() const { return !IsSmall() && in_hurry_ && in_hurry_(); }

  IsOver in_hurry_;
  std::size_t stride_ = 1;
  const std::size_t work_;     // To look at every gap once: gaps times ops.
  const Nanoseconds base_ns_;  // Of the recorded ops.
  Sketch sketch_;
  bool IsWithinHost(const Choices& choices) const;

  Scored stuck_;
  double most_prefetch_ = kPrefetches.back();
  Bytes target_ = 0;
  Bytes host_limit_ = kMaxBytes;
  std::int64_t evaluations_ = 0;
  std::mt19937_64 random_;
  double copy_price_ = 1;        // What a nanosecond of copies counts against one of replays.
  std::vector<double> own_ns_;   // Per gap: of its own replays; infinite: cannot be dropped.
  std::vector<double> learned_;  // Per gap: what dropping it turned out to be worth.
  std::vector<std::vector<std::size_t>> made_of_;  // Per variable: gaps whose writers read it.
  std::vector<std::size_t> moments_;               // Gaps of what only a few ops in a row touch.
  std::vector<double> relief_;                     // Per gap, once they have been activated.
  std::vector<std::size_t> active_;                // Gaps that may matter.
  std::vector<plan::VariableIndex> ghosts_;        // Variables that were rebuilt beyond their free.
  Nanoseconds best_estimate_ns_ = 0;               // Of the best while annealing.
  Nanoseconds shortfall_ns_ = 0;                   // By how much estimates were too low of late.
  std::vector<Bytes> needs_;                       // Per recorded op: of what is searched on from.
  plan::Script script_;
  std::vector<std::size_t> exit_gaps_;
  std::vector<std::size_t> useless_;
  plan::Estimator estimator_;
  std::vector<plan::Outcome> outcomes_;
};

}  // namespace plimsoll::planners

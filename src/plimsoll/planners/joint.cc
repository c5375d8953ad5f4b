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
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/planners/chain_start_internal.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/joint_search_internal.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {
namespace {

/// Of what one of those costs that are away, what a random change may cost at first.
constexpr double kHeat = 0.3;
/// How many choices are looked at between two looks at the clock's progress.
constexpr std::int64_t kChunk = 500;
/// Of the budget: when the last start begins, and when plans are to be made.
constexpr double kStartsEnd = 0.2;
constexpr double kStartsEndIfLarge = 0.05;
constexpr double kRivalsEnd = 0.3;
constexpr double kHeatsEnd = 0.55;
constexpr double kSearchEnd = 0.6;
/// How many starts are searched on from.
constexpr std::size_t kField = 8;
constexpr std::size_t kLeastField = 3;
/// For each of them, so many evaluations of every gap that matters.
constexpr double kPerActive = 20;
/// Longer iterations are not looked at as chains: that takes too long.
constexpr std::size_t kMostChainOps = 1000;
/// In iterations longer than this, replays reach back so many ops at most: without an end, a chain
/// of them is as long as the network, and trying one takes a time that grows with its square.
constexpr std::size_t kHugeOps = 50'000;
constexpr plan::OpIndex kHugeHorizon = 24;
/// Of the target, what is given up if a plan cannot be placed.
constexpr double kGiveUp = 0.006;
constexpr double kGiveUpFirst = 0.02;
constexpr int kMostFirst = 16;

/// Where a search begins.
struct Start {
  double share;  ///< JointSearch::FillLink(); 0: the link is left empty at first.
  bool area;     ///< JointSearch::Reduce()
  plan::OpIndex horizon = plan::Rewriter::kFar;
};
constexpr std::array<Start, 10> kStarts = {{{0.6, false},
                                            {0, true},
                                            {0.75, true},
                                            {0.4, false},
                                            {0.6, true},
                                            {0.75, false},
                                            {0, true, 24},
                                            {0, false, 0},
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
    search_.set_in_hurry(Until(kHurry));
    // Next to everything must go.
    if (!MayDoWithoutSwaps()) search_.set_stride(kStride);
    std::size_t next = IsHuge() ? kStarts.size() : 0;
    if (IsHuge()) best_ = Begin({0.6, false, kHugeHorizon});
    while (next < kStarts.size() && best_.worth.time_ns == Worth::kNoTime) {
      best_ = Begin(kStarts[next++]);
    }
    if (best_.worth.time_ns == Worth::kNoTime) best_ = LastResort();
    if (best_.worth.time_ns < Worth::kNoTime) {
      MakeFirst();
      Search(next);
    }
    if (!made_) TakeChain();
    if (!made_) {
      made_ = MakeSmallest(question_);
      if (made_->plan() == nullptr) return std::move(*made_);
      made_ns_ = sim::Simulate(*made_->plan()).iteration_ns;
    }
    if (!IsStopped() && !IsHuge()) TakeBetterRival();
    return std::move(*made_);
  }

 private:
  bool IsHuge() const { return question_.problem.ops.size() > kHugeOps; }

  Bytes PersistentBytes() const {
    Bytes sum = 0;
    for (const plan::Variable& variable : question_.problem.variables) {
      if (variable.persistent()) sum += variable.size_bytes;
    }
    return sum;
  }
  /// Whether what is persistent, which cannot be rebuilt, leaves room within the limit.
  bool MayDoWithoutSwaps() const {
    return static_cast<double>(PersistentBytes()) <
           kMostPersistent * static_cast<double>(question_.options.limit_bytes);
  }

  bool IsStopped() const { return question_.options.stop && question_.options.stop(); }

  /// How much of the budget is spent.
  double Progress() const {
    const PlannerOptions& options = question_.options;
    if (options.evaluations > 0) {
      return static_cast<double>(search_.evaluations()) / static_cast<double>(options.evaluations);
    }
    return 1 - deadline_.remaining_seconds() / options.time_budget_seconds;
  }
  bool IsOver(double progress = 1) const { return Progress() >= progress || IsStopped(); }
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
    state.choices.horizon = start.horizon;
    if (!MayDoWithoutSwaps()) {
      const auto room = static_cast<double>(question_.options.limit_bytes) * kRoomForPersistent;
      search_.SwapPersistent(&state, PersistentBytes() - static_cast<Bytes>(room));
    } else if (start.share > 0) {
      search_.FillLink(&state, start.share, is_over);
    }
    search_.Descend(&state, start.area, is_over);
    if (state.worth.time_ns == Worth::kNoTime) return state;
    // What the link carries now makes room for others to return; in a short iteration, the search
    // finds those.
    const int rounds = search_.IsSmall() ? 1 : kMostRounds;
    for (int k = 0; k < rounds; ++k) {
      const Nanoseconds before = state.worth.time_ns;
      search_.Relax(&state, Until(1));
      search_.Convert(&state, Until(1));
      if (state.worth.time_ns == before) break;
    }
    return state;
  }

  /// Begins from what other planners choose.
  void BeginFromRivals() {
    if (!search_.IsSmall()) return;
    for (const Planner& rival : Planners()) {
      if (rival.choose == nullptr || IsOver(kRivalsEnd)) continue;
      const Offer offer = rival.choose(question_, &evaluator_)(question_.options.limit_bytes);
      Scored state{{offer.choices, {}, offer.horizon}, {}};
      search_.Time(state.choices, &state.worth);
      if (state.worth.time_ns == Worth::kNoTime) continue;
      search_.Relax(&state, Until(kRivalsEnd));
      Enter(std::move(state));
    }
  }

  /// Remembers choices to search on from, if they are among the best so far.
  void Enter(Scored state) {
    if (state.worth.time_ns == Worth::kNoTime) return;
    if (state.worth.time_ns < best_.worth.time_ns) best_ = state;
    const bool known = std::any_of(field_.begin(), field_.end(), [&](const Scored& x) {
      return x.worth.time_ns == state.worth.time_ns;
    });
    if (known) return;
    field_.push_back(std::move(state));
    SortField();
    if (field_.size() > kField) field_.pop_back();
  }

  /// Searches on from the starts, in rounds: after each, the better half goes on. How good a start
  /// is by itself says little about where it leads. Returns where the best of them got to.
  Scored HoldHeats() {
    Scored winner = best_;
    double round_begin = std::max(Progress(), 0.0);
    // As many as there is time for, at the pace so far.
    const double left_over = std::max(kHeatsEnd - round_begin, 0.0) / std::max(round_begin, 1e-3);
    const double each_takes = kPerActive * static_cast<double>(search_.active_count());
    const double many = left_over * static_cast<double>(search_.evaluations()) / each_takes;
    const auto most =
        static_cast<std::size_t>(std::clamp(many, double{kLeastField}, double{kField}));
    if (field_.size() > most) field_.resize(most);
    for (std::size_t left = field_.size(); left > 0; left = left > 1 ? (left + 1) / 2 : 0) {
      std::size_t rounds = 1;
      for (std::size_t k = left; k > 1; k = (k + 1) / 2) ++rounds;
      const double round_end =
          round_begin + (kHeatsEnd - round_begin) / static_cast<double>(rounds);
      const double each = (round_end - round_begin) / static_cast<double>(left);
      for (std::size_t k = 0; k < left; ++k) {
        const double end = round_begin + each * static_cast<double>(k + 1);
        Scored state = field_[k];
        Scored& best = field_[k];
        while (!IsOver(end) && best.worth.time_ns > base_ns_) {
          const double cold = std::clamp((end - Progress()) / each, 0.0, 1.0);
          search_.Anneal(&state, &best, kChunk, HeatOf(best) * cold * cold, Until(end));
        }
        if (best.worth.time_ns < winner.worth.time_ns) winner = best;
      }
      SortField();
      // Where the search may end up in what cannot be placed, there is something to go back to.
      if (search_.IsSmall() && field_.front().worth.time_ns < made_ns_) Make(field_.front());
      round_begin = round_end;
    }
    return winner;
  }

  void SortField() {
    std::sort(field_.begin(), field_.end(),
              [](const Scored& a, const Scored& b) { return a.worth.time_ns < b.worth.time_ns; });
  }

  /// Takes the plan of a chain, if the iteration is one and it is better.
  void TakeChain() {
    if (question_.problem.ops.size() > kMostChainOps) return;
    if (std::optional<Attempt> attempt = PlanAsChain(question_)) Take(std::move(*attempt));
  }

  /// Keeps a plan if it is the best so far; says whether it is.
  bool Take(Attempt attempt) {
    if (attempt.plan() == nullptr) return false;
    const Nanoseconds ns = sim::Simulate(*attempt.plan()).iteration_ns;
    if (ns >= made_ns_) return false;
    made_ns_ = ns;
    made_ = std::move(attempt);
    if (question_.options.on_progress) question_.options.on_progress(ns);
    return true;
  }

  /// Everything goes to the host, and what is better rebuilt is rebuilt.
  Scored LastResort() {
    Scored state = Empty();
    if (IsHuge()) state.choices.horizon = kHugeHorizon;
    search_.SwapAll(&state);
    search_.Time(state.choices, &state.worth);
    if (state.worth.time_ns < Worth::kNoTime) search_.ConvertBack(&state, Until(kLastResort));
    return state;
  }

  /// Makes a plan of the best choices as they are, or of ones for lower targets.
  void MakeFirst() {
    Scored state = best_;
    double part = search_.IsSmall() ? kGiveUp : kGiveUpFirst;
    for (int k = 0; k < kMostFirst && !Make(state); ++k) {
      GiveUp(part);
      part = std::min(2 * part, kGiveUpFirst);
      if (!Tighten(&state)) break;
    }
    search_.set_target(question_.options.limit_bytes);
  }

  /// Goes on from the best plan so far. False if there is none of ours.
  bool GoBack() {
    if (placed_.worth.time_ns == Worth::kNoTime) return false;
    best_ = placed_;
    search_.set_target(placed_target_);
    return true;
  }

  /// Nothing can be placed for a target that is higher than that of the best plan by more than a
  /// little: goes back to that plan, if it is not much slower, and up halfway from there. Returns
  /// whether it did.
  bool ComeDown(Scored* state) {
    const auto above = static_cast<double>(search_.target() - placed_target_);
    const auto overhead = static_cast<double>(best_.worth.time_ns - base_ns_);
    const auto placed_overhead = static_cast<double>(placed_.worth.time_ns - base_ns_);
    const bool near = placed_overhead <= kMuchDearer * overhead;
    if (!search_.IsSmall() || above <= kStep * Limit() || !near) return false;
    ceiling_ = search_.target();
    if (!GoBack()) return false;
    *state = best_;
    Raise();
    return true;
  }

  /// Raises the target halfway to where it cannot be. What is found so far stays good.
  void Raise() {
    const Bytes target = (search_.target() + ceiling_) / 2;
    if (!search_.IsSmall() || static_cast<double>(ceiling_ - target) < kStep / 2 * Limit()) return;
    search_.set_target(target);
  }

  /// The best cannot be placed. Looks for others that take about as long, step by step for such
  /// that need fewer addresses. Returns whether one of them can be placed.
  bool Squeeze(Scored* state) {
    Worth worth;
    search_.Time(best_.choices, &worth, Worth::kNoTime, /*roughly=*/true);
    const auto more = kSqueezedOverhead * static_cast<double>(best_.worth.time_ns - base_ns_);
    const Nanoseconds most =
        std::max(best_.worth.time_ns, worth.time_ns) + static_cast<Nanoseconds>(more);
    const double end = Progress() + kSqueezeShare;
    Scored current = best_;
    Bytes needed = needed_bytes_;
    double heat = kSqueezeHeat;
    while (!IsOver(std::min(end, 1.0))) {
      Scored next = current;
      Scored found;
      search_.Anneal(&next, &found, kSqueezeChunk, HeatOf(best_) * heat, Until(1));
      const bool stuck = next.choices == current.choices;
      heat = std::clamp(stuck ? 2 * heat : heat / 2, kSqueezeHeat, kMostSqueezeHeat);
      if (stuck || next.worth.time_ns > most) continue;
      if (Make(next, /*quickly=*/true)) {
        best_ = next;
        *state = next;
        return true;
      }
      if (needed_bytes_ > needed) continue;
      needed = needed_bytes_;
      current = std::move(next);
    }
    return false;
  }

  /// Lowers the target by a part of itself, or by more if the last plan was far from being placed.
  void GiveUp(double part) {
    const double share = 1 - std::clamp(Missing() / 2, part, 0.1);
    search_.set_target(static_cast<Bytes>(static_cast<double>(search_.target()) * share));
  }

  /// Of the limit, by how much the last plan that could not be placed was above it.
  double Missing() const { return static_cast<double>(needed_bytes_) / Limit() - 1; }

  double Limit() const { return static_cast<double>(question_.options.limit_bytes); }

  /// Brings choices under a target that is lower than it was. False if that cannot be done.
  bool Tighten(Scored* state) {
    search_.Descend(state, false, [] { return false; });
    return state->worth.time_ns < Worth::kNoTime;
  }

  /// Makes a plan of choices; keeps it if it is the best so far. Returns whether it can be placed.
  bool Make(const Scored& state, bool quickly = false) {
    evaluator_.set_target(search_.target());
    JointState exact;
    exact.choices = state.choices.gaps;
    exact.lingers = state.choices.lingers;
    exact.horizon = state.choices.horizon;
    if (!evaluator_.Evaluate(&exact)) return false;
    Attempt attempt = evaluator_.Make(exact, quickly);
    if (const auto* misfit = std::get_if<plan::Misfit>(&attempt.made)) {
      needed_bytes_ = misfit->needed_bytes;
      return false;
    }
    if (Take(std::move(attempt))) {
      placed_ = state;
      placed_target_ = search_.target();
    }
    return true;
  }

  /// Makes a plan of the best. False if it cannot be placed, or its addresses make ops wait.
  bool MakeAsPredicted() {
    return Make(best_) && static_cast<double>(made_ns_) <=
                              (1 + kPredicted) * static_cast<double>(best_.worth.time_ns);
  }

  /// Looks for better choices, from other starts, the first of them `next`, and on from the best.
  void Search(std::size_t next) {
    if (made_ns_ <= base_ns_) return;
    search_.Activate(best_.choices);
    if (!search_.CanChange()) {
      // Nothing need go for the limit itself, but what stays cannot be placed.
      if (!GoBack()) return;
      search_.Activate(best_.choices);
      if (!search_.CanChange()) return;
    }
    ceiling_ = question_.options.limit_bytes;
    // To go up from where plans can be placed is easier than to come down to it.
    if (search_.IsSmall() && placed_target_ < ceiling_ && GoBack()) {
      const auto least = static_cast<Bytes>(kLeastTarget * Limit());
      search_.set_target(std::max(placed_target_, least));
    }
    Enter(best_);
    // Where the iteration is a chain, little is as good: so that comes before the other starts.
    if (!IsOver(kHeatsEnd)) TakeChain();
    // In a long iteration, starts take what the search from one of them needs.
    const double starts_end = search_.IsSmall() ? kStartsEnd : kStartsEndIfLarge;
    for (std::size_t k = next; k < kStarts.size() && !IsOver(starts_end); ++k) {
      Enter(Begin(kStarts[k]));
    }
    BeginFromRivals();
    best_ = HoldHeats();
    Scored state = best_;
    while (!IsOver(kSearchEnd) && best_.worth.time_ns > base_ns_) AnnealOn(&state);
    while (!IsOver() && made_ns_ > base_ns_) {
      if (best_.worth.time_ns < made_ns_ && !MakeAsPredicted()) {
        const bool squeezed = search_.IsSmall() && Squeeze(&state);
        if (!squeezed && !ComeDown(&state)) {
          Retreat(&state);
          if (search_.IsSmall()) continue;
        }
      } else {
        Raise();
      }
      const Nanoseconds before = best_.worth.time_ns;
      do {
        AnnealOn(&state);
      } while (!IsOver() && best_.worth.time_ns >= std::min(before, made_ns_));
      for (int k = 1; k < kChunksPerPlan && !IsOver(); ++k) AnnealOn(&state);
    }
    MakeLast();
  }

  /// Makes a plan of the best, or of something close to it that leaves more room.
  void MakeLast() {
    for (int k = 0; k < kMostLast && best_.worth.time_ns < made_ns_ && !IsStopped(); ++k) {
      if (Make(best_) || !LowerTarget()) return;
    }
  }

  /// The best cannot be placed. Looks around for others of the same target, and every few times for
  /// some that leave more room, if these are not much slower.
  void Retreat(Scored* state) {
    const Scored misfit = best_;
    // Not where much is missing, and in a long iteration there is no time for it.
    const bool close = Missing() < kCloseToPlaced && search_.IsSmall();
    const bool try_lower = ++misfits_ % kTriesPerTarget == 0 || !close;
    const Bytes target = search_.target();
    if (try_lower && LowerTarget()) {
      const double before = static_cast<double>(misfit.worth.time_ns - base_ns_);
      const double after = static_cast<double>(best_.worth.time_ns - base_ns_);
      const bool any = misfits_ >= kPatience && best_.worth.time_ns < made_ns_;
      if (after <= kDearer * before || any || !close) {
        *state = best_;
        return;
      }
      search_.set_target(target);
    }
    LookAround(misfit, state);
  }

  /// Looks for choices close to some that cannot be placed.
  void LookAround(const Scored& misfit, Scored* state) {
    *state = misfit;
    best_.worth.time_ns = Worth::kNoTime;
    for (int k = 0; k < kChunksPerMisfit && !IsOver(); ++k) AnnealOn(state);
    if (best_.worth.time_ns == Worth::kNoTime) best_ = misfit;
  }

  /// Brings the best under a lower target: much lower if it was far from being placed, or else a
  /// little. False, and all is as it was, if it cannot be.
  bool LowerTarget() {
    const Bytes target = search_.target();
    for (const double part : {std::clamp(Missing() / 2, kGiveUp, 0.1), kGiveUp}) {
      Scored lower = best_;
      search_.set_target(static_cast<Bytes>(static_cast<double>(target) * (1 - part)));
      if (Tighten(&lower)) {
        best_ = std::move(lower);
        return true;
      }
    }
    search_.set_target(target);
    return false;
  }

  void AnnealOn(Scored* state) {
    const double cold = std::clamp((1 - Progress()) / (1 - kHeatsEnd), 0.0, 1.0);
    search_.Anneal(state, &best_, kChunk, HeatOf(*state) * cold * cold, Until(1));
  }

  /// What a random change may cost at first, for choices like these: about as much as one of them.
  double HeatOf(const Scored& state) const {
    const std::vector<Choice>& gaps = state.choices.gaps;
    const auto kept = std::count(gaps.begin(), gaps.end(), Choice::kKeep);
    const auto away = static_cast<std::ptrdiff_t>(gaps.size()) - kept;
    return kHeat * static_cast<double>(state.worth.time_ns - base_ns_) /
           static_cast<double>(std::max<std::ptrdiff_t>(away, 1));
  }

  /// Takes what another planner would do, if it is better. Asks only whom nothing rules out, and of
  /// large problems no longer than the search was.
  void TakeBetterRival() {
    const Bytes limit = question_.options.limit_bytes;
    const auto give_up = [this] {
      return IsStopped() || (!search_.IsSmall() && IsOver(kRivalsLast));
    };
    // No plan that only swaps is faster than this.
    const Nanoseconds bound =
        JointBound(question_.problem, question_.machine, limit, /*may_recompute=*/false);
    Nanoseconds closest = Worth::kNoTime;
    for (const Planner& rival : Planners()) {
      if (made_ns_ <= base_ns_ || give_up()) return;
      if (rival.decide != nullptr && made_ns_ > bound) {
        const Decider decide = rival.decide(question_);
        const auto predicted =
            plan::PredictIteration(question_.problem, decide(limit), question_.machine,
                                   ToScheduleOptions(question_.options));
        if (!predicted) continue;
        // With less load than the limit allows, it may do better than at the limit.
        if (*predicted > made_ns_ + made_ns_ / 2) continue;
        closest = std::min(closest, *predicted);
        Take(MakeFit(question_, decide, made_ns_, give_up));
      } else if (rival.choose != nullptr && search_.IsSmall()) {
        const JointState state = ConsiderRival(rival, question_, limit, &evaluator_);
        const auto made_ns = static_cast<double>(made_ns_);
        if (state.time_ns >= made_ns) continue;
        Take(MakeFitByChoices(question_, rival.choose, made_ns));
      }
    }
    // Combined, the scores may be so much better than one of them alone.
    if (made_ns_ <= bound || closest - made_ns_ > made_ns_ / kReachOfScores) return;
    PlannerOptions options = question_.options;
    options.stop = give_up;
    Take(PlanBayes({question_.problem, question_.machine, options}));
  }

  /// Of the budget: when there should be something to begin with, and until when the last resort
  /// and other planners are worth a try.
  static constexpr double kHurry = 1;
  static constexpr double kLastResort = 1.5;
  static constexpr double kRivalsLast = 2;
  static constexpr Nanoseconds kReachOfScores = 6;  ///< A sixth.
  /// Of the limit: above the first, what is persistent is swapped from the start, down to the
  /// other.
  static constexpr double kMostPersistent = 0.8;
  static constexpr std::size_t kStride = 16;
  static constexpr double kRoomForPersistent = 0.5;
  static constexpr int kChunksPerPlan = 6;
  static constexpr int kChunksPerMisfit = 3;
  static constexpr int kMostRounds = 3;
  static constexpr int kMostLast = 3;
  static constexpr int kTriesPerTarget = 3;
  static constexpr double kCloseToPlaced = 0.05;
  /// How much more overhead is taken for more room, until there have
  /// been so many misfits.
  static constexpr double kDearer = 1.03;
  static constexpr double kMuchDearer = 1.3;
  /// Of the limit, what is searched for at first, at least.
  static constexpr double kLeastTarget = 0.98;
  static constexpr int kPatience = 10;
  /// For others that need fewer addresses: how much more overhead they may have, which part of the
  /// budget they may take, how far the next is from the one before, and how hot it gets if nothing
  /// changes.
  static constexpr double kSqueezedOverhead = 0.02;
  static constexpr double kSqueezeShare = 0.1;
  static constexpr std::int64_t kSqueezeChunk = 40;
  static constexpr double kSqueezeHeat = 0.3;
  static constexpr double kMostSqueezeHeat = 10;
  /// Of the limit: targets that differ by less are the same.
  static constexpr double kStep = 0.004;
  /// By how much a plan may be slower than predicted.
  static constexpr double kPredicted = 0.002;

  const Question& question_;
  JointEvaluator evaluator_;
  JointSearch search_;
  const Deadline deadline_;
  const Nanoseconds base_ns_;  // Nothing is faster than the recorded ops alone.
  Scored best_;                // For the target, whether it can be placed or not.
  Scored placed_;              // What the best plan was made of.
  Bytes placed_target_ = 0;
  Bytes ceiling_ = 0;  // Of targets: what was found there could not be placed, or it is the limit.
  std::vector<Scored> field_;  // Starts to search on from, the best first.
  Bytes needed_bytes_ = 0;     // By the last plan that could not be placed.
  int misfits_ = 0;            // Of the search.
  std::optional<Attempt> made_;
  Nanoseconds made_ns_ = Worth::kNoTime;
};

}  // namespace

Attempt PlanJoint(const Question& question) { return Joint(question).Run(); }

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
//
// `joint`: keep, swap or recompute, gap by gap.
//
//   1. Starts. The link is filled with what is dear to rebuild, then gaps are dropped, cheapest
//      bytes first, until the load is within the target, and a little further: copies on their way
//      need room, too. Moments that the link carries for nothing leave, and whatever has become
//      needless is kept again.
//   2. Search: random changes, and small parts torn down and built anew, with simulated annealing
//      on an estimate of the iteration, from several starts; what seems better is rehearsed.
//   3. Plans are made of the best. Where one cannot be placed, others are looked for that take as
//      long and need fewer addresses, or a lower target is aimed at (joint_place.cc).
//
// A first plan is made at once, so that there is one whenever time is up. In the end, what the
// other planners would do is looked at, and taken if it is better.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/chain_start_internal.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/joint_internal.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll::planners {
namespace {

/// Of what one of those costs that are away, what a random change may cost at first.
constexpr double kHeat = 0.3;
/// Of that, what one may cost when the search goes on from where the starts got to.
constexpr double kReheat = 0.5;
/// How many choices are looked at between two looks at the clock's progress.
constexpr std::int64_t kChunk = 500;
/// Of the budget: when the last start of ours begins, by how much later it ends, and when plans are
/// to be made.
constexpr double kStartsEnd = 0.14;
constexpr double kStragglersEnd = 1.2;
constexpr double kStartsEndIfLarge = 0.05;
constexpr double kHeatsEnd = 0.55;
constexpr double kSearchEnd = 0.6;
/// How much more overhead a thread may have when the heats end, and still go its own way.
constexpr double kFarBehind = 1.01;
/// How many starts are searched on from.
constexpr std::size_t kField = 4;
constexpr std::size_t kLeastField = 3;
/// For each of them, so many evaluations of every gap that matters.
constexpr double kPerActive = 20;
/// Longer iterations are not looked at as chains: that takes too long.
constexpr std::size_t kMostChainOps = 1000;
/// In iterations longer than this, replays reach back so many ops at most: without an end, a chain
/// of them is as long as the network, and trying one takes a time that grows with its square.
constexpr std::size_t kHugeOps = 50'000;
constexpr plan::OpIndex kHugeHorizon = 24;
/// Of the budget: when there should be something to begin with, and until when the last resort is
/// worth a try.
constexpr double kHurry = 1;
constexpr double kLastResort = 1.5;
/// Of the limit: above the first, what is persistent is swapped from the start, down to the
/// other.
constexpr double kMostPersistent = 0.8;
constexpr std::size_t kStride = 16;
constexpr double kRoomForPersistent = 0.5;
/// How many parts of the search there are from plan to plan, and rounds of a start.
constexpr int kChunksPerPlan = 6;
constexpr int kMostRounds = 3;
/// Of the limit, what is searched for at first, at least.
constexpr double kLeastTarget = 0.98;

}  // namespace

const std::vector<Joint::Start>& Joint::Starts() {
  static const std::vector<Start> starts = {
      {0.6, false},  {0, true},     {0.75, true},  {0.4, false}, {0.6, true},
      {0.75, false}, {0, true, 24}, {0, false, 0}, {0.4, true},  {0, false}};
  return starts;
}

bool Joint::IsHuge() const { return question_.problem.ops.size() > kHugeOps; }

bool Joint::IsOutOfReach() const {
  const std::vector<plan::OpLoad> loads = plan::LoadOps(question_.problem);
  const plan::OpIndex largest = plan::FindLargestOp(loads);
  if (largest < 0) return false;
  return question_.options.limit_bytes < loads[static_cast<std::size_t>(largest)].needed_bytes();
}

Attempt Joint::Run() {
  if (IsOutOfReach()) return MakeSmallest(question_);
  search_.set_target(question_.options.limit_bytes);
  search_.set_in_hurry(Until(kHurry));
  // Next to everything must go.
  if (!MayDoWithoutSwaps()) search_.set_stride(kStride);
  std::size_t next = IsHuge() ? Starts().size() : 0;
  if (IsHuge()) best_ = Begin({0.6, false, kHugeHorizon});
  while (next < Starts().size() && best_.worth.time_ns == Worth::kNoTime) {
    best_ = Begin(Starts()[next++]);
    // Where the first finds nothing, others hardly do that keep what they rebuild.
    if (next == 1 && best_.worth.time_ns == Worth::kNoTime) best_ = Begin({0, false, 0});
  }
  // In a short iteration, the search finds what is better, if there is anything to begin with.
  if (!search_.IsSmall() || best_.worth.time_ns == Worth::kNoTime) {
    Scored mended = Mend();
    if (mended.worth.time_ns < best_.worth.time_ns) best_ = std::move(mended);
  }
  if (best_.worth.time_ns == Worth::kNoTime) best_ = LastResort();
  if (best_.worth.time_ns < Worth::kNoTime) {
    MakeFirst();
    if (!made_ && roomy_.worth.time_ns < Worth::kNoTime) Make(roomy_);
    Search(next);
  }
  if (!made_) TakeChain();
  if (!made_) {
    if (std::optional<Attempt> first = MakeAtOnce(question_)) Take(std::move(*first));
  }
  if (!made_) {
    Attempt smallest = MakeSmallest(question_);
    if (!Take(smallest) && !TakeAnyRival()) return smallest;
  }
  if (!IsStopped() && !IsHuge()) TakeBetterRival();
  return std::move(*made_);
}

std::optional<Attempt> Joint::RunBriefly() {
  if (IsOutOfReach()) return std::nullopt;
  search_.set_target(question_.options.limit_bytes);
  if (!MayDoWithoutSwaps()) search_.set_stride(kStride);
  best_ = Begin({0, false, 0});
  if (best_.worth.time_ns == Worth::kNoTime || !Make(roomy_)) best_ = LastResort();
  if (!made_ && best_.worth.time_ns < Worth::kNoTime) MakeFirst();
  return std::move(made_);
}

Scored Joint::Begin(const Start& start, double end) {
  const JointSearch::IsOver is_over = UntilFound(end);
  Scored state = Empty();
  state.choices.horizon = start.horizon;
  if (!MayDoWithoutSwaps()) {
    const auto room = static_cast<double>(question_.options.limit_bytes) * kRoomForPersistent;
    search_.SwapPersistent(&state, PersistentBytes() - static_cast<Bytes>(room));
  } else if (start.share > 0) {
    search_.FillLink(&state, start.share, is_over);
  }
  search_.Descend(&state, start.area, is_over);
  if (state.worth.time_ns < Worth::kNoTime) Settle(&state, end);
  return state;
}

Scored Joint::Mend() {
  Scored state = search_.stuck();
  if (state.choices.gaps.empty()) return state;
  search_.SwapForReplays(&state, [this] { return IsStopped(); });
  if (state.worth.time_ns == Worth::kNoTime) return state;
  search_.Descend(&state, false, Until(kHurry));
  Settle(&state, 1);
  return state;
}

void Joint::Settle(Scored* state, double end) {
  search_.SwapMoments(state);
  if (roomy_.worth.time_ns == Worth::kNoTime) roomy_ = *state;
  // What the link carries now makes room for others to return; in a short iteration, the search
  // finds those.
  const int rounds = search_.IsSmall() ? 1 : kMostRounds;
  for (int k = 0; k < rounds; ++k) {
    const Nanoseconds before = state->worth.time_ns;
    search_.Relax(state, Until(end));
    search_.Convert(state, Until(end));
    if (state->worth.time_ns == before) break;
  }
}

Scored Joint::LastResort() {
  Scored state = Empty();
  if (IsHuge()) state.choices.horizon = kHugeHorizon;
  search_.SwapAll(&state);
  search_.Time(state.choices, &state.worth);
  if (state.worth.time_ns < Worth::kNoTime) search_.ConvertBack(&state, Until(kLastResort));
  return state;
}

void Joint::Search(std::size_t next) {
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
  Engage();
  TryStarts(next);
  for (const std::unique_ptr<Joint>& helper : helpers_) {
    helper->field_ = field_;
    helper->best_ = best_;
  }
  Together([](Joint* joint) { joint->best_ = joint->HoldHeats(); });
  CatchUp();
  Together([](Joint* joint) { joint->GoOn(); });
  TakeFromHelpers();
}

void Joint::CatchUp() {
  const Joint* leader = this;
  for (const std::unique_ptr<Joint>& helper : helpers_) {
    if (helper->best_.worth.time_ns < leader->best_.worth.time_ns) leader = helper.get();
  }
  const auto follow = [&](Joint* joint) {
    const auto most = kFarBehind * static_cast<double>(leader->best_.worth.time_ns - base_ns_);
    if (static_cast<double>(joint->best_.worth.time_ns - base_ns_) > most) {
      joint->best_ = leader->best_;
    }
  };
  for (const std::unique_ptr<Joint>& helper : helpers_) follow(helper.get());
  follow(this);
}

void Joint::TryStarts(std::size_t next) {
  const std::vector<const Planner*> rivals = ListRivals();
  const std::size_t starts = Starts().size() - next;
  // In a long iteration, starts take what the search from one of them needs.
  const double starts_end = search_.IsSmall() ? kStartsEnd : kStartsEndIfLarge;
  std::vector<Scored> found(starts + rivals.size());
  std::atomic<std::size_t> first_left = 0;
  Together([&](Joint* joint) {
    for (std::size_t k = first_left++; k < found.size(); k = first_left++) {
      if (k >= starts) {
        found[k] = joint->BeginFrom(*rivals[k - starts]);
      } else if (!joint->IsOver(starts_end)) {
        found[k] = joint->Begin(Starts()[next + k], kStragglersEnd * starts_end);
      }
    }
  });
  for (Scored& state : found) Enter(std::move(state));
}

void Joint::GoOn() {
  Scored state = best_;
  while (!IsOver(kSearchEnd) && best_.worth.time_ns > base_ns_) AnnealOn(&state);
  while (!IsOver() && made_ns_ > base_ns_) {
    if (best_.worth.time_ns < made_ns_ && !MakeAsPredicted()) {
      if (MayWalk()) return WalkPlaced();
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

Scored Joint::HoldHeats() {
  Scored winner = best_;
  double round_begin = std::max(Progress(), 0.0);
  // As many as there is time for, at the pace so far.
  const double left_over = std::max(kHeatsEnd - round_begin, 0.0) / std::max(round_begin, 1e-3);
  const double each_takes = kPerActive * static_cast<double>(search_.active_count());
  const double many = left_over * static_cast<double>(search_.evaluations()) / each_takes;
  const auto most = static_cast<std::size_t>(std::clamp(many, double{kLeastField}, double{kField}));
  if (field_.size() > most) field_.resize(most);
  for (std::size_t left = field_.size(); left > 0; left = left > 1 ? (left + 1) / 2 : 0) {
    std::size_t rounds = 1;
    for (std::size_t k = left; k > 1; k = (k + 1) / 2) ++rounds;
    const double round_end = round_begin + (kHeatsEnd - round_begin) / static_cast<double>(rounds);
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

void Joint::Enter(Scored state) {
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

void Joint::SortField() {
  std::sort(field_.begin(), field_.end(),
            [](const Scored& a, const Scored& b) { return a.worth.time_ns < b.worth.time_ns; });
}

void Joint::AnnealOn(Scored* state) {
  const double cold = std::clamp((1 - Progress()) / (1 - kHeatsEnd), 0.0, 1.0);
  search_.Anneal(state, &best_, kChunk, kReheat * HeatOf(*state) * cold * cold, Until(1));
}

double Joint::HeatOf(const Scored& state) const {
  const std::vector<Choice>& gaps = state.choices.gaps;
  const auto kept = std::count(gaps.begin(), gaps.end(), Choice::kKeep);
  const auto away = static_cast<std::ptrdiff_t>(gaps.size()) - kept;
  return kHeat * static_cast<double>(state.worth.time_ns - base_ns_) /
         static_cast<double>(std::max<std::ptrdiff_t>(away, 1));
}

void Joint::TakeChain() {
  if (question_.problem.ops.size() > kMostChainOps) return;
  if (std::optional<Attempt> attempt = PlanAsChain(question_)) Take(std::move(*attempt));
}

bool Joint::Take(Attempt attempt) {
  if (attempt.plan() == nullptr) return false;
  const Nanoseconds ns = sim::Simulate(*attempt.plan()).iteration_ns;
  if (ns >= made_ns_) return false;
  made_ns_ = ns;
  made_ = std::move(attempt);
  if (question_.options.on_progress) question_.options.on_progress(ns);
  return true;
}

double Joint::Progress() const {
  const PlannerOptions& options = question_.options;
  if (options.evaluations > 0) {
    return static_cast<double>(search_.evaluations()) / static_cast<double>(options.evaluations);
  }
  if (options.time_budget_seconds <= 0) return 1;
  return 1 - deadline_.remaining_seconds() / options.time_budget_seconds;
}

JointSearch::IsOver Joint::Until(double progress) const {
  return [this, progress] { return IsOver(progress); };
}

JointSearch::IsOver Joint::UntilFound(double progress) const {
  return [this, progress] { return best_.worth.time_ns < Worth::kNoTime && IsOver(progress); };
}

Scored Joint::Empty() const {
  Scored state;
  state.choices.gaps.assign(search_.gaps().size(), Choice::kKeep);
  return state;
}

Bytes Joint::PersistentBytes() const {
  Bytes sum = 0;
  for (const plan::Variable& variable : question_.problem.variables) {
    if (variable.persistent()) sum += variable.size_bytes;
  }
  return sum;
}

bool Joint::MayDoWithoutSwaps() const {
  return static_cast<double>(PersistentBytes()) <
         kMostPersistent * static_cast<double>(question_.options.limit_bytes);
}

Attempt PlanJoint(const Question& question) { return Joint(question).Run(); }

std::optional<Attempt> PlanJointBriefly(const Question& question) {
  return Joint(question).RunBriefly();
}

}  // namespace plimsoll::planners

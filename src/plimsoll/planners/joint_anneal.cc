// SPDX-License-Identifier: Apache-2.0
//
// The part of `joint` that goes here and there: random changes, and parts built anew.
#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_search_internal.h"

namespace plimsoll::planners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// How rarely parts are built anew: that takes about as many evaluations as there are gaps.
constexpr std::uint64_t kRecreateOneIn = 200;
constexpr std::uint64_t kRecreateOneInGaps = 2;
constexpr std::size_t kFewOps = 300;
/// One in so many estimates is rehearsed that is not likely to be the best.
constexpr std::uint64_t kDoubt = 16;
/// What a byte of room is worth, of what a byte costs that is away; and of the target, how much
/// room is worth anything.
constexpr double kPrice = 2;
constexpr double kMostRoom = 0.05;
/// How rarely something goes for the room that it leaves.
constexpr std::uint64_t kLeaveOneIn = 32;
/// How rarely it is changed how early copies in begin.
constexpr std::uint64_t kPrefetchOneIn = 100;

}  // namespace

void JointSearch::Activate(const Choices& choices) {
  active_.clear();
  relief_ = EstimateRelief(false);
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    // Moments that are gone for nothing do not come back.
    if (IsOfMoment(g) && choices.gaps[g] == Choice::kSwap) continue;
    if (relief_[g] > 0 || choices.gaps[g] != Choice::kKeep) active_.push_back(g);
  }
}

std::size_t JointSearch::AnyOf(const std::vector<std::size_t>& list) {
  return list[static_cast<std::size_t>(random_() % list.size())];
}

Choice JointSearch::AnyAway(std::size_t gap) {
  return own_ns_[gap] < kNever && random_() % 3 != 0 ? Choice::kDrop : Choice::kSwap;
}

/// An active gap, more often than not one close to another in the program.
std::size_t JointSearch::AnyNear(std::size_t gap) {
  if (random_() % 3 == 0) return AnyOf(active_);
  const auto place = std::lower_bound(active_.begin(), active_.end(), gap) - active_.begin();
  const auto count = static_cast<std::int64_t>(active_.size());
  const std::int64_t step = static_cast<std::int64_t>(random_() % 17) - 8;
  return active_[At(std::clamp<std::int64_t>(place + step, 0, count - 1))];
}

/// An active gap that is away; any active one if it does not meet one soon.
std::size_t JointSearch::AnyGone(const Choices& choices) {
  std::size_t g = AnyOf(active_);
  for (int k = 0; k < 6 && choices.gaps[g] == Choice::kKeep; ++k) g = AnyOf(active_);
  return g;
}

/// The op within a gap at which the load is highest.
plan::OpIndex JointSearch::FullestIn(std::size_t gap) const {
  const auto begin = needs_.begin() + gaps_[gap].after + 1;
  const auto end = needs_.begin() + gaps_[gap].before;
  if (begin < end) return static_cast<plan::OpIndex>(std::max_element(begin, end) - needs_.begin());
  // Around the end.
  const auto tail = std::max_element(begin, needs_.end());
  const auto head = std::max_element(needs_.begin(), end);
  const bool in_head = tail == needs_.end() || (head != end && *head > *tail);
  return static_cast<plan::OpIndex>((in_head ? head : tail) - needs_.begin());
}

bool JointSearch::Covers(std::size_t gap, plan::OpIndex op) const {
  const plan::Gap& x = gaps_[gap];
  if (x.after < x.before) return x.after < op && op < x.before;
  return op > x.after || op < x.before;
}

/// Whether a gap that is away can stay, as far as the loads tell of what is searched on from.
bool JointSearch::HasRoomFor(std::size_t gap) const {
  return needs_[At(FullestIn(gap))] + SizeOf(gap) <= target_;
}

/// A gap that makes room for another to return, more often than not.
std::size_t JointSearch::AnySubstitute(std::size_t gap, const Choices& choices) {
  const plan::OpIndex fullest = FullestIn(gap);
  const Bytes missing = needs_[At(fullest)] + SizeOf(gap) - target_;
  std::size_t other = AnyNear(gap);
  for (int k = 0; k < 8; ++k) {
    const bool stays = other != gap && choices.gaps[other] == Choice::kKeep;
    if (stays && SizeOf(other) >= missing && Covers(other, fullest)) break;
    other = AnyNear(gap);
  }
  return other;
}

/// Lets something go whose replays need the dead, with all that is made of them or without, and
/// lets these linger.
void JointSearch::DropAndLinger(bool family, Choices* choices) {
  const std::size_t g = AnyOf(active_);
  if (choices->gaps[g] == Choice::kDrop || own_ns_[g] == kNever) return;
  choices->gaps[g] = Choice::kDrop;
  Worth worth;
  if (!Weigh(*choices, &worth)) return;
  if (family) {
    DropFamily(choices, relief_);
    if (!Weigh(*choices, &worth)) return;
  }
  double bytes = 0;
  LingerRevenants(choices, &bytes);
}

/// Something lingers, or does so no more.
void JointSearch::FlipLingering(Choices* choices) {
  if (choices->lingers.empty()) {
    choices->lingers.assign(rewriter_.problem().variables.size(), false);
  }
  const auto v = At(ghosts_[static_cast<std::size_t>(random_() % ghosts_.size())]);
  choices->lingers[v] = !choices->lingers[v];
}

/// A swap becomes a replay or the other way, and with `exchange` something else takes its place.
void JointSearch::Turn(std::size_t g, bool exchange, Choices* choices) {
  std::vector<Choice>& gaps = choices->gaps;
  const bool drop = gaps[g] == Choice::kSwap && own_ns_[g] < kNever;
  gaps[g] = drop ? Choice::kDrop : Choice::kSwap;
  if (!exchange) return;
  // What takes its place on the link, or leaves it, had best be as large.
  const auto suits = [&](std::size_t other) {
    if (other == g || gaps[other] != gaps[g]) return false;
    const Bytes a = SizeOf(g);
    const Bytes b = SizeOf(other);
    return drop ? b <= a + a / 4 : b >= a - a / 4;
  };
  std::size_t other = random_() % 2 == 0 ? AnyNear(g) : AnyGone(*choices);
  for (int k = 0; k < 6 && !suits(other); ++k) {
    other = random_() % 2 == 0 ? AnyNear(g) : AnyOf(active_);
  }
  if (other == g || gaps[other] == Choice::kKeep) return;
  if (drop) {
    gaps[other] = Choice::kSwap;
  } else if (own_ns_[other] < kNever) {
    gaps[other] = Choice::kDrop;
  }
}

/// Something stays, and others nearby go in its place, or stay too.
void JointSearch::Return(std::size_t g, int others, bool stay_too, Choices* choices) {
  std::vector<Choice>& gaps = choices->gaps;
  gaps[g] = Choice::kKeep;
  for (int k = 0; k < others; ++k) {
    const std::size_t other = k == 0 ? AnySubstitute(g, *choices) : AnyNear(g);
    if (other == g) continue;
    if (gaps[other] == Choice::kKeep) {
      gaps[other] = AnyAway(other);
    } else if (stay_too) {
      gaps[other] = Choice::kKeep;
    }
  }
}

/// Something goes, whether that is of use or not: the room that it leaves has a price.
void JointSearch::LetGo(Choices* choices) {
  std::size_t g = AnyOf(active_);
  for (int k = 0; k < 6 && choices->gaps[g] != Choice::kKeep; ++k) g = AnyOf(active_);
  if (choices->gaps[g] == Choice::kKeep) choices->gaps[g] = AnyAway(g);
}

/// Changes a few choices at random.
void JointSearch::Change(Choices* choices) {
  // In a long iteration there is no time to find addresses for what comes early.
  if (IsSmall() && random_() % kPrefetchOneIn == 0) {
    choices->prefetch = std::min(kPrefetches[random_() % kPrefetches.size()], most_prefetch_);
    return;
  }
  if (random_() % kLeaveOneIn == 0) return LetGo(choices);
  const std::uint64_t kind = random_() % 32;
  const bool ghosts = !ghosts_.empty();
  if (ghosts && kind >= 28 && random_() % 2 == 0) return DropAndLinger(kind >= 30, choices);
  if (ghosts && kind < 2) FlipLingering(choices);
  if (ghosts && kind == 0) return;
  std::size_t g = AnyGone(*choices);
  const bool alone = kind >= 12 && kind < 16;
  for (int k = 0; alone && k < 8 && choices->gaps[g] != Choice::kKeep && !HasRoomFor(g); ++k) {
    g = AnyGone(*choices);
  }
  if (choices->gaps[g] == Choice::kKeep) {
    choices->gaps[g] = AnyAway(g);
  } else if (kind < 12) {
    Turn(g, kind >= 6, choices);
  } else {
    Return(g, kind < 16 ? 0 : kind < 28 ? 1 : 2, kind % 2 == 0, choices);
  }
}

/// Keeps some gaps that are away, close to each other or anywhere, and lets others go instead, with
/// prices that are somewhat off: so what is found differs from time to time.
void JointSearch::Recreate(Scored* state, const IsOver& is_over) {
  std::vector<Choice>& gaps = state->choices.gaps;
  const std::size_t count = 2 + static_cast<std::size_t>(random_() % 12);
  const bool close = random_() % 2 == 0;
  const std::size_t begin = static_cast<std::size_t>(random_() % active_.size());
  std::size_t kept = 0;
  for (std::size_t k = 0; k < active_.size() && kept < count; ++k) {
    const std::size_t g = close ? active_[(begin + k) % active_.size()] : AnyOf(active_);
    if (gaps[g] == Choice::kKeep) continue;
    gaps[g] = Choice::kKeep;
    ++kept;
  }
  if (!Weigh(state->choices, &state->worth)) return;
  // Copies are as good as free as long as the link has room: who knows.
  const double copy_price = std::pow(10.0, -3.0 * static_cast<double>(random_() % 1024) / 1023);
  std::normal_distribution<double> noise(0, 0.25);
  std::priority_queue<Entry> queue;
  for (const std::size_t g : active_) {
    if (gaps[g] != Choice::kKeep || relief_[g] <= 0) continue;
    if (own_ns_[g] < kNever) {
      queue.push({relief_[g] / (own_ns_[g] + 1) * std::exp(noise(random_)), g, Choice::kDrop});
    }
    queue.push(
        {relief_[g] / (copy_price * CopyNs(g) + 1) * std::exp(noise(random_)), g, Choice::kSwap});
  }
  copy_price_ = copy_price;
  TakeBest(&queue, relief_, false, 1, state, is_over);
  copy_price_ = 1;
}

/// In nanoseconds, of a byte. Much of what goes costs nothing, as the link carries it on the side,
/// and too little to let anything return. Without a price it would come and go by chance.
double JointSearch::PriceOf(const Scored& state) const {
  double away = 1;
  for (const std::size_t g : active_) {
    if (state.choices.gaps[g] != Choice::kKeep) away += static_cast<double>(SizeOf(g));
  }
  return kPrice * static_cast<double>(state.worth.time_ns - base_ns_) / away;
}

void JointSearch::Anneal(Scored* state, Scored* best, std::int64_t evaluations, double heat_ns,
                         const IsOver& is_over) {
  if (active_.empty()) return;
  if (!IsSmall()) return Improve(state, best, evaluations, is_over);
  // A rehearsal of a short iteration takes no longer than the rest.
  const bool roughly = rewriter_.problem().ops.size() > kFewOps;
  const std::int64_t end = evaluations_ + evaluations;
  const std::uint64_t one_in = std::max(kRecreateOneIn, kRecreateOneInGaps * active_.size());
  Scored next = *state;
  const auto estimate = [&](const Scored& x) {
    return Time(x.choices, &next.worth, Worth::kNoTime, roughly) ? next.worth.time_ns
                                                                 : Worth::kNoTime;
  };
  best_estimate_ns_ = best->worth.time_ns < Worth::kNoTime ? estimate(*best) : 0;
  if (estimate(*state) == Worth::kNoTime) return;
  // Estimates are compared with estimates.
  state->worth = next.worth;
  // A rehearsal does not tell how much room is left.
  const double price = roughly ? PriceOf(*state) : 0;
  const double most_room = kMostRoom * static_cast<double>(target_);
  const auto room_ns = [&](Bytes highest_bytes) {
    const auto room = static_cast<double>(target_ - highest_bytes);
    return static_cast<Nanoseconds>(price * std::clamp(room, 0.0, most_room));
  };
  Nanoseconds state_room_ns = room_ns(estimator_.highest_bytes());
  sketch_.ListNeeds(&needs_);
  while (evaluations_ < end && !is_over()) {
    next.choices = state->choices;
    if (random_() % one_in == 0) {
      Recreate(&next, is_over);
      if (next.worth.excess > 0) continue;
    } else {
      Change(&next.choices);
      if (next.choices == state->choices) {
        ++evaluations_;
        continue;
      }
    }
    const double chance = static_cast<double>(random_() >> 11) * 0x1p-53;
    const double slack = -heat_ns * std::log(std::max(chance, 1e-9));
    const auto worst = state->worth.time_ns - state_room_ns + static_cast<Nanoseconds>(slack);
    const auto latest = worst + static_cast<Nanoseconds>(price * most_room);
    if (!Draw(next.choices, latest) || sketch_.highest_bytes() > target_) continue;
    // There is no more room than the loads leave.
    const Nanoseconds within = worst + room_ns(sketch_.highest_bytes());
    TimeDrawn(next.choices, &next.worth, within, roughly);
    if (next.worth.time_ns > within) continue;
    const Nanoseconds next_room_ns = room_ns(estimator_.highest_bytes());
    if (next.worth.time_ns - next_room_ns > worst) continue;
    state_room_ns = next_room_ns;
    std::swap(*state, next);
    KeepUseless(&state->choices);
    sketch_.ListNeeds(&needs_);
    ghosts_.clear();
    for (const Sketch::Revenant& x : sketch_.revenants()) ghosts_.push_back(x.variable);
    if (!state->choices.lingers.empty()) {
      for (std::size_t v = 0; v < state->choices.lingers.size(); ++v) {
        if (state->choices.lingers[v]) ghosts_.push_back(static_cast<plan::VariableIndex>(v));
      }
    }
    NoteBest(state, best);
  }
}

/// The same for long iterations, which there is no time to heat and to cool: takes what seems
/// better, by estimates alone, and rehearses in the end.
void JointSearch::Improve(Scored* state, Scored* best, std::int64_t evaluations,
                          const IsOver& is_over) {
  const std::int64_t end = evaluations_ + evaluations;
  if (!Time(state->choices, &state->worth, Worth::kNoTime, true)) return;
  sketch_.ListNeeds(&needs_);
  const Nanoseconds before = state->worth.time_ns;
  Scored next = *state;
  while (evaluations_ < end && !is_over()) {
    next.choices = state->choices;
    Change(&next.choices);
    if (!Time(next.choices, &next.worth, state->worth.time_ns, true)) continue;
    if (next.worth.time_ns > state->worth.time_ns) continue;
    std::swap(*state, next);
    KeepUseless(&state->choices);
    sketch_.ListNeeds(&needs_);
  }
  if (state->worth.time_ns >= before) return;
  Worth exact;
  if (!Time(state->choices, &exact) || exact.time_ns >= best->worth.time_ns) return;
  best->choices = state->choices;
  KeepUseless(&best->choices);
  best->worth = exact;
}

/// Takes choices for the best if a rehearsal says so. Estimates are no more than that.
void JointSearch::NoteBest(Scored* state, Scored* best) {
  const Nanoseconds estimate_ns = state->worth.time_ns;
  const Nanoseconds to_beat_ns = std::max(best->worth.time_ns, best_estimate_ns_);
  if (estimate_ns >= to_beat_ns) return;
  // Where estimates have been too low, most of what seems better is not.
  if (estimate_ns + shortfall_ns_ >= to_beat_ns && random_() % kDoubt != 0) return;
  Worth exact;
  if (!Time(state->choices, &exact) || exact.time_ns == Worth::kNoTime) return;
  shortfall_ns_ = (shortfall_ns_ + std::max<Nanoseconds>(exact.time_ns - estimate_ns, 0)) / 2;
  state->worth.time_ns = std::max(estimate_ns, exact.time_ns);
  if (exact.time_ns >= best->worth.time_ns) return;
  best_estimate_ns_ = estimate_ns;
  best->choices = state->choices;
  KeepUseless(&best->choices);
  best->worth = exact;
}

}  // namespace plimsoll::planners

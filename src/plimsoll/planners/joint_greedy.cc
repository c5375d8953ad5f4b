// SPDX-License-Identifier: Apache-2.0
//
// The part of `joint` that goes straight down: which gaps to let go for a target, and which to keep
// again.
#include <algorithm>
#include <queue>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/joint_search_internal.h"

namespace plimsoll::planners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// From this many gaps times ops on, gaps are looked at in batches.
constexpr std::size_t kMuch = 16'000'000;
/// In how many leaps everything is swapped, when there is no time.
constexpr std::size_t kLeaps = 32;
/// How often it is tried there to let some return.
constexpr std::size_t kMostReturns = 600;
/// How many changes in a row may turn out to be useless.
constexpr std::size_t kPatience = 24;
/// In a long iteration, of how many parts of the moments it is seen whether they can go.
constexpr std::size_t kMostParts = 16;

}  // namespace

bool JointSearch::IsSmall() const { return work_ <= kMuch; }

/// Per gap: its bytes, if it covers an op above the target; by area, as often as it does.
std::vector<double> JointSearch::EstimateRelief(bool area) const {
  const plan::Problem& problem = rewriter_.problem();
  const std::vector<Bytes> load = plan::LeastLoad(problem, {}, 1);
  std::vector<double> over(problem.ops.size() + 1, 0);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const bool high = load[At(problem.ops[i].position)] > target_;
    over[i + 1] = over[i] + (high ? 1 : 0);
  }
  std::vector<double> relief(gaps_.size());
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    const double lap = gaps_[g].end >= problem.period ? over.back() : 0;
    const double ops = over[At(gaps_[g].before)] + lap - over[At(gaps_[g].after) + 1];
    relief[g] = ops <= 0 ? 0 : static_cast<double>(SizeOf(g)) * (area ? ops : 1.0);
  }
  return relief;
}

/// Lets everything linger that the last drawing rebuilt beyond its free. False if there is nothing.
bool JointSearch::LingerRevenants(Choices* choices, double* bytes) const {
  bool any = false;
  for (const Sketch::Revenant& x : sketch_.revenants()) {
    if (choices->lingers.empty()) {
      choices->lingers.assign(rewriter_.problem().variables.size(), false);
    }
    if (choices->lingers[At(x.variable)]) continue;
    choices->lingers[At(x.variable)] = true;
    *bytes += static_cast<double>(rewriter_.problem().variables[At(x.variable)].size_bytes);
    any = true;
  }
  return any;
}

/// Weighs some more choices against those of a state.
JointSearch::Step JointSearch::WeighStep(const Scored& state, const std::vector<Entry>& taken,
                                         const std::vector<double>& relief, bool area) {
  Step step{state, 0, false};
  double bytes = 0;
  double copies_ns = 0;
  for (const Entry& entry : taken) {
    step.next.choices.gaps[entry.gap] = entry.choice;
    if (entry.choice == Choice::kSwap) copies_ns += copy_price_ * CopyNs(entry.gap);
    bytes += relief[entry.gap];
  }
  const auto weigh = [&](Step* x, double relieved) {
    if (!Weigh(x->next.choices, &x->next.worth)) return;
    const double less = state.worth.excess - x->next.worth.excess;
    const auto more = static_cast<double>(x->next.worth.replay_ns - state.worth.replay_ns);
    x->good = less > 0 && relieved > 0;
    x->worth = (area ? less : relieved) / (std::max(more, 0.0) + copies_ns + 1);
  };
  weigh(&step, bytes);
  if (taken.size() > 1 || taken[0].choice != Choice::kDrop || sketch_.revenants().empty())
    return step;
  // Its inputs are dead: to keep them may be better than to rebuild them, too.
  Step other{step.next, 0, false};
  double lingering = 0;
  if (!LingerRevenants(&other.next.choices, &lingering)) return step;
  Step family{step.next, 0, false};
  const double family_bytes = bytes + DropFamily(&family.next.choices, relief);
  weigh(&other, bytes - lingering);
  if (family_bytes > bytes && Weigh(family.next.choices, &family.next.worth)) {
    lingering = 0;
    LingerRevenants(&family.next.choices, &lingering);
    weigh(&family, family_bytes - lingering);
  }
  for (Step* x : {&other, &family}) {
    if (x->good && (!step.good || x->worth > step.worth)) step = std::move(*x);
  }
  return step;
}

/// Drops all that is made of what the last drawing rebuilt beyond its free: if that lingers, it had
/// best do so for all of them. Returns the bytes that this relieves.
double JointSearch::DropFamily(Choices* choices, const std::vector<double>& relief) const {
  double bytes = 0;
  for (const Sketch::Revenant& x : sketch_.revenants()) {
    for (const std::size_t g : made_of_[At(x.variable)]) {
      if (choices->gaps[g] != Choice::kKeep || relief[g] <= 0) continue;
      choices->gaps[g] = Choice::kDrop;
      bytes += relief[g];
    }
  }
  return bytes;
}

void JointSearch::Reduce(Scored* state, bool area, const IsOver& is_over) {
  const std::vector<double> relief = EstimateRelief(area);
  std::priority_queue<Entry> queue;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (relief[g] <= 0) continue;
    if (state->choices.gaps[g] != Choice::kKeep) continue;
    const double drop = relief[g] / (own_ns_[g] + 1);
    if (own_ns_[g] < kNever) queue.push({std::min(drop, learned_[g]), g, Choice::kDrop});
    queue.push({relief[g] / (CopyNs(g) + 1), g, Choice::kSwap});
  }
  Weigh(state->choices, &state->worth);
  TakeBest(&queue, relief, area, std::max<std::size_t>(1, work_ / kMuch), state, is_over);
}

void JointSearch::SwapForReplays(Scored* state, const IsOver& is_over) {
  if (!Weigh(state->choices, &state->worth)) return;
  while (state->worth.excess > 0 && !is_over()) {
    Scored next = *state;
    sketch_.ListNeeds(&needs_);  // Of the state, which was weighed last.
    bool any = false;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (next.choices.gaps[g] != Choice::kDrop || needs_[At(gaps_[g].before)] <= target_) continue;
      next.choices.gaps[g] = Choice::kSwap;
      any = true;
    }
    if (!any || !Weigh(next.choices, &next.worth)) return;
    *state = std::move(next);
  }
  Time(state->choices, &state->worth);
}

/// Takes what is worth most, again and again, until nothing is above the target.
void JointSearch::TakeBest(std::priority_queue<Entry>* entries, const std::vector<double>& relief,
                           bool area, std::size_t most, Scored* state, const IsOver& is_over) {
  std::priority_queue<Entry>& queue = *entries;
  const std::size_t longest = most == 1 ? 1 : most * stride_;
  std::size_t batch = most;
  while (state->worth.excess > 0 && !queue.empty() && !is_over()) {
    // Whether it pays to rebuild can take long to find out; swapping always gives room.
    const bool only_swaps = IsInHurry();
    if (only_swaps) batch = std::max(batch, queue.size() / kLeaps);
    std::vector<Entry> taken;
    while (taken.size() < batch && !queue.empty()) {
      const Entry entry = queue.top();
      queue.pop();
      if (only_swaps && entry.choice == Choice::kDrop) continue;
      const bool twice = std::any_of(taken.begin(), taken.end(),
                                     [&](const Entry& x) { return x.gap == entry.gap; });
      if (state->choices.gaps[entry.gap] == Choice::kKeep && !twice) taken.push_back(entry);
    }
    if (taken.empty()) return;
    Step step = WeighStep(*state, taken, relief, area);
    const double rival = queue.empty() ? 0 : queue.top().worth;
    if (taken.size() == 1) {
      if (step.good && (step.worth >= 0.9 * rival || step.worth >= 0.9 * taken[0].worth)) {
        *state = std::move(step.next);
        batch = std::min(2 * batch, longest);
      } else if (step.good) {
        queue.push({step.worth, taken[0].gap, taken[0].choice});
      }
      if (taken[0].choice == Choice::kDrop) {
        learned_[taken[0].gap] = step.good ? step.worth : taken[0].worth / 10;
      }
    } else if (step.good && (step.worth >= 0.3 * rival || only_swaps)) {
      *state = std::move(step.next);
      batch = std::min(2 * batch, longest);
    } else if (!only_swaps) {
      for (const Entry& entry : taken) queue.push({entry.worth * 0.999, entry.gap, entry.choice});
      batch = std::max<std::size_t>(1, batch / 2);
    }
  }
}

void JointSearch::FillLink(Scored* state, double share, const IsOver& is_over) {
  const std::vector<double> relief = EstimateRelief(false);
  std::vector<std::pair<double, std::size_t>> order;
  std::vector<std::pair<double, double>> densities;
  double all = 0;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (relief[g] <= 0) continue;
    const auto size = static_cast<double>(SizeOf(g));
    densities.emplace_back(own_ns_[g] / size, size);
    all += size;
  }
  // What would be cheap to rebuild is left to be dropped.
  std::sort(densities.begin(), densities.end());
  double cheap = 0;
  double threshold = 0;
  for (const auto& [density, size] : densities) {
    threshold = density;
    if ((cheap += size) > share * all) break;
  }
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    const auto size = static_cast<double>(SizeOf(g));
    if (relief[g] <= 0 || own_ns_[g] / size < threshold) continue;
    const double length = static_cast<double>(gaps_[g].end - gaps_[g].begin);
    order.emplace_back(-length, g);
  }
  std::sort(order.begin(), order.end());
  const Bytes target = std::exchange(target_, kMaxBytes);
  std::size_t failures = 0;
  Time(state->choices, &state->worth, Worth::kNoTime, true);
  std::size_t batch = std::max<std::size_t>(1, order.size() / 16);
  for (std::size_t k = 0; k < order.size() && !is_over();) {
    const std::size_t end = std::min(k + batch, order.size());
    for (std::size_t i = k; i < end; ++i) state->choices.gaps[order[i].second] = Choice::kSwap;
    Worth worth;
    const bool hidden = Time(state->choices, &worth, Worth::kNoTime, true) && useless_.empty() &&
                        worth.time_ns <= state->worth.time_ns;
    if (hidden) {
      k = end;
      continue;
    }
    for (std::size_t i = k; i < end; ++i) state->choices.gaps[order[i].second] = Choice::kKeep;
    if (batch == 1) ++k;
    batch = std::max<std::size_t>(1, batch / 2);
    if (batch == 1 && !IsSmall() && ++failures == kPatience) break;
  }
  target_ = target;
}

void JointSearch::SwapMoments(Scored* state) {
  if (!Time(state->choices, &state->worth) || state->worth.time_ns == Worth::kNoTime) return;
  if (state->worth.time_ns > base_ns_) SwapIfFree(moments_, state);
}

/// Swaps them all if that takes no longer, or else each half of them for which that is so.
void JointSearch::SwapIfFree(std::span<const std::size_t> gaps, Scored* state) {
  Scored next = *state;
  for (const std::size_t g : gaps) next.choices.gaps[g] = Choice::kSwap;
  if (next.choices == state->choices) return;
  if (Time(next.choices, &next.worth) && next.worth.time_ns <= state->worth.time_ns) {
    KeepUseless(&next.choices);
    *state = std::move(next);
    return;
  }
  const std::size_t half = gaps.size() / 2;
  if (half < (IsSmall() ? 1 : std::max<std::size_t>(1, moments_.size() / kMostParts))) return;
  SwapIfFree(gaps.first(half), state);
  SwapIfFree(gaps.subspan(half), state);
}

void JointSearch::Relax(Scored* state, const IsOver& is_over) {
  Time(state->choices, &state->worth);
  const std::vector<Nanoseconds> replay_ns = sketch_.gap_replay_ns();
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state->choices.gaps[g] == Choice::kKeep) continue;
    // The room that a moment leaves is of use, unless nothing can get better.
    if (IsOfMoment(g) && state->worth.time_ns > base_ns_) continue;
    const double cost =
        state->choices.gaps[g] == Choice::kSwap ? CopyNs(g) : static_cast<double>(replay_ns[g]);
    order.emplace_back(-cost / static_cast<double>(SizeOf(g)), g);
  }
  std::sort(order.begin(), order.end());
  // One by one, or, where there are many, as many at once as can return.
  std::size_t batch = IsSmall() ? 1 : std::max<std::size_t>(1, order.size() / 64);
  std::size_t left = IsSmall() ? order.size() : kMostReturns;
  for (std::size_t k = 0; k < order.size() && left > 0 && !is_over(); --left) {
    const std::size_t end = std::min(k + batch, order.size());
    std::vector<Choice> before;
    for (std::size_t i = k; i < end; ++i) {
      before.push_back(std::exchange(state->choices.gaps[order[i].second], Choice::kKeep));
    }
    Worth worth;
    if (Time(state->choices, &worth, state->worth.time_ns) && worth.time_ns < Worth::kNoTime &&
        worth.time_ns <= state->worth.time_ns) {
      state->worth = worth;
      k = end;
      if (!IsSmall()) batch *= 2;
      continue;
    }
    for (std::size_t i = k; i < end; ++i) state->choices.gaps[order[i].second] = before[i - k];
    if (batch == 1) ++k;
    batch = std::max<std::size_t>(1, batch / 2);
  }
}

void JointSearch::Convert(Scored* state, const IsOver& is_over) {
  if (!Time(state->choices, &state->worth)) return;
  const std::vector<Nanoseconds> replay_ns = sketch_.gap_replay_ns();
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state->choices.gaps[g] != Choice::kDrop) continue;
    order.emplace_back(-static_cast<double>(replay_ns[g]) / static_cast<double>(SizeOf(g)), g);
  }
  std::sort(order.begin(), order.end());
  std::size_t batch = std::max<std::size_t>(1, order.size() / 16);
  std::size_t failures = 0;
  for (std::size_t k = 0; k < order.size() && failures < kPatience && !is_over();) {
    Scored next = *state;
    const std::size_t end = std::min(k + batch, order.size());
    for (std::size_t i = k; i < end; ++i) next.choices.gaps[order[i].second] = Choice::kSwap;
    if (Time(next.choices, &next.worth) && next.worth.time_ns < state->worth.time_ns) {
      *state = std::move(next);
      k = end;
      failures = 0;
    } else if (batch > 1) {
      batch /= 2;
    } else {
      ++k;
      ++failures;
    }
  }
}

void JointSearch::Descend(Scored* state, bool area, const IsOver& is_over) {
  const Bytes target = target_;
  learned_.assign(gaps_.size(), kNever);
  Scored best;
  // Whatever there is will do then.
  const auto is_late = [&] {
    return is_over() || (best.worth.time_ns < Worth::kNoTime && IsInHurry());
  };
  int failures = 0;
  for (const double depth : {1.0, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.76, 0.72}) {
    set_target(static_cast<Bytes>(depth * static_cast<double>(target)));
    Reduce(state, area, is_late);
    set_target(target);
    Time(state->choices, &state->worth);
    const bool closest = stuck_.choices.gaps.empty() || state->worth.excess < stuck_.worth.excess;
    if (depth == 1.0 && state->worth.excess > 0 && closest) stuck_ = *state;
    if (state->worth.time_ns < best.worth.time_ns) {
      best = *state;
      failures = 0;
    } else if (++failures == 3) {
      break;
    }
    if (is_late()) break;
  }
  if (best.worth.time_ns < Worth::kNoTime) *state = std::move(best);
}

void JointSearch::SwapPersistent(Scored* state, Bytes bytes) const {
  std::vector<std::pair<plan::Position, std::size_t>> order;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    const plan::Problem& problem = rewriter_.problem();
    const bool around = gaps_[g].end >= problem.period;
    if (!around || !problem.variables[At(gaps_[g].variable)].persistent()) continue;
    order.emplace_back(gaps_[g].begin - gaps_[g].end, g);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [minus_length, g] : order) {
    if (bytes <= 0) return;
    state->choices.gaps[g] = Choice::kSwap;
    bytes -= SizeOf(g);
  }
}

void JointSearch::SwapAll(Scored* state) const {
  const std::vector<double> relief = EstimateRelief(false);
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (relief[g] > 0) state->choices.gaps[g] = Choice::kSwap;
  }
}

/// Turns swaps into replays while that makes the iteration shorter, the longest copies first.
void JointSearch::ConvertBack(Scored* state, const IsOver& is_over) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state->choices.gaps[g] != Choice::kSwap || own_ns_[g] == kNever) continue;
    order.emplace_back(own_ns_[g] / static_cast<double>(SizeOf(g)), g);
  }
  std::sort(order.begin(), order.end());
  std::size_t batch = std::max<std::size_t>(1, order.size() / 16);
  for (std::size_t k = 0; k < order.size() && !is_over();) {
    Scored next = *state;
    const std::size_t end = std::min(k + batch, order.size());
    for (std::size_t i = k; i < end; ++i) next.choices.gaps[order[i].second] = Choice::kDrop;
    if (Time(next.choices, &next.worth) && next.worth.time_ns < state->worth.time_ns) {
      *state = std::move(next);
      k = end;
    } else if (batch > 1) {
      batch /= 2;
    } else {
      ++k;
    }
  }
}

}  // namespace plimsoll::planners

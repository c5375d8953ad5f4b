// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

#include "plimsoll/plan/rehearsal.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/joint_search_internal.h"

namespace plimsoll::planners {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

constexpr double kNever = std::numeric_limits<double>::infinity();
/// From this many gaps times ops on, gaps are looked at in batches.
constexpr std::size_t kMuch = 16'000'000;
constexpr std::size_t kPatience = 24;
constexpr int kMostRehearsals = 4;
constexpr std::uint64_t kRecreateOneIn = 50;

}  // namespace

JointSearch::JointSearch(const plan::Rewriter& rewriter, const plan::Machine& machine,
                         Bytes alignment, std::uint64_t seed)
    : rewriter_(rewriter),
      machine_(machine),
      gaps_(rewriter.gaps()),
      work_(rewriter.gaps().size() * rewriter.problem().ops.size()),
      sketch_(rewriter, alignment),
      random_(seed) {
  const plan::RewriteModel& model = rewriter.model();
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    double sum = rewriter.CanDrop(g) ? 0 : kNever;
    for (const plan::OpIndex op : model.writers[At(gaps_[g].variable)]) {
      if (op <= gaps_[g].after) sum += static_cast<double>(model.problem.ops[At(op)].duration_ns);
    }
    own_ns_.push_back(sum);
  }
  learned_.assign(gaps_.size(), kNever);
  made_of_.resize(model.problem.variables.size());
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (own_ns_[g] == kNever) continue;
    for (const plan::OpIndex op : model.writers[At(gaps_[g].variable)]) {
      if (op > gaps_[g].after) break;
      for (const plan::RewriteModel::Use& use : model.uses[At(op)]) {
        const bool other = use.reads && use.variable != gaps_[g].variable;
        if (other && model.IsInside(use.variable)) made_of_[At(use.variable)].push_back(g);
      }
    }
  }
}

Bytes JointSearch::SizeOf(std::size_t gap) const {
  return rewriter_.problem().variables[At(gaps_[gap].variable)].size_bytes;
}

double JointSearch::CopyNs(std::size_t gap) const {
  const Bytes size = SizeOf(gap);
  return static_cast<double>(machine_.out_ns(size) + machine_.in_ns(size));
}

bool JointSearch::Weigh(const Choices& choices, Worth* worth) {
  ++evaluations_;
  if (!sketch_.Draw(choices)) return false;
  worth->excess = sketch_.highest_bytes() <= target_ ? 0 : sketch_.ExcessOver(target_);
  worth->replay_ns = sketch_.replay_ns();
  worth->time_ns = Worth::kNoTime;
  return true;
}

bool JointSearch::Time(const Choices& choices, Worth* worth, Nanoseconds below_ns, bool roughly) {
  if (!Weigh(choices, worth)) return false;
  if (worth->excess > 0) return true;
  if (rewriter_.problem().iteration_ns() + worth->replay_ns > below_ns) return true;
  if (roughly) {
    worth->time_ns = estimator_.Run(sketch_.script(), machine_, target_);
    useless_.clear();
    for (const std::size_t e : estimator_.useless()) useless_.push_back(sketch_.exit_gaps()[e]);
    return true;
  }
  worth->time_ns = Rehearse();
  return true;
}

void JointSearch::KeepUseless(Choices* choices) const {
  for (const std::size_t g : useless_) choices->gaps[g] = Choice::kKeep;
}

/// Rehearses what is drawn. What is needed again before it is gone stays; if there is no room for
/// it, there is no time.
Nanoseconds JointSearch::Rehearse() {
  script_ = sketch_.script();
  exit_gaps_ = sketch_.exit_gaps();
  useless_.clear();
  for (int k = 0; k < kMostRehearsals; ++k) {
    const Nanoseconds time_ns =
        plan::Perform(script_, machine_, target_, plan::kPrefetchJustInTime, &stays_);
    std::size_t kept = 0;
    for (std::size_t e = 0; e < stays_.size(); ++e) {
      const plan::Stay& stay = stays_[e];
      const bool useless = stay.cancelled || (stay.timed && stay.released >= stay.acquired);
      if (useless && !Stay(script_.exits[e])) return Worth::kNoTime;
      if (useless) {
        useless_.push_back(exit_gaps_[e]);
      } else {
        exit_gaps_[kept] = exit_gaps_[e];
        script_.exits[kept++] = script_.exits[e];
      }
    }
    if (kept == script_.exits.size()) return time_ns;
    script_.exits.resize(kept);
    SaveAgain();
  }
  return Worth::kNoTime;
}

/// What a useless exit would have saved, others must.
void JointSearch::SaveAgain() {
  for (std::size_t e = 0; e < script_.exits.size(); ++e) {
    const plan::VariableIndex v = gaps_[exit_gaps_[e]].variable;
    script_.exits[e].saves = script_.exits[e].saves ||
                             std::any_of(useless_.begin(), useless_.end(),
                                         [&](std::size_t g) { return gaps_[g].variable == v; });
  }
}

/// Gives an exit its bytes back. False if there is no room for them.
bool JointSearch::Stay(const plan::Exit& exit) {
  const auto steps = static_cast<plan::Slot>(script_.needs_bytes.size());
  const plan::Slot end = exit.before + (exit.around ? steps : 0);
  for (plan::Slot s = exit.after + 1; s < end; ++s) {
    Bytes& needs = script_.needs_bytes[At(s % steps)];
    needs += exit.held_bytes;
    if (needs > target_) return false;
  }
  return true;
}

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

/// Takes what is worth most, again and again, until nothing is above the target.
void JointSearch::TakeBest(std::priority_queue<Entry>* entries, const std::vector<double>& relief,
                           bool area, std::size_t most, Scored* state, const IsOver& is_over) {
  std::priority_queue<Entry>& queue = *entries;
  std::size_t batch = most;
  while (state->worth.excess > 0 && !queue.empty() && !is_over()) {
    std::vector<Entry> taken;
    while (taken.size() < batch && !queue.empty()) {
      const Entry entry = queue.top();
      queue.pop();
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
        batch = std::min(2 * batch, most);
      } else if (step.good) {
        queue.push({step.worth, taken[0].gap, taken[0].choice});
      }
      if (taken[0].choice == Choice::kDrop) {
        learned_[taken[0].gap] = step.good ? step.worth : taken[0].worth / 10;
      }
    } else if (step.good && step.worth >= 0.3 * rival) {
      *state = std::move(step.next);
      batch = std::min(2 * batch, most);
    } else {
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
    if (batch == 1 && work_ > kMuch && ++failures == kPatience) break;
  }
  target_ = target;
}

void JointSearch::Relax(Scored* state, const IsOver& is_over) {
  Time(state->choices, &state->worth);
  const std::vector<Nanoseconds> replay_ns = sketch_.gap_replay_ns();
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state->choices.gaps[g] == Choice::kKeep) continue;
    const double cost =
        state->choices.gaps[g] == Choice::kSwap ? CopyNs(g) : static_cast<double>(replay_ns[g]);
    order.emplace_back(-cost / static_cast<double>(SizeOf(g)), g);
  }
  std::sort(order.begin(), order.end());
  const std::size_t most = work_ > kMuch ? 400 : order.size();
  for (std::size_t k = 0; k < std::min(most, order.size()) && !is_over(); ++k) {
    Choice& choice = state->choices.gaps[order[k].second];
    const Choice before = choice;
    choice = Choice::kKeep;
    Worth worth;
    if (Time(state->choices, &worth, state->worth.time_ns) && worth.time_ns < Worth::kNoTime &&
        worth.time_ns <= state->worth.time_ns) {
      state->worth = worth;
    } else {
      choice = before;
    }
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
  int failures = 0;
  for (const double depth : {1.0, 0.98, 0.96, 0.94, 0.92, 0.9, 0.87, 0.84, 0.8, 0.76, 0.72}) {
    set_target(static_cast<Bytes>(depth * static_cast<double>(target)));
    Reduce(state, area, is_over);
    set_target(target);
    Time(state->choices, &state->worth);
    if (state->worth.time_ns < best.worth.time_ns) {
      best = *state;
      failures = 0;
    } else if (++failures == 3 || is_over()) {
      break;
    }
  }
  if (best.worth.time_ns < Worth::kNoTime) *state = std::move(best);
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

void JointSearch::Activate(const Choices& choices) {
  active_.clear();
  relief_ = EstimateRelief(false);
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
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

void JointSearch::Change(Choices* choices) {
  std::vector<Choice>& gaps = choices->gaps;
  const std::uint64_t kind = random_() % 32;
  if (kind >= 28 && !ghosts_.empty() && random_() % 2 == 0) {
    // Something goes, and what its replays need lingers.
    const std::size_t g = AnyOf(active_);
    if (gaps[g] == Choice::kDrop || own_ns_[g] == kNever) return;
    gaps[g] = Choice::kDrop;
    Worth worth;
    double bytes = 0;
    if (!Weigh(*choices, &worth)) return;
    if (kind >= 30) {
      DropFamily(choices, relief_);
      if (!Weigh(*choices, &worth)) return;
    }
    LingerRevenants(choices, &bytes);
    return;
  }
  if (kind < 2 && !ghosts_.empty()) {
    if (choices->lingers.empty())
      choices->lingers.assign(rewriter_.problem().variables.size(), false);
    const auto v = At(ghosts_[static_cast<std::size_t>(random_() % ghosts_.size())]);
    choices->lingers[v] = !choices->lingers[v];
    if (kind == 0) return;
  }
  std::size_t g = AnyOf(active_);
  for (int k = 0; k < 6 && gaps[g] == Choice::kKeep; ++k) g = AnyOf(active_);
  if (gaps[g] == Choice::kKeep) {
    gaps[g] = AnyAway(g);
    return;
  }
  if (kind < 12) {
    const bool drop = gaps[g] == Choice::kSwap && own_ns_[g] < kNever;
    gaps[g] = drop ? Choice::kDrop : Choice::kSwap;
    if (kind < 6) return;
    // Exchange: something else takes its place on the link.
    std::size_t other = kind < 9 ? AnyNear(g) : AnyOf(active_);
    for (int k = 0; k < 6 && (other == g || gaps[other] == Choice::kKeep); ++k)
      other = AnyOf(active_);
    if (other == g || gaps[other] == Choice::kKeep) return;
    if (drop) {
      gaps[other] = Choice::kSwap;
    } else if (own_ns_[other] < kNever) {
      gaps[other] = Choice::kDrop;
    }
    return;
  }
  gaps[g] = Choice::kKeep;
  if (kind < 16) return;
  const std::size_t count = kind < 28 ? 1 : 2;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t other = AnyNear(g);
    if (other == g) continue;
    if (gaps[other] == Choice::kKeep) {
      gaps[other] = AnyAway(other);
    } else if (kind % 2 == 0) {
      gaps[other] = Choice::kKeep;
    }
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

void JointSearch::Anneal(Scored* state, Scored* best, std::int64_t evaluations, double heat_ns,
                         const IsOver& is_over) {
  if (active_.empty()) return;
  const std::int64_t end = evaluations_ + evaluations;
  Scored next = *state;
  while (evaluations_ < end && !is_over()) {
    next.choices = state->choices;
    if (random_() % kRecreateOneIn == 0) {
      Recreate(&next, is_over);
      if (next.worth.excess > 0) continue;
    } else {
      Change(&next.choices);
    }
    const double chance = static_cast<double>(random_() >> 11) * 0x1p-53;
    const double slack = -heat_ns * std::log(std::max(chance, 1e-9));
    const auto worst = state->worth.time_ns + static_cast<Nanoseconds>(slack);
    if (!Time(next.choices, &next.worth, worst, true) || next.worth.time_ns > worst) continue;
    std::swap(*state, next);
    KeepUseless(&state->choices);
    ghosts_.clear();
    for (const Sketch::Revenant& x : sketch_.revenants()) ghosts_.push_back(x.variable);
    if (!state->choices.lingers.empty()) {
      for (std::size_t v = 0; v < state->choices.lingers.size(); ++v) {
        if (state->choices.lingers[v]) ghosts_.push_back(static_cast<plan::VariableIndex>(v));
      }
    }
    if (state->worth.time_ns < best->worth.time_ns) {
      // Estimates are no more than that.
      Worth exact;
      if (!Time(state->choices, &exact)) continue;
      if (exact.time_ns < Worth::kNoTime) state->worth = exact;
      if (exact.time_ns < best->worth.time_ns) {
        best->choices = state->choices;
        KeepUseless(&best->choices);
        best->worth = exact;
      }
    }
  }
}

}  // namespace plimsoll::planners

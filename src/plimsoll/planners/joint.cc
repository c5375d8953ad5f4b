// SPDX-License-Identifier: Apache-2.0
//
// `joint`: keep, swap or recompute, gap by gap.
//
//   1. Drop: gaps are dropped one by one, whichever takes most off the load above the target for
//      the time of its replays, until the load is within the target. A lazy greedy: what a gap is
//      worth is looked at again only when it comes to the top. Where replays cannot help (weights,
//      gaps of ops that must not run again), gaps are swapped.
//   2. Relax: what has become needless is kept again, the most expensive first.
//   3. Convert: replays that cost most per byte become swaps, as many as the link carries on the
//      side; a rehearsal of the iteration says how many that are.
//   4. Search: random changes of up to three gaps, with simulated annealing on the rehearsed
//      iteration, until the budget ends.
//
// All of it for ever lower targets under the limit until a plan can be placed, since fragmentation
// takes an unknown part of it. In the end, what the planners that only swap would do is looked at,
// and taken if it is better.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// With more gaps than this, what takes a look at every one is cut short.
constexpr std::size_t kMany = 4000;
/// How many swaps in a row may turn out to be useless.
constexpr std::size_t kPatience = 12;
/// How many choices are looked at between two plans.
constexpr std::int64_t kChunk = 400;
/// How much of the iteration a random change may cost, at first.
constexpr double kHeat = 0.0005;

/// The same choices, to be changed and evaluated anew.
JointState Fork(const JointState& state) {
  JointState fork;
  fork.choices = state.choices;
  fork.horizon = state.horizon;
  return fork;
}

/// Where the search for a target begins.
struct Start {
  double depth;           ///< Of the target, what the load is brought under at first.
  plan::OpIndex horizon;  ///< plan::Rewriter::Rewrite()
  bool last_resort;       ///< Only if nothing else will do.
};
constexpr std::array<Start, 6> kStarts = {{{1.0, plan::Rewriter::kFar, false},
                                           {0.85, plan::Rewriter::kFar, false},
                                           {1.0, 24, false},
                                           {0.7, plan::Rewriter::kFar, true},
                                           {1.0, 6, true},
                                           {1.0, 0, true}}};

class Joint {
 public:
  explicit Joint(const Question& question)
      : question_(question),
        evaluator_(question),
        gaps_(evaluator_.gaps()),
        deadline_(question.options.time_budget_seconds),
        random_(question.options.seed) {}

  Attempt Run() {
    std::optional<Attempt> best;
    JointState state;
    for (const double share : {1.0, 0.97, 0.94, 0.91, 0.87, 0.82, 0.76, 0.7}) {
      evaluator_.set_target(
          static_cast<Bytes>(share * static_cast<double>(question_.options.limit_bytes)));
      state = Decide();
      if (state.time_ns == kNever) break;
      Attempt attempt = evaluator_.Make(state);
      best = std::move(attempt);
      if (best->plan() != nullptr) break;
    }
    if (!best || best->plan() == nullptr) best = MakeSmallest(question_);
    if (best->plan() == nullptr) return std::move(*best);
    if (state.time_ns < kNever) Improve(&state, &*best);
    TakeBetterRival(&*best);
    return std::move(*best);
  }

 private:
  bool IsOver() const {
    const auto& stop = question_.options.stop;
    return (question_.options.evaluations > 0
                ? evaluator_.evaluations() >= question_.options.evaluations
                : deadline_.passed()) ||
           (stop && stop());
  }

  /// Returns the best state that it finds for the target; one that takes for ever if it finds none.
  JointState Decide() {
    const Bytes target = evaluator_.target();
    JointState best;
    for (const Start& start : kStarts) {
      if (best.time_ns < kNever && (IsOver() || gaps_.size() > kMany || start.last_resort)) break;
      // To go further down than need be and to come back is often better than to stop in time.
      evaluator_.set_target(static_cast<Bytes>(start.depth * static_cast<double>(target)));
      JointState state;
      state.choices.assign(gaps_.size(), Choice::kKeep);
      state.horizon = start.horizon;
      evaluator_.Evaluate(&state);
      Reduce(&state);
      evaluator_.set_target(target);
      if (!evaluator_.Evaluate(&state) || state.excess > 0) continue;
      Relax(&state);
      Convert(&state);
      if (state.time_ns < best.time_ns) best = std::move(state);
    }
    evaluator_.set_target(target);
    return best;
  }

  struct Entry {
    double worth;
    std::size_t gap;
    Choice choice;
    bool operator<(const Entry& other) const {
      return std::pair(worth, other.gap) < std::pair(other.worth, gap);
    }
  };

  /// Bytes times ops that a gap takes off the load above the target, at best.
  std::vector<double> EstimateRelief() const {
    const plan::Problem& problem = question_.problem;
    const std::vector<Bytes> load = plan::LeastLoad(problem, {}, question_.options.alignment);
    std::vector<double> over(problem.ops.size() + 1, 0);
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      const bool high = load[At(problem.ops[i].position)] > evaluator_.target();
      over[i + 1] = over[i] + (high ? 1 : 0);
    }
    std::vector<double> relief(gaps_.size());
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const double lap = gaps_[g].end >= problem.period ? over.back() : 0;
      const double ops = over[At(gaps_[g].before)] + lap - over[At(gaps_[g].after) + 1];
      relief[g] = static_cast<double>(evaluator_.SizeOf(g)) * std::max(ops, 0.0);
    }
    return relief;
  }

  /// Time of the ops that wrote a gap's variable.
  double OwnReplayNs(std::size_t g) const {
    double sum = 0;
    const plan::Problem& problem = question_.problem;
    for (plan::OpIndex i = 0; i <= gaps_[g].after; ++i) {
      for (const plan::Operand& x : problem.writes(problem.ops[At(i)])) {
        if (x.variable == gaps_[g].variable) {
          sum += static_cast<double>(problem.ops[At(i)].duration_ns);
          break;
        }
      }
    }
    return sum;
  }

  void Reduce(JointState* state) {
    if (own_ns_.empty()) {
      for (std::size_t g = 0; g < gaps_.size(); ++g) {
        own_ns_.push_back(evaluator_.CanDrop(g) ? OwnReplayNs(g) : kNever);
      }
    }
    const std::vector<double> relief = EstimateRelief();
    std::priority_queue<Entry> queue;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (relief[g] <= 0) continue;
      if (own_ns_[g] < kNever) queue.push({relief[g] / (own_ns_[g] + 1), g, Choice::kDrop});
      // A swap at its full price, as if nothing hid it.
      queue.push({relief[g] / (evaluator_.CopyNs(g) + 1), g, Choice::kSwap});
    }
    std::size_t batch = std::max<std::size_t>(1, gaps_.size() / 400);
    while (state->excess > 0 && !queue.empty()) {
      JointState next = Fork(*state);
      std::vector<Entry> taken;
      while (taken.size() < batch && !queue.empty()) {
        const Entry entry = queue.top();
        queue.pop();
        if (state->choices[entry.gap] != Choice::kKeep) continue;
        next.choices[entry.gap] = entry.choice;
        taken.push_back(entry);
      }
      if (taken.empty()) return;
      const bool possible = evaluator_.Evaluate(&next);
      const double less = possible ? state->excess - next.excess : 0;
      const double more = std::max(next.cost_ns - state->cost_ns, 0.0) + 1;
      const double worth = less / more;
      const double rival = queue.empty() ? 0 : queue.top().worth;
      if (taken.size() == 1) {
        if (possible && less > 0 && (worth >= 0.9 * rival || worth >= 0.9 * taken[0].worth)) {
          *state = std::move(next);
        } else if (possible && less > 0) {
          queue.push({worth, taken[0].gap, taken[0].choice});
        }
      } else if (possible && less > 0 && worth >= 0.3 * rival) {
        *state = std::move(next);
      } else {
        for (const Entry& entry : taken) queue.push({entry.worth * 0.999, entry.gap, entry.choice});
        batch = std::max<std::size_t>(1, batch / 2);
      }
    }
  }

  /// Keeps again what need not go.
  void Relax(JointState* state) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (state->choices[g] == Choice::kKeep) continue;
      const double cost = state->choices[g] == Choice::kSwap
                              ? evaluator_.CopyNs(g)
                              : static_cast<double>(state->rewritten->gap_replay_ns[g]);
      order.emplace_back(-cost / static_cast<double>(evaluator_.SizeOf(g)), g);
    }
    std::sort(order.begin(), order.end());
    const std::size_t most = gaps_.size() > kMany ? 100 : order.size();
    for (std::size_t k = 0; k < std::min(most, order.size()) && !IsOver(); ++k) {
      JointState next = Fork(*state);
      next.choices[order[k].second] = Choice::kKeep;
      if (evaluator_.Evaluate(&next) && next.excess <= 0 && next.cost_ns <= state->cost_ns) {
        *state = std::move(next);
      }
    }
  }

  /// Turns the most expensive replays into swaps while that makes the iteration shorter.
  void Convert(JointState* state) {
    evaluator_.Rehearse(state);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (state->choices[g] != Choice::kDrop) continue;
      order.emplace_back(-static_cast<double>(state->rewritten->gap_replay_ns[g]) /
                             static_cast<double>(evaluator_.SizeOf(g)),
                         g);
    }
    std::sort(order.begin(), order.end());
    // Many at once as long as that goes well, then fewer.
    std::size_t batch = std::max<std::size_t>(1, order.size() / 16);
    std::size_t failures = 0;
    for (std::size_t k = 0; k < order.size() && failures < kPatience;) {
      JointState next = Fork(*state);
      const std::size_t end = std::min(k + batch, order.size());
      for (std::size_t i = k; i < end; ++i) next.choices[order[i].second] = Choice::kSwap;
      const bool possible = evaluator_.Evaluate(&next);
      if (possible) evaluator_.Rehearse(&next);
      if (possible && next.time_ns < state->time_ns) {
        *state = std::move(next);
        k = end;
        failures = 0;
      } else if (batch > 1) {
        batch /= 2;
      } else {
        ++k;
        ++failures;
        if (gaps_.size() > kMany) return;
      }
    }
    RelaxByTime(state);
  }

  /// Keeps again what need not go, by the rehearsed time.
  void RelaxByTime(JointState* state) {
    for (std::size_t g = 0; g < gaps_.size() && gaps_.size() <= kMany && !IsOver(); ++g) {
      if (state->choices[g] == Choice::kKeep) continue;
      JointState next = Fork(*state);
      next.choices[g] = Choice::kKeep;
      if (!evaluator_.Evaluate(&next) || next.excess > 0) continue;
      evaluator_.Rehearse(&next);
      if (next.time_ns <= state->time_ns) *state = std::move(next);
    }
  }

  std::size_t AnyOf(const std::vector<std::size_t>& list) {
    return list[static_cast<std::size_t>(random_() % list.size())];
  }
  Choice AnyAway(std::size_t g) {
    return own_ns_[g] < kNever && random_() % 2 == 0 ? Choice::kDrop : Choice::kSwap;
  }

  /// An active gap, more often than not one close to another in the program.
  std::size_t AnyNear(std::size_t g) {
    if (random_() % 3 == 0) return AnyOf(active_);
    const auto place = std::lower_bound(active_.begin(), active_.end(), g) - active_.begin();
    const auto count = static_cast<std::int64_t>(active_.size());
    const std::int64_t step = static_cast<std::int64_t>(random_() % 17) - 8;
    return active_[At(std::clamp<std::int64_t>(place + step, 0, count - 1))];
  }

  /// Changes a few gaps at random: one stays and another goes, or a drop becomes a swap.
  void Change(std::vector<Choice>* choices) {
    std::vector<std::size_t> away;
    for (const std::size_t g : active_) {
      if ((*choices)[g] != Choice::kKeep) away.push_back(g);
    }
    const std::uint64_t kind = random_() % 16;
    if (away.empty() || kind == 0) {
      const std::size_t g = AnyOf(active_);
      (*choices)[g] = AnyAway(g);
      return;
    }
    const std::size_t g = AnyOf(away);
    if (kind < 5) {
      const bool drop = (*choices)[g] == Choice::kSwap && own_ns_[g] < kNever;
      (*choices)[g] = drop ? Choice::kDrop : Choice::kSwap;
      if (kind < 3) return;
    } else {
      (*choices)[g] = Choice::kKeep;
      if (kind < 7) return;
    }
    const std::size_t other = AnyNear(g);
    if ((*choices)[other] == Choice::kKeep) {
      (*choices)[other] = AnyAway(other);
    } else if (kind % 2 == 0) {
      (*choices)[other] = Choice::kKeep;
    }
    if (kind == 15) {
      const std::size_t third = AnyNear(g);
      (*choices)[third] = (*choices)[third] == Choice::kKeep ? AnyAway(third) : Choice::kKeep;
    }
  }

  /// How much of the budget is spent.
  double Progress() const {
    if (question_.options.evaluations > 0) {
      return static_cast<double>(evaluator_.evaluations()) /
             static_cast<double>(question_.options.evaluations);
    }
    return 1 - deadline_.remaining_seconds() / question_.options.time_budget_seconds;
  }

  /// Looks at so many random changes. What makes the iteration a little longer is sometimes taken,
  /// ever less so as the budget is spent (simulated annealing). Returns the best that it met.
  JointState Search(JointState* state, std::int64_t evaluations) {
    JointState best = *state;
    const std::int64_t end = evaluator_.evaluations() + evaluations;
    const double heat = kHeat * static_cast<double>(question_.problem.iteration_ns()) *
                        std::pow(1 - std::clamp(Progress(), 0.0, 1.0), 2);
    while (evaluator_.evaluations() < end && !IsOver()) {
      JointState next = Fork(*state);
      Change(&next.choices);
      const double chance = static_cast<double>(random_() >> 11) * 0x1p-53;
      const double worst = state->time_ns - heat * std::log(std::max(chance, 1e-9));
      if (!evaluator_.Evaluate(&next) || next.excess > 0) continue;
      // Replays are never hidden.
      if (static_cast<double>(next.rewritten->problem.iteration_ns()) > worst) continue;
      evaluator_.Rehearse(&next);
      if (next.time_ns > worst) continue;
      *state = std::move(next);
      if (state->time_ns < best.time_ns) best = *state;
    }
    return best;
  }

  /// Holds the load to a little less, as what was found cannot be placed. False if it cannot be
  /// held.
  bool Tighten(JointState* state) {
    evaluator_.set_target(static_cast<Bytes>(0.985 * static_cast<double>(evaluator_.target())));
    JointState next = Fork(*state);
    if (!evaluator_.Evaluate(&next)) return false;
    Reduce(&next);
    if (next.excess > 0) return false;
    evaluator_.Rehearse(&next);
    *state = std::move(next);
    return state->time_ns < kNever;
  }

  /// Searches on from a state whose plan fits, and makes plans of what promises to be better.
  void Improve(JointState* state, Attempt* attempt) {
    active_.clear();
    const std::vector<double> relief = EstimateRelief();
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (relief[g] > 0 || state->choices[g] != Choice::kKeep) active_.push_back(g);
    }
    if (active_.empty()) return;
    auto made_ns = static_cast<double>(sim::Simulate(*attempt->plan()).iteration_ns);
    Report(made_ns);
    // Nothing is faster than the recorded ops alone.
    const auto least_ns = static_cast<double>(question_.problem.iteration_ns());
    while (made_ns > least_ns && !IsOver()) {
      const JointState found = Search(state, kChunk);
      if (found.time_ns >= 0.9995 * made_ns) continue;
      Attempt other = evaluator_.Make(found);
      if (other.plan() == nullptr) {
        if (!Tighten(state)) return;
        continue;
      }
      const auto ns = static_cast<double>(sim::Simulate(*other.plan()).iteration_ns);
      if (ns >= made_ns) continue;
      made_ns = ns;
      *attempt = std::move(other);
      Report(made_ns);
    }
  }

  /// Looks at what the planners that only swap would do, and takes it if it is better.
  void TakeBetterRival(Attempt* best) const {
    Nanoseconds made_ns = sim::Simulate(*best->plan()).iteration_ns;
    const auto take = [&](Attempt attempt) {
      if (attempt.plan() == nullptr) return;
      const Nanoseconds ns = sim::Simulate(*attempt.plan()).iteration_ns;
      if (ns >= made_ns) return;
      made_ns = ns;
      *best = std::move(attempt);
    };
    bool close = false;
    for (const Planner& rival : Planners()) {
      if (rival.decide == nullptr || made_ns <= question_.problem.iteration_ns()) continue;
      const Decider decide = rival.decide(question_);
      const auto predicted =
          plan::PredictIteration(question_.problem, decide(question_.options.limit_bytes),
                                 question_.machine, ToScheduleOptions(question_.options));
      if (!predicted) continue;
      close = close || *predicted < made_ns + made_ns / 4;
      if (*predicted < made_ns) take(MakeFit(question_, decide, made_ns));
    }
    if (close && made_ns > question_.problem.iteration_ns()) take(PlanBayes(question_));
  }

  void Report(double ns) const {
    if (question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(ns));
    }
  }

  const Question& question_;
  JointEvaluator evaluator_;
  const std::vector<plan::Gap>& gaps_;
  const Deadline deadline_;
  std::mt19937_64 random_;
  std::vector<double> own_ns_;       // Per gap: of its own replays; kNever if it cannot be dropped.
  std::vector<std::size_t> active_;  // Gaps that could matter.
};

}  // namespace

Attempt PlanJoint(const Question& question) { return Joint(question).Run(); }

}  // namespace plimsoll::planners

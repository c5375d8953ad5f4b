// SPDX-License-Identifier: Apache-2.0
//
// `joint`: keep, swap or recompute, gap by gap.
//
//   1. Drop: gaps are dropped one by one, whichever takes most off the load above the target for
//   the
//      time of its replays, until the load is within the target. A lazy greedy: what a gap is worth
//      is looked at again only when it comes to the top. Where replays cannot help (weights, gaps
//      of ops that must not run again), gaps are swapped.
//   2. Relax: what has become needless is kept again, the most expensive first.
//   3. Convert: replays that cost most per byte become swaps, as many as the link carries on the
//      side; a rehearsal of the iteration says how many that are.
//   4. Search: random changes of one or two gaps, kept if the rehearsed iteration gets shorter,
//      until the budget ends.
//
// All of it for several targets under the limit, since fragmentation takes an unknown part of it;
// the plan that is predicted to be fastest is placed first.
#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/plan/rewrite.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {
namespace {

using plan::Gap;
using plan::Rewritten;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

constexpr double kNever = std::numeric_limits<double>::infinity();

enum class Choice : std::uint8_t { kKeep, kDrop, kSwap };

/// What is chosen for every gap, and what comes of it.
struct State {
  std::vector<Choice> choices;
  std::optional<Rewritten> rewritten;
  plan::Decision swaps;     ///< Gaps of the rewritten problem.
  double excess = 0;        ///< Bytes above the target, summed over ops.
  double cost_ns = 0;       ///< Of replays, and of copies as if nothing hid them.
  double time_ns = kNever;  ///< Of the rehearsed iteration, once it has been rehearsed.
};

class Joint {
 public:
  explicit Joint(const Question& question)
      : question_(question),
        rewriter_(question.problem, question.options.least_bytes),
        gaps_(rewriter_.gaps()),
        deadline_(question.options.time_budget_seconds),
        random_(question.options.seed) {}

  Attempt Run() {
    std::vector<std::pair<State, Bytes>> found;
    for (const double share : {1.0, 0.97, 0.94, 0.91, 0.87, 0.82}) {
      target_ = static_cast<Bytes>(share * static_cast<double>(question_.options.limit_bytes));
      State state = Decide();
      if (state.excess > 0) break;
      found.emplace_back(std::move(state), target_);
      if (IsOver()) break;
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first.time_ns < b.first.time_ns; });
    std::optional<Attempt> best;
    for (auto& [state, target] : found) {
      Attempt attempt = Make(state, target);
      const bool fits = attempt.plan() != nullptr;
      if (!best || fits) best = std::move(attempt);
      if (fits) {
        target_ = target;
        Improve(&state, &*best);
        break;
      }
    }
    if (best) return std::move(*best);
    return MakeSmallest(question_);
  }

 private:
  bool IsOver() const {
    const auto& stop = question_.options.stop;
    return (question_.options.evaluations > 0 ? evaluations_ >= question_.options.evaluations
                                              : deadline_.passed()) ||
           (stop && stop());
  }

  Bytes SizeOf(std::size_t gap) const {
    return question_.problem.variables[At(gaps_[gap].variable)].size_bytes;
  }
  double CopyNs(std::size_t gap) const {
    const Bytes size = SizeOf(gap);
    return static_cast<double>(question_.machine.out_ns(size) + question_.machine.in_ns(size));
  }

  /// Rewrites by the choices, and adds up cost and excess. False if it cannot be done.
  bool Evaluate(State* state) {
    ++evaluations_;
    std::vector<bool> dropped(gaps_.size());
    for (std::size_t g = 0; g < gaps_.size(); ++g) dropped[g] = state->choices[g] == Choice::kDrop;
    const auto most = static_cast<std::int64_t>(4 * question_.problem.ops.size());
    state->rewritten = rewriter_.Rewrite(dropped, most);
    if (!state->rewritten) return false;
    MapSwaps(state);
    const plan::Problem& problem = state->rewritten->problem;
    const std::vector<Bytes> load =
        plan::LeastLoad(problem, state->swaps, question_.options.alignment);
    state->excess = 0;
    plan::Position position = 0;
    for (const plan::Op& op : problem.ops) {
      Bytes highest = 0;
      for (; position <= op.position; ++position) highest = std::max(highest, load[At(position)]);
      state->excess += static_cast<double>(std::max<Bytes>(highest - target_, 0));
    }
    for (; position < problem.period; ++position) {
      state->excess += static_cast<double>(std::max<Bytes>(load[At(position)] - target_, 0));
    }
    return true;
  }

  /// Finds the swapped gaps again in the rewritten problem. Replays may have come into a gap; then
  /// its longest part counts.
  void MapSwaps(State* state) {
    state->swaps.swapped.clear();
    state->cost_ns = static_cast<double>(state->rewritten->replay_ns);
    const Rewritten& made = *state->rewritten;
    std::vector<std::size_t> wanted;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (state->choices[g] != Choice::kSwap) continue;
      wanted.push_back(g);
      state->cost_ns += CopyNs(g);
    }
    if (wanted.empty()) return;
    std::vector<plan::OpIndex> recorded(question_.problem.ops.size());
    for (std::size_t i = 0; i < made.op_source.size(); ++i) {
      if (made.is_replay[i] == 0) recorded[At(made.op_source[i])] = static_cast<plan::OpIndex>(i);
    }
    const std::vector<Gap> gaps = plan::ListGaps(made.problem, question_.options.least_bytes);
    std::vector<std::vector<const Gap*>> of_source(question_.problem.variables.size());
    for (const Gap& gap : gaps)
      of_source[At(made.variable_source[At(gap.variable)])].push_back(&gap);
    for (const std::size_t g : wanted) {
      const bool around = gaps_[g].end > question_.problem.period;
      const plan::Position begin = made.problem.ops[At(recorded[At(gaps_[g].after)])].position + 1;
      const plan::Position end = made.problem.ops[At(recorded[At(gaps_[g].before)])].position +
                                 (around ? made.problem.period : 0);
      const Gap* longest = nullptr;
      for (const Gap* gap : of_source[At(gaps_[g].variable)]) {
        if (gap->begin < begin || gap->end > end) continue;
        if (longest == nullptr || gap->end - gap->begin > longest->end - longest->begin) {
          longest = gap;
        }
      }
      if (longest != nullptr) state->swaps.swapped.push_back(*longest);
    }
  }

  /// Rehearses the iteration.
  void Rehearse(State* state) {
    state->time_ns = kNever;
    if (state->excess > 0) return;
    plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
    schedule.load_limit_bytes = target_;
    const auto predicted = plan::PredictIteration(state->rewritten->problem, state->swaps,
                                                  question_.machine, schedule);
    if (predicted) state->time_ns = static_cast<double>(*predicted);
  }

  State Decide() {
    State state;
    state.choices.assign(gaps_.size(), Choice::kKeep);
    Evaluate(&state);
    Reduce(&state);
    if (state.excess > 0) return state;
    Relax(&state);
    Convert(&state);
    return state;
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
  std::vector<double> EstimateRelief(const State& state) const {
    const plan::Problem& problem = question_.problem;
    const std::vector<Bytes> load = plan::LeastLoad(problem, {}, question_.options.alignment);
    std::vector<double> over(problem.ops.size() + 1, 0);
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      const bool high = load[At(problem.ops[i].position)] > target_;
      over[i + 1] = over[i] + (high ? 1 : 0);
    }
    std::vector<double> relief(gaps_.size());
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const double lap = gaps_[g].end > problem.period ? over.back() : 0;
      const double ops = over[At(gaps_[g].before)] + lap - over[At(gaps_[g].after) + 1];
      relief[g] = static_cast<double>(SizeOf(g)) * std::max(ops, 0.0);
    }
    (void)state;
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

  void Reduce(State* state) {
    if (own_ns_.empty()) {
      for (std::size_t g = 0; g < gaps_.size(); ++g) {
        own_ns_.push_back(rewriter_.CanDrop(g) ? OwnReplayNs(g) : kNever);
      }
    }
    const std::vector<double> relief = EstimateRelief(*state);
    std::priority_queue<Entry> queue;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (relief[g] <= 0) continue;
      if (own_ns_[g] < kNever) queue.push({relief[g] / (own_ns_[g] + 1), g, Choice::kDrop});
      // A swap at its full price, as if nothing hid it.
      queue.push({relief[g] / (CopyNs(g) + 1), g, Choice::kSwap});
    }
    std::size_t batch = std::max<std::size_t>(1, gaps_.size() / 400);
    while (state->excess > 0 && !queue.empty()) {
      State next = *state;
      std::vector<Entry> taken;
      while (taken.size() < batch && !queue.empty()) {
        const Entry entry = queue.top();
        queue.pop();
        if (state->choices[entry.gap] != Choice::kKeep) continue;
        next.choices[entry.gap] = entry.choice;
        taken.push_back(entry);
      }
      if (taken.empty()) return;
      const bool possible = Evaluate(&next);
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
  void Relax(State* state) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (state->choices[g] == Choice::kKeep) continue;
      const double cost = state->choices[g] == Choice::kSwap
                              ? CopyNs(g)
                              : static_cast<double>(state->rewritten->gap_replay_ns[g]);
      order.emplace_back(-cost / static_cast<double>(SizeOf(g)), g);
    }
    std::sort(order.begin(), order.end());
    const std::size_t most = gaps_.size() > 4000 ? 300 : order.size();
    for (std::size_t k = 0; k < std::min(most, order.size()) && !IsOver(); ++k) {
      State next = *state;
      next.choices[order[k].second] = Choice::kKeep;
      if (Evaluate(&next) && next.excess <= 0 && next.cost_ns <= state->cost_ns) {
        *state = std::move(next);
      }
    }
  }

  /// Turns the most expensive replays into swaps while that makes the iteration shorter.
  void Convert(State* state) {
    Rehearse(state);
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (state->choices[g] != Choice::kDrop) continue;
      order.emplace_back(
          -static_cast<double>(state->rewritten->gap_replay_ns[g]) / static_cast<double>(SizeOf(g)),
          g);
    }
    std::sort(order.begin(), order.end());
    const State start = *state;
    // A few lengths first, then finer around the best.
    std::size_t best = 0;
    std::size_t step = std::max<std::size_t>(1, order.size() / 8);
    const auto attempt = [&](std::size_t count) {
      State next = start;
      for (std::size_t k = 0; k < count; ++k) next.choices[order[k].second] = Choice::kSwap;
      if (!Evaluate(&next)) return;
      Rehearse(&next);
      if (next.time_ns >= state->time_ns) return;
      best = count;
      *state = std::move(next);
    };
    for (std::size_t count = step; count <= order.size() && !IsOver(); count += step) {
      attempt(count);
    }
    while (step > 1 && !IsOver()) {
      step /= 2;
      const std::size_t centre = best;
      if (centre >= step) attempt(centre - step);
      attempt(std::min(centre + step, order.size()));
    }
    Relax2(state);
  }

  /// Keeps again what need not go, by the rehearsed time.
  void Relax2(State* state) {
    for (std::size_t g = 0; g < gaps_.size() && gaps_.size() <= 4000 && !IsOver(); ++g) {
      if (state->choices[g] == Choice::kKeep) continue;
      State next = *state;
      next.choices[g] = Choice::kKeep;
      if (!Evaluate(&next) || next.excess > 0) continue;
      Rehearse(&next);
      if (next.time_ns <= state->time_ns) *state = std::move(next);
    }
  }

  /// Changes one or two gaps at random.
  bool Change(State* state) {
    std::vector<Choice>& choices = state->choices;
    const int changes = 1 + static_cast<int>(random_() % 2);
    for (int k = 0; k < changes; ++k) {
      const std::size_t g = active_[random_() % active_.size()];
      const auto choice = static_cast<Choice>(random_() % 3);
      if (choice == Choice::kDrop && own_ns_[g] == kNever) return false;
      choices[g] = choice;
    }
    return true;
  }

  /// Random search from a state whose plan fits; places what promises to be better.
  void Improve(State* state, Attempt* attempt) {
    active_.clear();
    const std::vector<double> relief = EstimateRelief(*state);
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      if (relief[g] > 0 || state->choices[g] != Choice::kKeep) active_.push_back(g);
    }
    if (active_.empty()) return;
    double made_ns = static_cast<double>(sim::Simulate(*attempt->plan()).iteration_ns);
    Report(made_ns);
    int failures = 0;
    while (!IsOver()) {
      State next = *state;
      if (!Change(&next) || next.choices == state->choices) {
        ++evaluations_;
        continue;
      }
      if (!Evaluate(&next) || next.excess > 0) continue;
      Rehearse(&next);
      if (next.time_ns > state->time_ns) continue;
      const bool better = next.time_ns < state->time_ns;
      *state = std::move(next);
      if (!better || state->time_ns >= 0.999 * made_ns || failures > 20) continue;
      Attempt other = Make(*state, target_);
      if (other.plan() == nullptr) {
        ++failures;
        continue;
      }
      const auto ns = static_cast<double>(sim::Simulate(*other.plan()).iteration_ns);
      if (ns >= made_ns) continue;
      made_ns = ns;
      *attempt = std::move(other);
      Report(made_ns);
    }
  }

  void Report(double ns) const {
    if (question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(ns));
    }
  }

  Attempt Make(const State& state, Bytes target) {
    plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
    schedule.load_limit_bytes = target;
    auto made = plan::MakePlan(state.rewritten->problem, state.swaps, question_.machine, schedule);
    if (auto* plan = std::get_if<plan::Plan>(&made)) {
      if (state.rewritten->replay_ns > 0) {
        plan->rewriting = plan::ToRewriting(question_.problem, *state.rewritten);
      }
    }
    return {state.swaps, std::move(made), target};
  }

  const Question& question_;
  const plan::Rewriter rewriter_;
  const std::vector<Gap>& gaps_;
  const Deadline deadline_;
  std::mt19937_64 random_;
  std::int64_t evaluations_ = 0;
  Bytes target_ = 0;                 // What the load is brought under.
  std::vector<double> own_ns_;       // Per gap: of its own replays; kNever if it cannot be dropped.
  std::vector<std::size_t> active_;  // Gaps that could matter.
};

}  // namespace

Attempt PlanJoint(const Question& question) { return Joint(question).Run(); }

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
//
// chainsearch, ours: local search over what leaves and in which order the link carries it, with the
// simulator in the loop. It begins with the schedule of every other planner, so that it is never
// worse than any of them; where they are not optimal it is because they look at one set only
// (greedy), round sizes to slots (dynprog), or keep the transfers in order (all of them). A short
// chain is handed to the exact solver in the end, for a certain number of steps.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "plimsoll/base/clock.h"
#include "plimsoll/chain/exact.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

/// Simulated transfers and ops after which the search ends, whatever the time budget: less than
/// half a second, so that equal seeds give equal schedules on any machine that is not much slower.
/// Short chains need less.
constexpr double kWork = 15e6;
constexpr double kStepsPerStage = 250;
/// Steps of the exact solver, in as much time.
constexpr std::int64_t kExactWork = 4'000'000;
constexpr int kRounds = 4;
/// Of the time budget, so that what cannot be interrupted does not overrun it.
constexpr double kShare = 0.9;

/// The two orders of a decision, kept apart: all transfers out precede all transfers in.
struct Orders {
  std::vector<std::int32_t> out;
  std::vector<std::int32_t> in;
};

class Search {
 public:
  Search(const Question& question, const PlannerOptions& options)
      : question_(question),
        options_(options),
        deadline_(kShare * options.time_budget_seconds),
        simulator_(question.model, question.limit_bytes),
        bound_(FractionalOptimum(question.chain, question.model, question.limit_bytes)),
        random_(options.seed) {}

  std::optional<Schedule> Run() {
    for (const Planner& planner : Planners()) {
      if (planner.plan != PlanChainSearch && !planner.recomputes)
        Start(planner.plan(question_, options_));
    }
    if (best_ <= bound_ || question_.model.stages < 2) return best_schedule_;
    std::sort(starts_.begin(), starts_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    const double cost = 4 * static_cast<double>(question_.model.stages);
    const auto steps = static_cast<int>(std::min(kWork / cost / kRounds, kStepsPerStage * cost));
    for (int round = 0; round < kRounds && !done(); ++round) {
      const auto& [makespan, orders] = starts_[static_cast<std::size_t>(round) % starts_.size()];
      Anneal(round == 0 || round >= static_cast<int>(starts_.size()) ? best_orders_ : orders,
             steps);
    }
    if (best_orders_makespan_ < best_) best_schedule_ = simulator_.Play(ToDecision(best_orders_));
    if (question_.model.stages <= kMostExactStages && !done()) {
      PlannerOptions rest = options_;
      rest.time_budget_seconds = deadline_.remaining_seconds();
      best_schedule_ =
          SolveExactly(question_, rest, std::move(best_schedule_), kExactWork).schedule;
    }
    return best_schedule_;
  }

 private:
  bool done() const {
    return std::min(best_, best_orders_makespan_) <= bound_ || deadline_.passed();
  }

  static Decision ToDecision(const Orders& orders) {
    Decision decision;
    for (const std::int32_t i : orders.out) decision.push_back({i, Direction::kOut});
    for (const std::int32_t i : orders.in) decision.push_back({i, Direction::kIn});
    return decision;
  }

  Nanoseconds Evaluate(const Orders& orders) {
    scratch_.clear();
    for (const std::int32_t i : orders.out) scratch_.push_back({i, Direction::kOut});
    for (const std::int32_t i : orders.in) scratch_.push_back({i, Direction::kIn});
    return simulator_.Makespan(scratch_).value_or(kInfeasible);
  }

  void Start(std::optional<Schedule> schedule) {
    if (!schedule) return;
    Orders orders;
    for (const TimedTransfer& timed : schedule->transfers) {
      (timed.transfer.direction == Direction::kOut ? orders.out : orders.in)
          .push_back(timed.transfer.activation);
    }
    const Nanoseconds makespan = Evaluate(orders);
    if (makespan != kInfeasible) starts_.emplace_back(makespan, orders);
    Offer(makespan, orders);
    if (schedule->iteration_ns() < best_) {
      best_ = schedule->iteration_ns();
      best_schedule_ = std::move(schedule);
    }
  }

  void Offer(Nanoseconds makespan, const Orders& orders) {
    if (makespan >= best_orders_makespan_) return;
    best_orders_makespan_ = makespan;
    best_orders_ = orders;
    if (options_.on_progress) options_.on_progress(std::min(best_, makespan), bound_);
  }

  std::size_t Draw(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  double DrawUnit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  /// Puts x_i where it belongs in both orders, as ordered schedules have it.
  static void Insert(std::int32_t i, Orders* orders) {
    const auto later =
        std::find_if(orders->out.begin(), orders->out.end(), [i](std::int32_t j) { return j > i; });
    orders->out.insert(later, i);
    const auto sooner =
        std::find_if(orders->in.begin(), orders->in.end(), [i](std::int32_t j) { return j < i; });
    orders->in.insert(sooner, i);
  }

  static void Remove(std::int32_t i, Orders* orders) {
    orders->out.erase(std::find(orders->out.begin(), orders->out.end(), i));
    orders->in.erase(std::find(orders->in.begin(), orders->in.end(), i));
  }

  /// Moves one entry to another place of the same order, most often a near one.
  void Shift(std::vector<std::int32_t>* order) {
    if (order->size() < 2) return;
    const std::size_t from = Draw(order->size());
    const std::size_t reach =
        Draw(4) == 0 ? order->size() : std::min<std::size_t>(4, order->size());
    const std::size_t distance = 1 + Draw(reach);
    const bool back = Draw(2) == 0;
    const std::size_t to = back ? (from > distance ? from - distance : 0)
                                : std::min(from + distance, order->size() - 1);
    const auto begin = order->begin();
    if (to < from) {
      std::rotate(begin + static_cast<std::ptrdiff_t>(to),
                  begin + static_cast<std::ptrdiff_t>(from),
                  begin + static_cast<std::ptrdiff_t>(from) + 1);
    } else {
      std::rotate(begin + static_cast<std::ptrdiff_t>(from),
                  begin + static_cast<std::ptrdiff_t>(from) + 1,
                  begin + static_cast<std::ptrdiff_t>(to) + 1);
    }
  }

  /// An activation that is offloaded, or one that is not; -1 if there is none.
  std::int32_t Pick(const Orders& orders, bool offloaded) {
    const std::size_t all = question_.model.stages - 1;  // x_{n-1} never helps by leaving.
    if (offloaded) return orders.out.empty() ? -1 : orders.out[Draw(orders.out.size())];
    for (int attempt = 0; attempt < 16; ++attempt) {
      const auto i = static_cast<std::int32_t>(Draw(all));
      if (std::find(orders.out.begin(), orders.out.end(), i) == orders.out.end()) return i;
    }
    return -1;
  }

  void Exchange(int removed, int added, Orders* orders) {
    for (int k = 0; k < removed; ++k) {
      const std::int32_t i = Pick(*orders, true);
      if (i >= 0) Remove(i, orders);
    }
    for (int k = 0; k < added; ++k) {
      const std::int32_t i = Pick(*orders, false);
      if (i >= 0) Insert(i, orders);
    }
  }

  void Mutate(Orders* orders) {
    switch (Draw(10)) {
      case 0:
        Exchange(1, 0, orders);
        break;
      case 1:
        Exchange(0, 1, orders);
        break;
      case 2:
      case 3:
      case 4:
        Exchange(1, 1, orders);
        break;
      case 5:
        Exchange(Draw(2) == 0 ? 1 : 2, Draw(2) == 0 ? 1 : 2, orders);
        break;
      case 6:
      case 7:
        Shift(&orders->out);
        break;
      default:
        Shift(&orders->in);
        break;
    }
  }

  void Anneal(Orders current, int steps) {
    Nanoseconds makespan = Evaluate(current);
    Orders candidate;
    const double hot = 0.01 * static_cast<double>(makespan);
    for (int step = 0; step < steps; ++step) {
      if (step % 256 == 0 && done()) return;
      const double left = 1 - static_cast<double>(step) / steps;
      const double temperature = hot * left * left * left + 1;
      candidate = current;
      Mutate(&candidate);
      const Nanoseconds result = Evaluate(candidate);
      if (result == kInfeasible) continue;
      const auto worse = static_cast<double>(result - makespan);
      if (worse > 0 && DrawUnit() >= std::exp(-worse / temperature)) continue;
      std::swap(current, candidate);
      makespan = result;
      Offer(makespan, current);
    }
  }

  static constexpr Nanoseconds kInfeasible = std::numeric_limits<Nanoseconds>::max();

  const Question& question_;
  const PlannerOptions& options_;
  const Deadline deadline_;
  Simulator simulator_;
  const Nanoseconds bound_;
  std::mt19937_64 random_;
  Decision scratch_;
  std::vector<std::pair<Nanoseconds, Orders>> starts_;
  Nanoseconds best_ = kInfeasible;
  std::optional<Schedule> best_schedule_;
  Nanoseconds best_orders_makespan_ = kInfeasible;
  Orders best_orders_;
};

}  // namespace

std::optional<Schedule> PlanChainSearch(const Question& question, const PlannerOptions& options) {
  return Search(question, options).Run();
}

}  // namespace plimsoll::chain

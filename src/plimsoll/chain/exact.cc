// SPDX-License-Identifier: Apache-2.0
//
// The exact solver for short chains. Both halves of the iteration are solved for every set and
// every order (one_way.h), forward from its start and backward from its end, keeping what nothing
// dominates. For each set the halves are then joined:
//
//      0 ──▶ last transfer out          ops in between          first transfer in ──▶ T
//           ├─ label of the first half ─┤               ├─ label of the second half ─┤
//
// A pair that leaves no op out of both halves and has no op in both is a schedule; a pair with ops
// in both gives a bound. A set whose bound is below the best schedule is searched in full, transfer
// in by transfer in, with the simulator.
#include "plimsoll/chain/exact.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/one_way.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

class Solver {
 public:
  Solver(const Question& question, const PlannerOptions& options, std::int64_t most_work)
      : question_(question),
        model_(question.model),
        options_(options),
        deadline_(options.time_budget_seconds),
        work_left_(most_work),
        // x_{n-1} is in use until F_{n-1} ends and again when B_{n-1} starts: it never leaves.
        count_(question.model.stages - 1),
        first_(question.model, question.limit_bytes, OneWay::Half::kForward),
        second_(question.model, question.limit_bytes, OneWay::Half::kBackward),
        simulator_(question.model, question.limit_bytes) {}

  ExactAnswer Run(std::optional<Schedule> start) {
    ExactAnswer answer;
    answer.schedule = std::move(start);
    if (answer.schedule) best_ = answer.schedule->iteration_ns();
    const Nanoseconds relaxed = FractionalOptimum(question_.chain, model_, question_.limit_bytes);
    answer.lower_bound_ns = Solve(relaxed);
    if (!best_decision_.empty()) answer.schedule = simulator_.Play(best_decision_);
    answer.proven = answer.schedule && answer.schedule->iteration_ns() <= answer.lower_bound_ns;
    return answer;
  }

 private:
  /// Returns the bound that holds in the end: the optimum itself if there was time.
  Nanoseconds Solve(Nanoseconds relaxed) {
    if (best_ <= relaxed) return relaxed;
    const auto late = [this] { return IsLate(); };
    const auto hopeless = [this](const OneWay& half) {
      return [this, &half](Mask set, const Label& label) {
        --work_left_;
        return IsHopeless(half, set, label);
      };
    };
    if (!first_.Run(count_, hopeless(first_), late)) return relaxed;
    if (!second_.Run(count_, hopeless(second_), late)) return relaxed;
    std::vector<std::pair<Nanoseconds, Mask>> sets;
    for (Mask set = 0; set < Mask{1} << count_; ++set) {
      const Nanoseconds bound = Join(set);
      if (bound < best_) sets.emplace_back(bound, set);
    }
    std::sort(sets.begin(), sets.end());
    for (const auto& [bound, set] : sets) {
      if (bound >= best_) break;
      if (IsLate() || !SearchSet(set)) return std::max(relaxed, bound);
    }
    return std::max(relaxed, best_);
  }

  bool IsLate() const { return work_left_ < 0 || deadline_.passed(); }

  Nanoseconds LinkTime(Mask set) const {
    Nanoseconds sum = 0;
    for (Mask left = set; left != 0; left &= left - 1) {
      sum += model_.transfer_ns[static_cast<std::size_t>(std::countr_zero(left))];
    }
    return sum;
  }
  Bytes Size(Mask set) const {
    Bytes sum = 0;
    for (Mask left = set; left != 0; left &= left - 1) {
      sum += model_.activation_bytes[static_cast<std::size_t>(std::countr_zero(left))];
    }
    return sum;
  }

  /// Whether nothing that goes through the label can end before the best so far: the same set has
  /// to be carried once more, and what is still missing twice.
  bool IsHopeless(const OneWay& half, Mask set, const Label& label) const {
    const Bytes missing = std::max<Bytes>(0, model_.peak_bytes - question_.limit_bytes - Size(set));
    const Nanoseconds carry =
        LinkTime(set) + 2 * TransferTime(missing, model_.bandwidth_bytes_per_s);
    const Nanoseconds run = half.TimeAfter(static_cast<std::size_t>(label.ops));
    return label.link_ns + carry >= best_ || label.compute_ns + run >= best_;
  }

  /// A bound on every iteration that goes through both labels; the iteration itself if `*whole`.
  Nanoseconds JoinPair(const Label& first, const Label& second, bool* whole) const {
    const std::size_t between = static_cast<std::size_t>(first.ops + second.ops);
    *whole = between <= model_.ops();
    if (!*whole) {
      return std::max(first.link_ns + second.link_ns,
                      first.compute_ns + first_.TimeAfter(static_cast<std::size_t>(first.ops)));
    }
    return std::max(first.link_ns, first.compute_ns) +
           (first_.TimeAfter(static_cast<std::size_t>(first.ops)) -
            first_.TimeAfter(model_.ops() - static_cast<std::size_t>(second.ops))) +
           std::max(second.link_ns, second.compute_ns);
  }

  bool Fits(Mask set) const {
    Bytes away = 0;
    for (std::size_t i = 0; i < model_.stages; ++i) {
      if (model_.total_bytes[model_.ForwardOp(i)] - away > question_.limit_bytes) return false;
      if (model_.total_bytes[model_.BackwardOp(i)] - away > question_.limit_bytes) return false;
      if ((set >> i & 1U) != 0) away += model_.activation_bytes[i];
    }
    return true;
  }

  /// Returns the least bound of the set's pairs, and tries the schedules among them.
  Nanoseconds Join(Mask set) {
    if (first_.labels(set).empty() || second_.labels(set).empty() || !Fits(set)) return kNever;
    Nanoseconds bound = kNever;
    for (const Label& first : first_.labels(set)) {
      for (const Label& second : second_.labels(set)) {
        bool whole = false;
        const Nanoseconds joined = JoinPair(first, second, &whole);
        bound = std::min(bound, joined);
        if (joined < best_) Try(set, first, second);
      }
    }
    return bound;
  }

  void Try(Mask set, const Label& first, const Label& second) {
    Decision decision;
    for (const std::int32_t i : first_.Order(set, first)) decision.push_back({i, Direction::kOut});
    std::vector<std::int32_t> in = second_.Order(set, second);
    for (std::size_t k = in.size(); k-- > 0;) decision.push_back({in[k], Direction::kIn});
    const std::optional<Nanoseconds> makespan = simulator_.Makespan(decision);
    if (!makespan || *makespan >= best_) return;
    best_ = *makespan;
    best_decision_ = std::move(decision);
    if (options_.on_progress) options_.on_progress(best_, 0);
  }

  /// Tries every order of transfers in after every label of the set. Returns false if time is up.
  bool SearchSet(Mask set) {
    for (const Label& first : first_.labels(set)) {
      simulator_.Reset();
      decision_.clear();
      bool possible = true;
      for (const std::int32_t i : first_.Order(set, first)) {
        decision_.push_back({i, Direction::kOut});
        possible = possible && simulator_.Step(decision_.back());
      }
      seen_.clear();
      if (possible && !SearchIn(set)) return false;
    }
    return true;
  }

  bool SearchIn(Mask left) {
    --work_left_;
    if (IsLate()) return false;
    const Simulator::Mark mark = simulator_.mark();
    const Label here = {mark.link_free_ns, mark.compute_end_ns, static_cast<std::int16_t>(mark.op)};
    if (left == 0) {
      if (simulator_.Finish() && simulator_.compute_end_ns() < best_) {
        best_ = simulator_.compute_end_ns();
        best_decision_ = decision_;
      }
      simulator_.Return(mark);
      return true;
    }
    if (!AddUndominated(here, &seen_[left]) || BoundFrom(left, here) >= best_) return true;
    for (std::size_t i = count_; i-- > 0;) {
      if ((left >> i & 1U) == 0) continue;
      decision_.push_back({static_cast<std::int32_t>(i), Direction::kIn});
      const bool in_time = !simulator_.Step(decision_.back()) || SearchIn(left & ~(Mask{1} << i));
      decision_.pop_back();
      simulator_.Return(mark);
      simulator_.SetPlace(i, Simulator::Place::kAway);
      if (!in_time) return false;
    }
    return true;
  }

  Nanoseconds BoundFrom(Mask left, const Label& here) const {
    Nanoseconds bound = kNever;
    for (const Label& second : second_.labels(left)) {
      bool whole = false;
      bound = std::min(bound, JoinPair(here, second, &whole));
    }
    return bound;
  }

  const Question& question_;
  const Model& model_;
  const PlannerOptions& options_;
  const Deadline deadline_;
  std::int64_t work_left_;
  const std::size_t count_;
  OneWay first_;
  OneWay second_;
  Simulator simulator_;
  Nanoseconds best_ = kNever;
  Decision best_decision_;
  Decision decision_;                                  // Of the search under way.
  std::unordered_map<Mask, std::vector<Label>> seen_;  // By what is left to come in.
};

}  // namespace

ExactAnswer SolveExactly(const Question& question, const PlannerOptions& options,
                         std::optional<Schedule> start, std::int64_t most_work) {
  PLIMSOLL_CHECK(question.model.stages <= kMostExactStages,
                 fmt::format("{} stages", question.model.stages));
  return Solver(question, options, most_work).Run(std::move(start));
}

}  // namespace plimsoll::chain

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_exact.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/planners/joint_state_internal.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::planners {
namespace {

/// What is dropped and how it is rebuilt; swaps come later.
struct Rebuilding {
  std::vector<bool> dropped;  ///< Per gap.
  std::vector<bool> lingers;  ///< Per variable.
  plan::OpIndex horizon = plan::Rewriter::kFar;
  plan::Rewritten made;
};

bool IsSame(const Rebuilding& a, const Rebuilding& b) {
  return a.dropped == b.dropped && a.made.op_source == b.made.op_source &&
         a.made.is_replay == b.made.is_replay && a.made.problem == b.made.problem;
}

class Enumerator {
 public:
  Enumerator(const Question& question, Nanoseconds below_ns)
      : question_(question),
        evaluator_(question),
        gaps_(evaluator_.gaps().size()),
        best_ns_(below_ns) {
    PLIMSOLL_CHECK(gaps_ <= kMostExactGaps && question.options.least_bytes == 1,
                   "too many gaps for an exact answer, or not all of them");
    evaluator_.set_target(question.options.limit_bytes);
  }

  std::optional<ExactAnswer> Run() {
    std::vector<bool> dropped(gaps_, false);
    ListRebuildings(0, &dropped);
    std::stable_sort(rebuildings_.begin(), rebuildings_.end(), [](const auto& a, const auto& b) {
      return a.made.replay_ns < b.made.replay_ns;
    });
    for (const Rebuilding& rebuilding : rebuildings_) TrySwaps(rebuilding);
    if (best_) best_->plans = plans_;
    return std::move(best_);
  }

 private:
  void ListRebuildings(std::size_t gap, std::vector<bool>* dropped) {
    if (gap == gaps_) {
      AddHorizons(*dropped);
      return;
    }
    ListRebuildings(gap + 1, dropped);
    if (!evaluator_.CanDrop(gap)) return;
    (*dropped)[gap] = true;
    ListRebuildings(gap + 1, dropped);
    (*dropped)[gap] = false;
  }

  void AddHorizons(const std::vector<bool>& dropped) {
    const std::size_t first = rebuildings_.size();
    const auto ops = static_cast<plan::OpIndex>(question_.problem.ops.size());
    Rebuilding rebuilding{dropped, {}, plan::Rewriter::kFar, {}};
    AddLingering(rebuilding, first);
    for (rebuilding.horizon = 0; rebuilding.horizon < ops; ++rebuilding.horizon) {
      AddLingering(rebuilding, first);
    }
  }

  /// Adds rebuildings with every set of lingering variables. Those from `first` on may be the same.
  void AddLingering(Rebuilding rebuilding, std::size_t first) {
    rebuilding.lingers.clear();
    if (!Rewrite(&rebuilding)) return;
    const std::vector<plan::VariableIndex> revenants = ListRevenants(rebuilding.made);
    for (std::size_t set = 0; set < std::size_t{1} << revenants.size(); ++set) {
      rebuilding.lingers.assign(question_.problem.variables.size(), false);
      for (std::size_t k = 0; k < revenants.size(); ++k) {
        if ((set >> k & 1) != 0) rebuilding.lingers[At(revenants[k])] = true;
      }
      if (!Rewrite(&rebuilding) || IsSlow(rebuilding)) continue;
      const auto begin = rebuildings_.begin() + static_cast<std::ptrdiff_t>(first);
      const auto same = [&](const Rebuilding& other) { return IsSame(other, rebuilding); };
      if (std::none_of(begin, rebuildings_.end(), same)) rebuildings_.push_back(rebuilding);
    }
  }

  bool Rewrite(Rebuilding* rebuilding) const {
    const auto most = static_cast<std::int64_t>(4 * question_.problem.ops.size());
    auto made = evaluator_.rewriter().Rewrite(rebuilding->dropped,
                                              {most, rebuilding->horizon, rebuilding->lingers});
    if (made) rebuilding->made = std::move(*made);
    return made.has_value();
  }

  /// Returns the variables that are rebuilt for an op which comes behind their free.
  std::vector<plan::VariableIndex> ListRevenants(const plan::Rewritten& made) const {
    std::vector<plan::VariableIndex> revenants;
    plan::Position now = 0;  // Of the recorded op that replays are for: the next one.
    for (std::size_t i = made.problem.ops.size(); i-- > 0;) {
      if (made.is_replay[i] == 0) {
        now = question_.problem.ops[At(made.op_source[i])].position;
        continue;
      }
      for (const plan::Operand& x : made.problem.writes(made.problem.ops[i])) {
        const plan::VariableIndex v = made.variable_source[At(x.variable)];
        if (question_.problem.variables[At(v)].end <= now) revenants.push_back(v);
      }
    }
    std::sort(revenants.begin(), revenants.end());
    revenants.erase(std::unique(revenants.begin(), revenants.end()), revenants.end());
    return revenants;
  }

  bool IsSlow(const Rebuilding& rebuilding) const {
    return question_.problem.iteration_ns() + rebuilding.made.replay_ns >= best_ns_;
  }

  /// Tries every set of swaps among what is not dropped.
  void TrySwaps(const Rebuilding& rebuilding) {
    std::vector<std::size_t> open;
    for (std::size_t g = 0; g < gaps_; ++g) {
      if (!rebuilding.dropped[g]) open.push_back(g);
    }
    for (std::size_t set = 0; set < std::size_t{1} << open.size(); ++set) {
      if (IsSlow(rebuilding)) return;
      JointState state;
      state.lingers = rebuilding.lingers;
      state.horizon = rebuilding.horizon;
      for (const bool dropped : rebuilding.dropped) {
        state.choices.push_back(dropped ? Choice::kDrop : Choice::kKeep);
      }
      for (std::size_t k = 0; k < open.size(); ++k) {
        if ((set >> k & 1) != 0) state.choices[open[k]] = Choice::kSwap;
      }
      if (!evaluator_.Evaluate(&state) || state.excess > 0) continue;
      for (const double prefetch : {plan::kPrefetchJustInTime, plan::kPrefetchEarly}) {
        Make(state, prefetch);
        if (state.swaps.swapped.empty()) break;
      }
    }
  }

  /// Makes a plan with as high a load as can be placed.
  void Make(const JointState& state, double prefetch) {
    plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
    schedule.prefetch = prefetch;
    for (const double share : LoadShares()) {
      schedule.load_limit_bytes =
          static_cast<Bytes>(share * static_cast<double>(question_.options.limit_bytes));
      auto made = MakeOnce(state, schedule);
      ++plans_;
      if (const auto* misfit = std::get_if<plan::Misfit>(&made)) {
        // The load itself is too high: lower ones are not held either.
        if (misfit->needed_bytes <= question_.options.limit_bytes) return;
        continue;
      }
      Take(state, prefetch, std::get<plan::Plan>(std::move(made)));
      return;
    }
  }

  std::variant<plan::Plan, plan::Misfit> MakeOnce(const JointState& state,
                                                  const plan::ScheduleOptions& schedule) const {
    const plan::Rewritten& rewritten = *state.rewritten;
    if (std::count(rewritten.is_replay.begin(), rewritten.is_replay.end(), 1) == 0) {
      plan::Decision decision;
      for (std::size_t g = 0; g < gaps_; ++g) {
        if (state.choices[g] == Choice::kSwap) decision.swapped.push_back(evaluator_.gaps()[g]);
      }
      return plan::MakePlan(question_.problem, decision, question_.machine, schedule);
    }
    auto made = plan::MakePlan(rewritten.problem, state.swaps, question_.machine, schedule);
    if (auto* plan = std::get_if<plan::Plan>(&made)) {
      plan->rewriting = plan::ToRewriting(question_.problem, rewritten);
    }
    return made;
  }

  void Take(const JointState& state, double prefetch, plan::Plan plan) {
    const Nanoseconds ns = sim::Simulate(plan).iteration_ns;
    if (ns >= best_ns_) return;
    const auto violations = plan::CheckPlan(plan);
    PLIMSOLL_CHECK(violations.empty(), violations.front().message);
    best_ns_ = ns;
    best_ = ExactAnswer{
        {state.choices, state.lingers, state.horizon}, prefetch, std::move(plan), ns, 0};
  }

  const Question& question_;
  JointEvaluator evaluator_;
  const std::size_t gaps_;
  std::vector<Rebuilding> rebuildings_;
  Nanoseconds best_ns_;
  std::optional<ExactAnswer> best_;
  std::int64_t plans_ = 0;
};

}  // namespace

std::optional<ExactAnswer> ExactJoint(const Question& question, Nanoseconds below_ns) {
  return Enumerator(question, below_ns).Run();
}

}  // namespace plimsoll::planners

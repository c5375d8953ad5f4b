// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/rewrite_row.h"
#include "plimsoll/planners/chain_start_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::VariableIndex;

/// Of the question's time, for each solution of the chain.
constexpr double kShareOfTime = 0.25;
/// Of all variables together.
constexpr double kMostExactBytes = 0x1p50;

/// The link as chains see it: one way at a time.
std::int64_t BandwidthOf(const plan::Machine& machine) {
  return static_cast<std::int64_t>((machine.out_bytes_per_s + machine.in_bytes_per_s) / 2);
}

/// The gaps of variables, as they are made first, around the turn from forward to backward.
class TurnGaps {
 public:
  TurnGaps(const plan::Rewritten& rewritten, OpIndex turn)
      : problem_(rewritten.problem), accesses_(plan::ListAccesses(problem_)) {
    for (std::size_t i = 0; i < rewritten.op_source.size(); ++i) {
      if (rewritten.op_source[i] == turn) turn_ = static_cast<OpIndex>(i);
    }
    for (std::size_t v = 0; v < rewritten.variable_source.size(); ++v) {
      const std::size_t source = At(rewritten.variable_source[v]);
      if (source >= first_.size()) first_.resize(source + 1, -1);
      if (first_[source] < 0) first_[source] = static_cast<VariableIndex>(v);
    }
  }

  void Add(VariableIndex source, plan::Decision* decision) const {
    if (source < 0) return;
    const VariableIndex v = first_[At(source)];
    if (problem_.variables[At(v)].size_bytes == 0) return;
    const std::vector<plan::Access>& own = accesses_[At(v)];
    const auto after =
        std::find_if(own.begin(), own.end(), [this](const auto& x) { return x.op >= turn_; });
    if (after == own.begin() || after == own.end()) return;
    const auto before = std::prev(after);
    if (after->op <= before->op + 1) return;
    decision->swapped.push_back(
        {v, before->op, after->op, before->time + 1, problem_.ops[At(after->op)].position});
  }

 private:
  const plan::Problem& problem_;
  const std::vector<std::vector<plan::Access>> accesses_;
  OpIndex turn_ = 0;                  // In the rewritten problem.
  std::vector<VariableIndex> first_;  // By recorded variable.
};

plan::Decision SwapsOf(const ChainView& view, const chain::Schedule& schedule,
                       const plan::Rewritten& rewritten) {
  plan::Decision decision;
  const TurnGaps gaps(rewritten, view.backward.back().begin);
  for (const chain::TimedTransfer& timed : schedule.transfers) {
    if (timed.transfer.direction != chain::Direction::kOut) continue;
    const auto i = At(timed.transfer.activation);
    gaps.Add(view.outputs[i], &decision);
    const auto maker = static_cast<std::int32_t>(i) - 1;
    const bool once = schedule.order.empty() ||
                      std::count(schedule.order.begin(), schedule.order.end(), maker) == 1;
    if (i == 0 || !once) continue;
    for (const VariableIndex v : view.insides[i - 1]) gaps.Add(v, &decision);
  }
  std::sort(decision.swapped.begin(), decision.swapped.end(),
            [](const plan::Gap& a, const plan::Gap& b) {
              return std::pair(a.after, a.variable) < std::pair(b.after, b.variable);
            });
  return decision;
}

/// The variable that stands where a recorded op uses one.
VariableIndex OperandAt(const plan::Problem& recorded, const plan::Problem& rewritten, OpIndex op,
                        OpIndex place, VariableIndex variable) {
  const plan::Op& old = recorded.ops[At(op)];
  const plan::Op& made = rewritten.ops[At(place)];
  for (std::int64_t k = 0; k < old.read_count + old.write_count; ++k) {
    if (recorded.operands[At(old.first_operand + k)].variable == variable) {
      return rewritten.operands[At(made.first_operand + k)].variable;
    }
  }
  return -1;
}

std::vector<Choice> ChoicesOf(const Question& question, const ChainStart& start) {
  const plan::Problem& problem = question.problem;
  std::vector<OpIndex> place(problem.ops.size(), 0);
  for (std::size_t i = 0; i < start.rewritten.op_source.size(); ++i) {
    if (start.rewritten.is_replay[i] == 0) {
      place[At(start.rewritten.op_source[i])] = static_cast<OpIndex>(i);
    }
  }
  std::vector<Choice> choices;
  for (const plan::Gap& gap : plan::ListGapsAndMoments(problem, question.options.least_bytes)) {
    const plan::Problem& made = start.rewritten.problem;
    const VariableIndex from =
        OperandAt(problem, made, gap.after, place[At(gap.after)], gap.variable);
    const VariableIndex to =
        OperandAt(problem, made, gap.before, place[At(gap.before)], gap.variable);
    const bool swapped = std::any_of(
        start.swaps.swapped.begin(), start.swaps.swapped.end(), [&](const plan::Gap& x) {
          return x.variable == from && x.after >= place[At(gap.after)] &&
                 x.before <= place[At(gap.before)];
        });
    choices.push_back(from != to ? Choice::kDrop : swapped ? Choice::kSwap : Choice::kKeep);
  }
  return choices;
}

std::optional<Attempt> MakeAttempt(const Question& question, const ChainStart& start) {
  auto made = plan::MakePlan(start.rewritten.problem, start.swaps, question.machine,
                             ToScheduleOptions(question.options));
  auto* plan = std::get_if<plan::Plan>(&made);
  if (plan == nullptr) return std::nullopt;
  const auto& replays = start.rewritten.is_replay;
  if (std::find(replays.begin(), replays.end(), std::uint8_t{1}) != replays.end()) {
    plan->rewriting = plan::ToRewriting(question.problem, start.rewritten);
  }
  return Attempt{start.swaps, std::move(made), question.options.limit_bytes};
}

}  // namespace

std::optional<ChainStart> StartAsChain(const ChainView& view, const Question& question,
                                       chain::PlanFunction planner, Bytes load_limit_bytes) {
  const chain::Model model = chain::MakeModel(view.chain, BandwidthOf(question.machine));
  const Bytes limit = std::min(load_limit_bytes - view.base_bytes, model.peak_bytes);
  if (limit <= view.chain.input_bytes) return std::nullopt;
  chain::PlannerOptions options;
  options.seed = question.options.seed;
  options.time_budget_seconds = kShareOfTime * question.options.time_budget_seconds;
  const auto schedule = planner({view.chain, model, limit}, options);
  if (!schedule) return std::nullopt;
  const chain::Order order =
      schedule->order.empty() ? chain::PlainOrder(model.stages) : schedule->order;
  ChainStart start;
  std::optional<plan::Rewritten> rewritten =
      plan::RewriteRow(question.problem, view.RowOf(question.problem, order));
  if (!rewritten) return std::nullopt;
  start.rewritten = std::move(*rewritten);
  start.swaps = SwapsOf(view, *schedule, start.rewritten);
  const std::vector<Bytes> load =
      plan::LeastLoad(start.rewritten.problem, start.swaps, question.options.alignment);
  start.load_bytes = *std::max_element(load.begin(), load.end());
  plan::ScheduleOptions schedule_options = ToScheduleOptions(question.options);
  const auto predicted = plan::PredictIteration(start.rewritten.problem, start.swaps,
                                                question.machine, schedule_options);
  if (!predicted) return std::nullopt;
  start.predicted_ns = *predicted;
  start.choices = ChoicesOf(question, start);
  return start;
}

std::optional<Attempt> PlanAsChain(const Question& question) {
  // Chains are solved in real numbers, which do not tell bytes apart beyond this.
  double bytes = 0;
  for (const plan::Variable& variable : question.problem.variables) {
    bytes += static_cast<double>(variable.size_bytes);
  }
  if (bytes > kMostExactBytes) return std::nullopt;
  const auto view = ViewAsChain(question.problem, question.options.alignment);
  if (!view) return std::nullopt;
  // Each row only if nothing of those before can be placed.
  using Ask = std::pair<chain::PlanFunction, double>;
  const std::vector<std::vector<Ask>> rows = {
      {{chain::PlanPofo, 1.0}, {chain::PlanPofo, 0.97}, {chain::PlanRotor, 1.0}},
      {{chain::PlanPofo, 0.94}, {chain::PlanRotor, 0.94}},
      {{chain::PlanPofo, 0.9}},
      {{chain::PlanRotor, 0.85}, {chain::PlanRotor, 0.8}, {chain::PlanRotor, 0.7}}};
  for (const std::vector<Ask>& row : rows) {
    std::vector<ChainStart> starts;
    for (const auto& [planner, share] : row) {
      const double limit = share * static_cast<double>(question.options.limit_bytes);
      auto start = StartAsChain(*view, question, planner, static_cast<Bytes>(limit));
      if (start) starts.push_back(std::move(*start));
    }
    std::stable_sort(starts.begin(), starts.end(), [](const ChainStart& a, const ChainStart& b) {
      return a.predicted_ns < b.predicted_ns;
    });
    for (const ChainStart& start : starts) {
      if (auto attempt = MakeAttempt(question, start)) return attempt;
    }
  }
  return std::nullopt;
}

}  // namespace plimsoll::planners

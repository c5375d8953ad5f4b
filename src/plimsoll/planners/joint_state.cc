// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {
namespace {

using plan::Gap;
using plan::Rewritten;

}  // namespace

JointEvaluator::JointEvaluator(const Question& question)
    : question_(question),
      rewriter_(question.problem, question.options.least_bytes),
      gaps_(rewriter_.gaps()) {}

Bytes JointEvaluator::SizeOf(std::size_t gap) const {
  return question_.problem.variables[At(gaps_[gap].variable)].size_bytes;
}

double JointEvaluator::CopyNs(std::size_t gap) const {
  const Bytes size = SizeOf(gap);
  return static_cast<double>(question_.machine.out_ns(size) + question_.machine.in_ns(size));
}

bool JointEvaluator::Evaluate(JointState* state) {
  ++evaluations_;
  std::vector<bool> dropped(gaps_.size());
  for (std::size_t g = 0; g < gaps_.size(); ++g) dropped[g] = state->choices[g] == Choice::kDrop;
  const auto most = static_cast<std::int64_t>(4 * question_.problem.ops.size());
  state->rewritten = rewriter_.Rewrite(dropped, {most, state->horizon, state->lingers});
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

/// Finds the swapped gaps again in the rewritten problem.
void JointEvaluator::MapSwaps(JointState* state) const {
  const Rewritten& made = *state->rewritten;
  state->swaps.swapped.clear();
  state->cost_ns = static_cast<double>(made.replay_ns);
  std::vector<std::size_t> wanted;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state->choices[g] != Choice::kSwap) continue;
    wanted.push_back(g);
    state->cost_ns += CopyNs(g);
  }
  if (wanted.empty()) return;
  std::vector<plan::OpIndex> recorded(question_.problem.ops.size());
  std::vector<std::pair<plan::VariableIndex, plan::OpIndex>> replays;
  for (std::size_t i = 0; i < made.op_source.size(); ++i) {
    const auto op = static_cast<plan::OpIndex>(i);
    if (made.is_replay[i] == 0) {
      recorded[At(made.op_source[i])] = op;
      continue;
    }
    for (const plan::Operand& x : made.problem.reads(made.problem.ops[i])) {
      replays.emplace_back(x.variable, op);
    }
  }
  std::sort(replays.begin(), replays.end());
  for (const std::size_t g : wanted) {
    if (const auto gap = FindLongest(made.problem, recorded, replays, g)) {
      state->swaps.swapped.push_back(*gap);
    }
  }
}

/// The part of a recorded gap between two uses in the rewritten problem that lasts longest:
/// replays may have come into it.
std::optional<Gap> JointEvaluator::FindLongest(
    const plan::Problem& problem, const std::vector<plan::OpIndex>& recorded,
    const std::vector<std::pair<plan::VariableIndex, plan::OpIndex>>& replays,
    std::size_t g) const {
  const Gap& old = gaps_[g];
  const plan::OpIndex after = recorded[At(old.after)];
  const plan::OpIndex before = recorded[At(old.before)];
  const plan::VariableIndex v = OperandAt(problem, old, after);
  const bool around = old.end >= question_.problem.period;
  std::vector<plan::OpIndex> uses = {after};
  std::vector<plan::OpIndex> next_lap;
  for (auto use = std::lower_bound(replays.begin(), replays.end(), std::pair(v, plan::OpIndex{}));
       use != replays.end() && use->first == v; ++use) {
    if (use->second > after && (around || use->second < before)) uses.push_back(use->second);
    if (around && use->second < before) next_lap.push_back(use->second);
  }
  const std::size_t lap = uses.size();
  uses.insert(uses.end(), next_lap.begin(), next_lap.end());
  uses.push_back(before);
  std::optional<Gap> longest;
  plan::OpIndex most = 0;
  for (std::size_t k = 0; k + 1 < uses.size(); ++k) {
    const bool from_next = around && k >= lap;
    const bool to_next = around && k + 1 >= lap;
    Gap gap{v, uses[k], uses[k + 1], problem.ops[At(uses[k])].position + 1,
            problem.ops[At(uses[k + 1])].position + (to_next && !from_next ? problem.period : 0)};
    const bool adjacent = gap.before == gap.after + 1 && gap.end <= problem.period;
    if (adjacent || gap.begin >= gap.end) continue;
    const auto lap_ops = static_cast<plan::OpIndex>(problem.ops.size());
    const plan::OpIndex length = gap.before - gap.after + (to_next && !from_next ? lap_ops : 0);
    if (length > most || (length == most && to_next && !from_next)) longest = gap;
    most = std::max(most, length);
  }
  return longest;
}

/// The variable that stands in the rewritten problem where the recorded op uses the gap's.
plan::VariableIndex JointEvaluator::OperandAt(const plan::Problem& problem, const Gap& gap,
                                              plan::OpIndex op) const {
  const plan::Op& old = question_.problem.ops[At(gap.after)];
  std::int64_t k = 0;
  while (question_.problem.operands[At(old.first_operand + k)].variable != gap.variable) ++k;
  return problem.operands[At(problem.ops[At(op)].first_operand + k)].variable;
}

void JointEvaluator::Rehearse(JointState* state) const {
  state->time_ns = kNever;
  if (state->excess > 0) return;
  plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
  schedule.load_limit_bytes = target_;
  schedule.prefetch = state->prefetch;
  const auto predicted =
      plan::PredictIteration(state->rewritten->problem, state->swaps, question_.machine, schedule);
  if (predicted) state->time_ns = static_cast<double>(*predicted);
}

Attempt JointEvaluator::Make(const JointState& state) const {
  plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
  schedule.load_limit_bytes = target_;
  schedule.prefetch = state.prefetch;
  const auto replays = std::count(state.rewritten->is_replay.begin(),
                                  state.rewritten->is_replay.end(), std::uint8_t{1});
  if (replays == 0) return MakeOfRecorded(state, schedule);
  auto made = plan::MakePlan(state.rewritten->problem, state.swaps, question_.machine, schedule);
  if (auto* plan = std::get_if<plan::Plan>(&made)) {
    plan->rewriting = plan::ToRewriting(question_.problem, *state.rewritten);
  }
  return {state.swaps, std::move(made), target_};
}

/// Makes a plan without replays of the problem as it was recorded.
Attempt JointEvaluator::MakeOfRecorded(const JointState& state,
                                       const plan::ScheduleOptions& schedule) const {
  plan::Decision decision;
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (state.choices[g] == Choice::kSwap) decision.swapped.push_back(gaps_[g]);
  }
  auto made = plan::MakePlan(question_.problem, decision, question_.machine, schedule);
  return {std::move(decision), std::move(made), *schedule.load_limit_bytes};
}

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
//
// What a runner knows of its plan before anything runs.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/exec/plan_runner.h"

namespace plimsoll::exec {
namespace {

using plan::OpIndex;
using plan::ResidencyIndex;
using plan::VariableIndex;

/// By variable: the op that is the first in its life to touch it; -1 if none does.
std::vector<OpIndex> FirstOps(const plan::Problem& problem) {
  std::vector<OpIndex> first(problem.variables.size(), -1);
  std::vector<plan::Position> when(problem.variables.size(), 0);
  for (std::size_t j = 0; j < problem.ops.size(); ++j) {
    const plan::Op& op = problem.ops[j];
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const plan::Operand& operand = problem.operands[At(op.first_operand + k)];
      const plan::Position time = op.position + operand.age * problem.period;
      OpIndex& known = first[At(operand.variable)];
      if (known >= 0 && when[At(operand.variable)] <= time) continue;
      known = static_cast<OpIndex>(j);
      when[At(operand.variable)] = time;
    }
  }
  return first;
}

}  // namespace

void PlanRunner::FindSources() {
  const plan::Problem& problem = plan_.problem;
  source_.resize(problem.ops.size());
  is_replay_.assign(problem.ops.size(), false);
  is_replayed_.assign(original_.ops.size(), false);
  holds_.resize(problem.variables.size());
  for (std::size_t j = 0; j < source_.size(); ++j) {
    source_[j] = plan_.rewriting ? plan_.rewriting->op_source[j] : static_cast<OpIndex>(j);
    if (!plan_.rewriting || plan_.rewriting->is_replay[j] == 0) continue;
    is_replay_[j] = true;
    is_replayed_[At(source_[j])] = true;
  }
  for (std::size_t w = 0; w < holds_.size(); ++w) {
    holds_[w] =
        plan_.rewriting ? plan_.rewriting->variable_source[w] : static_cast<VariableIndex>(w);
    const bool is_scratch =
        original_.variables[At(holds_[w])].persistent() && !problem.variables[w].persistent();
    if (is_scratch) holds_[w] = -1;
  }
  first_op_ = FirstOps(problem);
  first_recorded_op_ = FirstOps(original_);
  functions_.resize(original_.ops.size());
}

/// Finds for each operand the residency in which its op finds it.
void PlanRunner::LinkOperands() {
  const plan::Problem& problem = plan_.problem;
  std::vector<std::vector<ResidencyIndex>> of_variable(problem.variables.size());
  for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
    of_variable[At(plan_.residencies[r].variable)].push_back(static_cast<ResidencyIndex>(r));
  }
  operand_residencies_.assign(problem.operands.size(), -1);
  for (const plan::Op& op : problem.ops) {
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const std::size_t operand = At(op.first_operand + k);
      for (const ResidencyIndex r : of_variable[At(problem.operands[operand].variable)]) {
        const plan::Residency& residency = plan_.residencies[At(r)];
        for (const plan::Position time : {op.position, op.position + problem.period}) {
          if (residency.begin <= time && time < residency.end) operand_residencies_[operand] = r;
        }
      }
      PLIMSOLL_CHECK(operand_residencies_[operand] >= 0,
                     fmt::format("op {} finds no residency of variable {}",
                                 &op - problem.ops.data(), problem.operands[operand].variable));
    }
  }
}

void PlanRunner::DescribeStays() {
  const plan::Problem& problem = plan_.problem;
  stays_.resize(plan_.residencies.size());
  std::vector<plan::Position> last_time(plan_.residencies.size(), -1);
  for (std::size_t j = 0; j < problem.ops.size(); ++j) {
    const plan::Op& op = problem.ops[j];
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const auto r = At(operand_residencies_[At(op.first_operand + k)]);
      const plan::Position begin = plan_.residencies[r].begin;
      const plan::Position time = op.position >= begin ? op.position : op.position + problem.period;
      if (time < last_time[r]) continue;
      last_time[r] = time;
      stays_[r].last_op = static_cast<OpIndex>(j);
    }
  }
  // On the axis of its variable, a residency of the next iteration ends a period later.
  const auto end_of = [&](const plan::Residency& residency) {
    const bool wraps = residency.begin < problem.variables[At(residency.variable)].begin;
    return residency.end + (wraps ? problem.period : 0);
  };
  std::vector<plan::Position> last_end(problem.variables.size(), -1);
  for (const plan::Residency& r : plan_.residencies) {
    last_end[At(r.variable)] = std::max(last_end[At(r.variable)], end_of(r));
  }
  for (std::size_t r = 0; r < stays_.size(); ++r) {
    const plan::Residency& residency = plan_.residencies[r];
    const bool persistent = problem.variables[At(residency.variable)].persistent();
    stays_[r].eternal = persistent && residency.copy_in < 0;
    stays_[r].end = end_of(residency);
    stays_[r].leaves_for_good =
        !persistent && end_of(residency) == last_end[At(residency.variable)];
    stays_[r].frees_host_copy = residency.copy_out >= 0 || stays_[r].leaves_for_good;
  }
}

/// What leaves for good does so when its variable is freed. The program has called the free before
/// it calls the next op.
void PlanRunner::ListExpiring() {
  const plan::Problem& problem = plan_.problem;
  recorded_positions_.resize(original_.ops.size());
  for (std::size_t j = 0; j < problem.ops.size(); ++j) {
    if (!is_replay_[j]) recorded_positions_[At(source_[j])] = problem.ops[j].position;
  }
  expiring_.resize(problem.ops.size());
  for (std::size_t r = 0; r < stays_.size(); ++r) {
    if (!stays_[r].leaves_for_good) continue;
    const auto next = std::partition_point(
        problem.ops.begin(), problem.ops.end(),
        [&](const plan::Op& op) { return op.position < stays_[r].end % problem.period; });
    const auto j = next == problem.ops.end() ? 0 : next - problem.ops.begin();
    expiring_[At(j)].push_back(static_cast<ResidencyIndex>(r));
  }
}

}  // namespace plimsoll::exec

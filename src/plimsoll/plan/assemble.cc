// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/assemble.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace plimsoll::plan {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// The absences of one variable, on its own axis and in order, with their two commands.
struct Leave {
  const Absence* absence;
  Position released;
  Position acquired;
  CommandIndex out;
  CommandIndex in;
};

void AddResidency(const Problem& problem, Residency residency, Plan* plan) {
  const Position laps = residency.begin / problem.period;
  residency.begin -= laps * problem.period;
  residency.end -= laps * problem.period;
  const auto index = static_cast<ResidencyIndex>(plan->residencies.size());
  if (residency.copy_in >= 0) plan->commands[At(residency.copy_in)].residency = index;
  if (residency.copy_out >= 0) plan->commands[At(residency.copy_out)].residency = index;
  plan->residencies.push_back(residency);
}

/// Cuts the life of a variable at its absences.
void AddResidencies(const Problem& problem, VariableIndex v, const std::vector<Leave>& leaves,
                    Plan* plan) {
  const Variable& variable = problem.variables[At(v)];
  const std::size_t count = leaves.size();
  if (count == 0) {
    AddResidency(problem, {v, variable.begin, variable.end, 0, -1, -1}, plan);
  } else if (variable.persistent()) {
    // Around the cycle: the last stay ends where the first absence begins.
    for (std::size_t k = 0; k < count; ++k) {
      const Leave& next = leaves[(k + 1) % count];
      const Position end = next.released + (k + 1 == count ? problem.period : 0);
      AddResidency(problem, {v, leaves[k].acquired, end, 0, leaves[k].in, next.out}, plan);
    }
  } else {
    for (std::size_t k = 0; k <= count; ++k) {
      const bool first = k == 0;
      const bool last = k == count;
      AddResidency(problem,
                   {v, first ? variable.begin : leaves[k - 1].acquired,
                    last ? variable.end : leaves[k].released, 0, first ? -1 : leaves[k - 1].in,
                    last ? -1 : leaves[k].out},
                   plan);
    }
  }
}

/// Orders the copies of the plan; `need` is the position by which each copy in is needed.
void OrderCopies(const std::vector<std::tuple<OpIndex, CommandIndex>>& outs,
                 const std::vector<std::tuple<Position, CommandIndex>>& needs, Plan* plan) {
  auto sorted_outs = outs;
  std::sort(sorted_outs.begin(), sorted_outs.end());
  for (const auto& [op, command] : sorted_outs) plan->queues[1].push_back(command);
  std::vector<std::tuple<Position, Position, CommandIndex>> ins;
  for (const auto& [need, command] : needs) {
    const Residency& residency = plan->residencies[At(plan->commands[At(command)].residency)];
    ins.emplace_back(residency.begin, need, command);
  }
  std::sort(ins.begin(), ins.end());
  for (const auto& [begin, need, command] : ins) plan->queues[2].push_back(command);
}

}  // namespace

std::string_view Name(Queue queue) {
  switch (queue) {
    case Queue::kCompute:
      return "compute";
    case Queue::kCopyOut:
      return "copy-out";
    case Queue::kCopyIn:
      return "copy-in";
  }
  return "?";
}

Plan Assemble(const Problem& problem, const std::vector<Absence>& absences) {
  Plan plan;
  plan.problem = problem;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    plan.commands.push_back({Queue::kCompute, static_cast<OpIndex>(i), -1, 0, {}});
    plan.queues[0].push_back(static_cast<CommandIndex>(i));
  }
  std::vector<std::vector<Leave>> leaves(problem.variables.size());
  std::vector<std::tuple<OpIndex, CommandIndex>> outs;
  std::vector<std::tuple<Position, CommandIndex>> needs;
  for (const Absence& absence : absences) {
    const Variable& variable = problem.variables[At(absence.gap.variable)];
    const auto out = static_cast<CommandIndex>(plan.commands.size());
    plan.commands.push_back({Queue::kCopyOut, -1, -1, 0, {}});
    plan.commands.push_back({Queue::kCopyIn, -1, -1, 0, {}});
    outs.emplace_back(absence.gap.after, out);
    needs.emplace_back(absence.gap.end, out + 1);
    // A gap in the iteration after the malloc lies further on the variable's own axis.
    const Position shift = absence.gap.begin <= variable.begin ? problem.period : 0;
    leaves[At(absence.gap.variable)].push_back(
        {&absence, absence.released + shift, absence.acquired + shift, out, out + 1});
  }
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    std::sort(leaves[v].begin(), leaves[v].end(),
              [](const Leave& a, const Leave& b) { return a.released < b.released; });
    AddResidencies(problem, static_cast<VariableIndex>(v), leaves[v], &plan);
  }
  OrderCopies(outs, needs, &plan);
  return plan;
}

place::Buffer ToBuffer(const Problem& problem, const Residency& residency, Bytes alignment) {
  place::Buffer buffer;
  buffer.size_bytes = problem.variables[At(residency.variable)].size_bytes;
  buffer.alignment = alignment;
  if (residency.end <= problem.period) {
    buffer.lifetime = {residency.begin, residency.end};
  } else {
    buffer.lifetime = {0, problem.period};
    const place::Interval gap{residency.end - problem.period, residency.begin};
    if (gap.lower < gap.upper) buffer.gaps.push_back(gap);
  }
  return buffer;
}

}  // namespace plimsoll::plan

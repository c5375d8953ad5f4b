// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/assemble.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

/// The absences of one variable, on its own axis and in order, with their two commands.
struct Leave {
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

/// A copy and what it is ordered by.
using RankedCopy = std::tuple<Position, Position, CommandIndex>;

std::vector<CommandIndex> Rank(std::vector<RankedCopy> copies) {
  std::sort(copies.begin(), copies.end());
  std::vector<CommandIndex> commands;
  commands.reserve(copies.size());
  for (const RankedCopy& copy : copies) commands.push_back(std::get<2>(copy));
  return commands;
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

Plan Assemble(const Problem& problem, const std::vector<Absence>& absences,
              const std::vector<Bytes>& host_offsets) {
  Plan plan;
  plan.problem = problem;
  plan.commands.reserve(problem.ops.size() + 2 * absences.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    plan.commands.push_back({Queue::kCompute, static_cast<OpIndex>(i), -1, 0, {}});
    plan.queues[0].push_back(static_cast<CommandIndex>(i));
  }
  const auto add_copy = [&](Queue queue, Bytes host_offset) {
    plan.commands.push_back({queue, -1, -1, host_offset, {}});
    return static_cast<CommandIndex>(plan.commands.size()) - 1;
  };
  std::vector<std::vector<Leave>> leaves(problem.variables.size());
  std::vector<RankedCopy> outs;
  std::vector<RankedCopy> ins;
  for (std::size_t k = 0; k < absences.size(); ++k) {
    const Absence& absence = absences[k];
    const Gap& gap = absence.gap;
    const CommandIndex out = absence.saves ? add_copy(Queue::kCopyOut, host_offsets[k]) : -1;
    const CommandIndex in = add_copy(Queue::kCopyIn, host_offsets[k]);
    if (out >= 0) outs.emplace_back(gap.after, 0, out);
    const Position lap = absence.acquired / problem.period * problem.period;
    ins.emplace_back(absence.acquired - lap, gap.end - lap, in);
    // A gap in the iteration after the malloc lies further on the variable's own axis.
    const bool later = gap.begin <= problem.variables[At(gap.variable)].begin;
    const Position shift = later ? problem.period : 0;
    leaves[At(gap.variable)].push_back(
        {absence.released + shift, absence.acquired + shift, out, in});
  }
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    std::sort(leaves[v].begin(), leaves[v].end(),
              [](const Leave& a, const Leave& b) { return a.released < b.released; });
    AddResidencies(problem, static_cast<VariableIndex>(v), leaves[v], &plan);
  }
  plan.queues[1] = Rank(std::move(outs));
  plan.queues[2] = Rank(std::move(ins));
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

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/make_pool_table.h"

#include <algorithm>

#include "plimsoll/place/problem.h"

namespace plimsoll::exec {
namespace {

/// A malloc or free of one iteration of the problem.
struct Call {
  plan::Position position;
  PoolStep::Kind kind;
  plan::VariableIndex variable;
  std::int64_t age;  ///< How many iterations ago the instance was malloc'ed.
};

std::vector<Call> ListCalls(const plan::Problem& problem) {
  std::vector<Call> calls;
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const plan::Variable& variable = problem.variables[v];
    if (variable.persistent()) continue;
    const auto index = static_cast<plan::VariableIndex>(v);
    calls.push_back({variable.begin, PoolStep::Kind::kMalloc, index, 0});
    calls.push_back({variable.end % problem.period, PoolStep::Kind::kFree, index,
                     variable.end / problem.period});
  }
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return a.position < b.position; });
  return calls;
}

}  // namespace

PoolTable MakePoolTable(const plan::Problem& problem, const plan::PlacementProblem& placement,
                        const std::vector<Bytes>& offsets) {
  PoolTable table;
  table.footprint_bytes = place::HighestTop(placement.problem, offsets);
  for (const place::Buffer& buffer : placement.problem.buffers) {
    table.alignment = std::max(table.alignment, buffer.alignment);
  }
  // Where the instance of a given iteration is, which may be negative: before the first one.
  const auto offset_of = [&](plan::VariableIndex index, std::int64_t iteration) {
    const auto v = static_cast<std::size_t>(index);
    const std::int64_t copies = problem.variables[v].persistent() ? 1 : placement.iterations;
    const std::int64_t copy = (iteration % copies + copies) % copies;
    return offsets[placement.first_buffer[v] + static_cast<std::size_t>(copy)];
  };
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const plan::Variable& variable = problem.variables[v];
    const auto index = static_cast<plan::VariableIndex>(v);
    if (variable.persistent()) {
      table.initial.push_back({variable.id, variable.size_bytes, offset_of(index, 0)});
      continue;
    }
    // Instances of earlier iterations that are live when an iteration begins, if only to be freed
    // at once.
    for (std::int64_t age = 1; age * problem.period <= variable.end; ++age) {
      table.initial.push_back({variable.id, variable.size_bytes, offset_of(index, -age)});
    }
  }
  const std::vector<Call> calls = ListCalls(problem);
  for (std::int64_t iteration = 0; iteration < placement.iterations; ++iteration) {
    for (const Call& call : calls) {
      const Bytes size = problem.variables[static_cast<std::size_t>(call.variable)].size_bytes;
      table.steps.push_back({call.kind, size, offset_of(call.variable, iteration - call.age)});
    }
  }
  return table;
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/to_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plimsoll::plan {

PlacementProblem ToPlacement(const Problem& problem, Bytes alignment) {
  PlacementProblem result;
  for (const Variable& variable : problem.variables) {
    result.iterations = std::max(result.iterations, variable.instances);
  }
  const Position cycle = problem.period * result.iterations;
  result.first_buffer.reserve(problem.variables.size());
  for (const Variable& variable : problem.variables) {
    result.first_buffer.push_back(result.problem.buffers.size());
    const std::int32_t copies = variable.persistent() ? 1 : result.iterations;
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      place::Buffer buffer;
      buffer.id =
          copy == 0 ? fmt::format("{}", variable.id) : fmt::format("{}+{}", variable.id, copy);
      buffer.size_bytes = variable.size_bytes;
      buffer.alignment = alignment;
      const Position begin = variable.begin + copy * problem.period;
      const Position end = variable.end + copy * problem.period;
      if (variable.persistent()) {
        buffer.lifetime = {0, cycle};
      } else if (end <= cycle) {
        buffer.lifetime = {begin, end};
      } else {
        buffer.lifetime = {0, cycle};
        const place::Interval gap{end - cycle, begin};
        if (gap.lower < gap.upper) buffer.gaps.push_back(gap);
      }
      result.problem.buffers.push_back(std::move(buffer));
    }
  }
  return result;
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/to_placement.h"

#include <fmt/format.h>

#include <utility>

namespace plimsoll::plan {

PlacementProblem ToPlacement(const Problem& problem, Bytes alignment) {
  PlacementProblem result;
  result.first_buffer.reserve(problem.variables.size());
  for (const Variable& variable : problem.variables) {
    result.first_buffer.push_back(result.problem.buffers.size());
    for (std::int32_t instance = 0; instance < variable.instances; ++instance) {
      place::Buffer buffer;
      buffer.id = instance == 0 ? fmt::format("{}", variable.id)
                                : fmt::format("{}+{}", variable.id, instance);
      buffer.size_bytes = variable.size_bytes;
      buffer.alignment = alignment;
      if (variable.instances > 1) {
        buffer.lifetime = {0, problem.period};
      } else if (variable.end > problem.period) {
        buffer.lifetime = {0, problem.period};
        const place::Interval gap{variable.end - problem.period, variable.begin};
        if (gap.lower < gap.upper) buffer.gaps.push_back(gap);
      } else {
        buffer.lifetime = {variable.begin, variable.end};
      }
      result.problem.buffers.push_back(std::move(buffer));
    }
  }
  return result;
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
//
// Models a framework that allocates every blob once and for all, as Caffe does: each variable has a
// place of its own and nothing is shared, so the footprint is the sum of all sizes, aligned.
//
// Variables with fixed offsets stay where they are; the others are stacked, in the problem's order,
// above the highest fixed top. Leaves out Caffe's in-place layers and its lazy allocation: what is
// never touched is not in the problem.
#include <algorithm>

#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"

namespace plimsoll::place {

Placement PlaceCaffe(const Problem& problem, const PlannerOptions& /*options*/) {
  Placement placement;
  placement.offsets.reserve(problem.buffers.size());
  Bytes top = 0;
  for (const Buffer& buffer : problem.buffers) {
    placement.offsets.push_back(buffer.fixed_offset.value_or(0));
    if (buffer.fixed_offset && buffer.size_bytes > 0) {
      top = std::max(top, *buffer.fixed_offset + buffer.size_bytes);
    }
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed_offset || buffer.size_bytes == 0) continue;
    placement.offsets[i] = AlignUp(top, buffer.alignment);
    top = placement.offsets[i] + buffer.size_bytes;
  }
  placement.footprint_bytes = top;
  placement.lower_bound_bytes = LowerBound(problem);
  return placement;
}

}  // namespace plimsoll::place

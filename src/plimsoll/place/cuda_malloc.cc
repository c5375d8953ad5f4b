// SPDX-License-Identifier: Apache-2.0
//
// Models cudaMalloc and cudaFree called for every variable, with no pool between: the first
// baseline of paper 001 (Zhang et al., "Efficient Memory Management for GPU-based Deep Learning
// Systems", table I). The driver backs addresses by pages that it can take from anywhere, so the
// memory taken is taken to be the peak load itself, the ideal that footprints are compared with;
// and addresses are never short, so each variable has a range of its own.
//
// Leaves out the driver's page granularity (2 MiB, which makes many small variables cost more), its
// own caching, and the time that each call takes, which is why nobody trains like this.
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"

namespace plimsoll::place {

Placement PlaceCudaMalloc(const Problem& problem, const PlannerOptions& /*options*/) {
  Placement placement;
  placement.offsets.reserve(problem.buffers.size());
  Bytes top = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.size_bytes == 0) {
      placement.offsets.push_back(0);
      continue;
    }
    const Bytes offset = AlignUp(top, buffer.alignment);
    placement.offsets.push_back(offset);
    top = offset + buffer.size_bytes;
  }
  placement.footprint_bytes = PeakLoad(problem);
  placement.lower_bound_bytes = LowerBound(problem);
  return placement;
}

}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plimsoll/place/problem.h"

namespace plimsoll::place {

/// One law broken by a placement, in words that name the buffers concerned.
struct Violation {
  std::string message;
};

/// Judges a placement against its problem; shares no code with any planner. Laws: one offset per
/// buffer, not negative; offsets are aligned; fixed buffers are where they must be; buffers that
/// are live at the same time do not overlap; and, if `capacity` is not negative, no top is above
/// it.
///
/// Returns the violations found, at most `most`; none means that the placement is valid.
/// O(n log n) in buffers and gaps: a sweep over time with the live buffers sorted by offset.
[[nodiscard]] std::vector<Violation> FindViolations(const Problem& problem,
                                                    const std::vector<Bytes>& offsets,
                                                    Bytes capacity = -1, std::size_t most = 10);

}  // namespace plimsoll::place

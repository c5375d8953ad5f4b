// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/chain/schedule.h"

namespace plimsoll::chain {

/// One law broken by a schedule, in words that name the commands concerned.
struct Violation {
  std::string message;
};

/// Judges a timed schedule against the chain itself; shares no code with the simulator, the model
/// or any planner. Laws: one span per op, as long as its stage says and not before time 0; the ops
/// run in their order, one at a time, and forward ops again only before their backward op
/// (order.h); each transfer is as long as the link takes and no two share the link; an activation
/// leaves at most once, after it is made, and comes back once, after it has left and has been read
/// by forward, before it is read or made again; and at every instant what is on the device is
/// within the limit.
///
/// Returns the violations found, at most `most`; none means that the schedule is valid.
/// O(n log n): a sweep over time.
[[nodiscard]] std::vector<Violation> FindViolations(const Chain& chain,
                                                    std::int64_t bandwidth_bytes_per_s,
                                                    const Schedule& schedule, Bytes limit_bytes,
                                                    std::size_t most = 10);

}  // namespace plimsoll::chain

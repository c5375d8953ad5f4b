// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/bytes.h"

namespace plimsoll::exec {

/// Host memory that a backend did not have, on a GPU because it could not be pinned, and what came
/// of it: a smaller slab, and plans that make do with it.
struct HostShortage {
  Bytes asked_bytes = 0;            ///< At once.
  Bytes got_bytes = 0;              ///< Instead.
  std::int64_t replans = 0;         ///< Plans that were made again for less.
  Nanoseconds lost_plan_ns = 0;     ///< An iteration by the plan that had no room; 0 if none had.
  Nanoseconds present_plan_ns = 0;  ///< By the one in its place; 0 while service is on demand.
};

/// What was asked for, what was got and what that costs, in a line.
std::string Describe(const HostShortage& shortage);

}  // namespace plimsoll::exec

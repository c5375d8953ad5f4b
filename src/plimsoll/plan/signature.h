// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// Returns a number that tells problems apart by all that a plan depends on: whether the iteration
/// repeats and how many positions it has; of every variable the size, the lifetime, the kind; of
/// every op the name, the position, what it reads and what it writes.
///
/// Neither durations count nor the numbers by which the trace calls its variables, so two
/// recordings of one program have one signature. The same on every platform. Linear in the problem.
std::uint64_t Signature(const Problem& problem);

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// Returns the problem with every variable's life cut down to its uses: from right before the first
/// op that touches it to right behind the last one.
///
///     recorded   malloc v ....... F0 writes v ... B0 reads v ....... U ....... free v
///     trimmed             malloc v F0 writes v ... B0 reads v free v
///
/// Programs hold on to much that they no longer need: a framework frees gradients at the beginning
/// of the next iteration, Python a local variable when its function returns. Nobody can tell when
/// such memory serves others meanwhile, as contents are read and written by ops alone. So this is
/// the problem that plans are made of. A program's own malloc and free are then mere bookkeeping.
///
/// Ops, operands and variables keep their order and their indices; positions are new. No two
/// variables are there at a time that were not when recorded. What stays as it is: persistent
/// variables; workspaces, which no op names; a malloc whose variable is touched first in a later
/// iteration; and of an iteration that runs once, what is there at its beginning and at its end.
/// O(n log n) in variables and operands.
Problem TrimLives(const Problem& problem);

/// Returns what is planned in the place of a recorded problem: its lives trimmed, then, if
/// variables still outlive their iteration, unrolled (gaps.h).
Problem ProblemToPlan(const Problem& recorded);

}  // namespace plimsoll::plan

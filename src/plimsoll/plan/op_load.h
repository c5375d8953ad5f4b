// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// The bytes that somebody needs at the moment when an op begins, as sizes were asked for.
///
///     accesses   ──●────────│────●──   held: the content is needed later
///                  ●────────●────●──   held, and touched: it must be on the device now
///                           ●────●──   new: this op is the first to have it
struct OpLoad {
  Bytes held_bytes = 0;     ///< Content from before the op that it, or one behind it, needs.
  Bytes touched_bytes = 0;  ///< Of that, what the op itself touches.
  Bytes clean_bytes = 0;  ///< Of that, what it does not touch, and what the host may have already:
                          ///< persistent variables that nobody writes; in an iteration that runs
                          ///< once, all persistent ones.
  Bytes new_bytes = 0;    ///< The most, at one time, of what it is the first to touch. Scratch that
                          ///< is freed before the next piece is malloc'ed shares its bytes.
  Bytes idle_bytes = 0;   ///< Of what is held, persistent variables that no op at all names. They
                          ///< stay: a library's cached workspace is used without being named.

  /// No plan that lets the op run can do with less.
  Bytes needed_bytes() const { return touched_bytes + new_bytes + idle_bytes; }
};

/// Returns the load around every op, in program order. O(n log n) in variables and operands.
/// REQUIRES: every variable of the problem has one instance (Unroll()).
std::vector<OpLoad> LoadOps(const Problem& problem);

/// Returns the op that needs the most bytes by itself, the first of them; -1 if there is none.
OpIndex FindLargestOp(const std::vector<OpLoad>& loads);

}  // namespace plimsoll::plan

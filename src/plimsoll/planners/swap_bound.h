// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::planners {

/// Returns a time that no iteration of a plan can beat which swaps and does nothing else, at this
/// limit, on this machine. At least the sum of the ops. Whether any plan meets the limit is another
/// question (plan::LoadOps()).
///
/// Proof. Take any op, and the moment at which it begins, once per iteration. Whatever has content
/// from before and is needed by this op or later (held, see plan/op_load.h) is at that moment on
/// the device or on the host, and what the op is the first to touch is on the device too. Ranges of
/// the arena that are in use at one moment are disjoint. So of what is held, at least
///
///     in = held + new - limit
///
/// bytes are on the host alone, and no copy in has begun for them.
///
///   - They come in between this moment and the same one of the next iteration: a variable that is
///     not persistent lives for one period at most and is needed before it dies; a persistent one
///     is touched once per iteration or more, and not by this op.
///   - They went out after the same moment of the iteration before: what is not persistent was
///     first touched since then, on the device; what is persistent and written was written since
///     then, on the device. Only of what nobody writes (clean) the host may have the content from
///     long ago. So at least out = in - clean bytes went out.
///
/// One period thus has time for `in` bytes in and `out` bytes out. Let the link be busy in both
/// directions for a time b, and with one of them for the rest. The total is least where b is as
/// long as it can be, or 0: it is linear in b. Neither latencies nor alignment are counted.
///
/// An iteration that runs once begins with persistent variables wherever the plan likes, so all of
/// these are clean; all else is as above, within the one iteration.
///
/// O(n log n) in variables and operands.
/// REQUIRES: every variable of the problem has one instance (plan::Unroll()).
Nanoseconds SwapBound(const plan::Problem& problem, const plan::Machine& machine,
                      Bytes limit_bytes);

/// Returns the least time in which the link moves `in` and `out` bytes. The second half of the
/// proof.
double LinkSeconds(const plan::Machine& machine, Bytes in, Bytes out);

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/check_report.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Judges kReplay: that running the rewritten problem gives the recorded numbers, bit for bit.
///
/// Contents are told apart as (recorded variable, version), where a version is the number of writes
/// since the malloc by recorded ops in the recorded iteration; of a persistent variable, since the
/// beginning of the iteration. The rewritten iteration is run on those:
///
///     recorded   op 0 writes v     op 1 reads v, writes v     op 2 reads v
///                found v.0         found v.1                  found v.2
///     rewritten  op 0 writes v     op 1 reads v, writes v     ...
///                ... replay of op 0 writes v', a new variable: finds v.0, leaves v.1
///                ... replay of op 1 reads and writes v':       finds v.1, leaves v.2
///                ... op 2 reads v':                            finds v.2, as recorded
///
/// - What is not a replay are the recorded ops, each once and in order, with the same operands.
/// - Every op, replay or not, finds in each operand what was found when it was recorded, also in
///   what it writes: it may leave parts of it as they were. It leaves the version after.
/// - A replay comes after its op in the same iteration, may run again by its traits, and touches
///   nothing of another iteration.
/// - State that an op updates on the side counts as written, whether it is named among what the op
///   writes or not. A replay gets another variable in its place, which comes and goes within the
///   iteration, whatever it holds; unless that is what was recorded, what the replay leaves there
///   is nobody's. State that the op also reads as an operand like any other is no state.
/// - A variable that has just come to be holds version 0 of its source, which is undefined, and
///   which only those may find who found it when recorded. If its source is persistent, version 0
///   is not undefined, and what it holds is nobody's.
/// - What is persistent or lives around the end is so in both problems, one to one, and holds at
///   the end of the iteration what it held then when recorded.
/// - Every op has its scratch; see CheckReplayScratch().
///
/// O(n) in ops, operands and variables.
/// REQUIRES: the plan is in shape and has a rewriting.
void CheckReplays(const Plan& plan, CheckReport* report);

/// Judges the part of kReplay that is about workspaces, which no op names: an op, replay or not,
/// has a workspace in place of each that was recorded of it, and where two of what an op has in
/// hand, workspaces or operands, shared no bytes because both were there at a time, both are there
/// at a time again. O(n log n). REQUIRES: as above, and every op is as its source is.
void CheckReplayScratch(const Plan& plan, CheckReport* report);

/// Names an op as what it is: "op 12 (relu_)", or "replay 57 of op 12 (relu_)". REQUIRES: as above.
std::string DescribeSource(const Plan& plan, OpIndex op, const CheckReport& report);

}  // namespace plimsoll::plan

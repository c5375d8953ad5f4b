// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// What a plan must obey to be safe at any speed.
enum class PlanLaw : std::uint8_t {
  kShape,        ///< Every command is in its queue once, ops in program order, indices in range.
  kBoundary,     ///< The end of the iteration is the state that its beginning assumes; what is
                 ///< away around the cycle is saved once at least.
  kLimit,        ///< Everything lies within the limits; the footprints are the true maxima.
  kReplay,       ///< Every op of a rewritten problem finds the contents that were recorded.
  kDeadlock,     ///< Queue order and edges, over all iterations, have no cycle.
  kContent,      ///< Every op finds each operand in one residency, in the right version; what is
                 ///< dropped is on the host as it is.
  kSaved,        ///< A copy in reads what the last copy out before it has saved, once it is saved.
  kArrival,      ///< Nobody touches a residency before the copy that fills it has ended.
  kCopiedWrite,  ///< Nobody writes a variable while a copy out may be reading it.
  kAddress,      ///< Residencies that share bytes follow each other, in every order allowed.
  kHostAddress,  ///< So do host copies that share bytes of the slab, each from its copy out to the
                 ///< last of its copies in.
};
std::string_view Name(PlanLaw law);

struct PlanViolation {
  PlanLaw law = PlanLaw::kShape;
  std::string message;  ///< Names the commands concerned: "copy-in 12 of variable 57 and op 40".
};

/// Judges a plan by the laws above, without any of the code that makes plans. Returns what it finds
/// wrong, at most `most` violations; none if the plan is safe in every order of execution that its
/// queues and edges allow, however long each command takes.
///
/// Iterations of commands. Residency r stands for one stay in each iteration; stay i begins in
/// iteration i. Its copy in runs in iteration i; an op at `position + n * period` of the
/// residency's axis in iteration i + n; its copy out in the iteration of the last op that touches
/// the stay. What belongs to iterations before the first is over when the first begins.
///
/// A copy in brings back what the last stay before it that was saved, of the same variable, has
/// saved. The stays between were filled from that host copy and dropped: no op may write them.
/// Their last touch is their last op. The host copy is there until all its copies in are over.
///
/// An op that writes a variable may leave parts of it as they were: it needs the version before.
/// A workspace, which no op names, is touched by the op that follows its malloc, even if it is free
/// by then; what no op touches at all holds nothing. A plan that is not cyclic runs once: what is
/// there at position 0 is there from the beginning.
///
/// A plan with a rewriting is judged as what it is, its own problem; and kReplay proves that
/// running this problem gives the recorded numbers, bit for bit. See check_replay.h.
///
/// O(n log n) in commands, operands and residencies. Where the shape is wrong or the queues
/// deadlock, laws that cannot be told any more are not judged.
[[nodiscard]] std::vector<PlanViolation> CheckPlan(const Plan& plan, std::size_t most = 10);

}  // namespace plimsoll::plan

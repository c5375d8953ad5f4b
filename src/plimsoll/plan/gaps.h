// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// One use of a variable by an op. `time` is a position on the variable's own axis: beyond the
/// period if the op runs in a later iteration than the malloc.
struct Access {
  OpIndex op = 0;
  Position time = 0;
  bool reads = false;
  bool writes = false;
};

/// Returns the accesses of every variable in the order of time. A workspace, which no op names, is
/// accessed by the op that follows its malloc.
std::vector<std::vector<Access>> ListAccesses(const Problem& problem);

/// The stretch between two consecutive accesses of a variable: the unit of decision. A persistent
/// variable has one more, from its last access around the end of the iteration to its first.
///
///     accesses   ──●─────────●───────────────────●──
///     gap                    ├───────────────────┤    after ── before, [begin, end)
struct Gap {
  VariableIndex variable = 0;
  OpIndex after = 0;   ///< The last op that touches the variable before the gap.
  OpIndex before = 0;  ///< The next one that does.
  Position begin = 0;  ///< The position right behind `after`, below the period + 1.
  Position end = 0;    ///< The position of `before`; from the period on if in the next iteration.

  friend bool operator==(const Gap&, const Gap&) = default;
};

/// Returns all gaps with room for at least one other op, of variables of at least `least_bytes`, in
/// the order of variables and time.
std::vector<Gap> ListGaps(const Problem& problem, Bytes least_bytes);

/// The same and, in iterations that are not very long, from a sixteenth of that size on, those gaps
/// of persistent variables that take up nearly all of an iteration. Moments of optimizers have
/// them: what takes part in a step at its end alone can leave and come back when the link has
/// nothing else to do.
std::vector<Gap> ListGapsAndMoments(const Problem& problem, Bytes least_bytes);

/// Whether a variable is persistent, and a few ops in a row are all that touch it, from `first` to
/// `last`: an optimizer's moment, as a rule.
bool IsMoment(const Problem& problem, VariableIndex variable, OpIndex first, OpIndex last);

/// Returns for every gap the op behind which its variable can be copied out: the last one to write
/// it before the gap. Readers that follow may read on meanwhile. -1 if it has been as it is since
/// the iteration before; gap.after if it comes back in that iteration, or begins its life there.
///
///     ──W──────────R───────R──┬────────────────R──
///       └[copy out]           └ the gap begins; its memory is free at once
std::vector<OpIndex> FindLastWriters(const Problem& problem, const std::vector<Gap>& gaps);

/// Returns the problem of as many iterations as it takes for every variable to have at most one
/// live instance, as one longer iteration. The problem itself if that is one.
Problem Unroll(const Problem& problem);

}  // namespace plimsoll::plan

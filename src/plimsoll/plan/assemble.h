// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/place/problem.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/script.h"

namespace plimsoll::plan {

/// A swapped gap, with the positions between which its variable has no place on the device:
///
///     ──●████████░░░░░░░░░░░░░░░░░░████████●──      gap.begin <= released <= acquired <= gap.end
///       after   │ released         │ acquired    before
struct Absence {
  Gap gap;
  Position released = 0;  ///< From here on, others may have its bytes, once they are copied out.
  Position acquired = 0;  ///< From here on, it has bytes again, to be copied into.
  /// Whether it is copied out. False if the copy that the absence before it has left on the host,
  /// and that it came back from, is still what it holds.
  bool saves = true;
  /// The op behind which it is copied out: the last to write it; -1: the last of the iteration
  /// before (FindLastWriters()).
  OpIndex written = Exit::kAtLastUse;
};

/// Returns a plan with all residencies, commands and queues of the absences; without addresses and
/// wait edges. Copies out are queued in the order of the ops that they follow, copies in in the
/// order of the positions at which they may begin. Host offsets are those of `host_offsets`, one
/// for each absence. REQUIRES: absences of one variable are disjoint.
Plan Assemble(const Problem& problem, const std::vector<Absence>& absences,
              const std::vector<Bytes>& host_offsets);

/// Returns the residency as a rectangle of the placement problem of one iteration.
place::Buffer ToBuffer(const Problem& problem, const Residency& residency, Bytes alignment);

}  // namespace plimsoll::plan

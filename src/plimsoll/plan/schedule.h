// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// What planners decide: which gaps their variables spend on the host.
struct Decision {
  std::vector<Gap> swapped;
};

struct ScheduleOptions {
  Bytes limit_bytes = 0;  ///< Of the footprint.
  Bytes host_limit_bytes = kMaxBytes;
  Bytes alignment = kDefaultAlignment;
  /// For the placement of residencies.
  double place_seconds = 1;
  std::uint64_t seed = 1;
};

/// "No": the decision does not fit under the limit.
struct Misfit {
  /// The load at the worst position with everything that was decided out of the way, or, if that is
  /// within the limit, the smallest footprint that was found.
  Bytes needed_bytes = 0;
  Position position = 0;  ///< Where it is needed.
  bool host = false;      ///< Whether it is the host slab that is too small.
};

/// Returns the position up to which a gap's variable may be away, exclusive: right behind the op
/// that runs before the one that needs it back, not where that one runs. The scratch of the op that
/// needs it is malloc'ed, and may even be freed, between the two, but it is used while the op runs,
/// so that the variable must be back before. The result is at least gap.begin and at most gap.end;
/// beyond the period if in the next iteration.
///
///     ●─────────────────────────●───[scratch]──●
///     after                     │           before      away for [gap.begin, AbsenceEnd)
Position AbsenceEnd(const Problem& problem, const Gap& gap);

/// Returns the load at every position, in sizes as asked for, when every gap of the decision is out
/// of memory for all of [gap.begin, AbsenceEnd()): what a decision can reach at best.
std::vector<Bytes> LeastLoad(const Problem& problem, const Decision& decision);

/// Makes a plan of a decision:
///   - copies out follow each other in the order of the ops that release their variables, copies in
///     in the order of the ops that need them, as late as they may be to arrive in time;
///   - where the load would exceed the limit, memory is taken back from copies out before they are
///     predicted to have ended (the op that needs it waits for them), and copies in begin later;
///   - residencies are placed by `tight`; where fragmentation pushes the footprint over the limit,
///     the load is held to less, and all is done again;
///   - wait edges are drawn wherever one residency follows another at the same address, and to and
///     from each copy's ops. Each command waits for at most one command of each queue: the last.
///
/// REQUIRES: every variable of the problem has one instance (Unroll()); gaps are of the problem and
/// disjoint.
std::variant<Plan, Misfit> MakePlan(const Problem& problem, const Decision& decision,
                                    const Machine& machine, const ScheduleOptions& options);

}  // namespace plimsoll::plan

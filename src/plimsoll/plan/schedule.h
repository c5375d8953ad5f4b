// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/rehearsal.h"

namespace plimsoll::plan {

/// What planners decide: which gaps their variables spend on the host.
struct Decision {
  std::vector<Gap> swapped;
};

struct ScheduleOptions {
  Bytes limit_bytes = 0;  ///< Of the footprint.
  /// Of the load; nothing for the same. Fragmentation takes the difference.
  std::optional<Bytes> load_limit_bytes{};
  Bytes host_limit_bytes = kMaxBytes;
  Bytes alignment = kDefaultAlignment;
  double prefetch = kPrefetchJustInTime;  ///< rehearsal.h
  /// Whether residencies are placed as low as can be, not only as low as the limit asks for.
  bool minimise = false;
  /// How many nodes the search for each placement of residencies may visit. A number, not a time:
  /// equal questions have equal plans.
  std::int64_t place_nodes = 20'000;
  std::uint64_t seed = 1;
};

/// "No": the decision does not fit under the limit.
struct Misfit {
  /// The load at the worst position with everything that was decided out of the way, or, if that is
  /// within the limit, the footprint that was found.
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

/// Returns the load at every position, in sizes rounded up to the alignment, when every gap of the
/// decision is out of memory for all of [gap.begin, AbsenceEnd()): what a decision can reach at
/// best.
std::vector<Bytes> LeastLoad(const Problem& problem, const Decision& decision, Bytes alignment = 1);

/// Makes a plan of a decision:
///   - a rehearsal says when memory changes hands (rehearsal.h), within the limit; gaps that are
///     too short to be of use are kept;
///   - a variable that comes back and leaves again unchanged is copied out once;
///   - residencies are placed by `tight`; where fragmentation pushes the footprint over the limit,
///     the answer is no: the caller may ask again with a lower limit of the load;
///   - wait edges are drawn wherever one residency follows another at the same address, and to and
///     from each copy's ops. Each command waits for at most one command of each queue: the last.
///
/// REQUIRES: every variable of the problem has one instance (Unroll()); gaps are of the problem and
/// disjoint.
std::variant<Plan, Misfit> MakePlan(const Problem& problem, const Decision& decision,
                                    const Machine& machine, const ScheduleOptions& options);

/// Predicts how long an iteration of MakePlan()'s plan would take, without making it: nothing is
/// placed. Nothing if the load cannot be held within its limit.
std::optional<Nanoseconds> PredictIteration(const Problem& problem, const Decision& decision,
                                            const Machine& machine, const ScheduleOptions& options);

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// Copies of an iteration on a link of two directions, as Capuchin reckons with them: each
/// direction one copy at a time, out as soon as a variable is idle, back as late as will do. Ops
/// never wait.
///
///     ops   ●───────────────────────────────────●
///     out    ├─ of another ─┼─ out ─┤                    gone from here
///     in                              ├─ in ─┼─ other ─┤  back by there
class SwapLane {
 public:
  explicit SwapLane(const Question& question);

  /// Time between both uses less the time of both copies, with the link for itself.
  Nanoseconds FreeTime(const plan::Gap& gap) const;

  /// How much later than needed the latest is back if this gap is swapped too: what ops wait for.
  Nanoseconds LatenessWith(const plan::Gap& gap) const;
  Nanoseconds lateness() const { return lateness_; }

  void Add(const plan::Gap& gap);

  /// Takes away from the load, one number an op, what is gone while the op runs.
  void Relieve(std::vector<Bytes>* load) const;

 private:
  struct Copy {
    Nanoseconds idle_ns = 0;    ///< From when on.
    Nanoseconds needed_ns = 0;  ///< When it has to be back.
    Nanoseconds out_ns = 0;
    Nanoseconds in_ns = 0;
    Bytes bytes = 0;
    Nanoseconds gone_ns = 0;
    Nanoseconds back_ns = 0;  ///< From when on the memory is taken again.
  };
  Copy MakeCopy(const plan::Gap& gap) const;
  static void Insert(const Copy& copy, std::vector<Copy>* copies);
  static Nanoseconds Settle(std::vector<Copy>* copies);

  const Question& question_;
  std::vector<Nanoseconds> starts_;  // Of ops.
  std::vector<Copy> copies_;         // In the order of idle_ns.
  Nanoseconds lateness_ = 0;
};

}  // namespace plimsoll::planners

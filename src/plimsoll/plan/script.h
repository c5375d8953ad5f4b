// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/machine.h"

namespace plimsoll::plan {

/// When variables that were swapped out come back, by how much longer than predicted their copies
/// are expected to take: 1 is just in time, infinity as early as memory allows.
inline constexpr double kPrefetchJustInTime = 1;
inline constexpr double kPrefetchEarly = std::numeric_limits<double>::infinity();

/// An iteration in the few numbers that its timing depends on. Slot i is the time from the end of
/// op i - 1 to the end of op i.
using Slot = std::int32_t;

/// A variable that leaves the device behind one op, and is back before another.
///
///     ops   ──after──┬──────────────┬──before──      away for whole slots,
///                    └─ may be away ┘                at most from after + 1 to before - 1
struct Exit {
  Slot after = 0;
  Slot before = 0;
  bool around = false;  ///< Whether `before` is of the next iteration.
  bool saves = true;    ///< Whether it is copied out; else the host still has what it holds.
  Bytes size_bytes = 0;
  Bytes held_bytes = 0;  ///< What it takes of the load.
  /// The op behind which it can be copied out, which may be long before `after`; -1: the last op of
  /// the iteration before.
  Slot written = kAtLastUse;

  static constexpr Slot kAtLastUse = -2;
  Slot copied_behind() const { return written == kAtLastUse ? after : written; }
};

struct Script {
  bool cyclic = true;  ///< Whether the end of the iteration is followed by its beginning.
  std::vector<Nanoseconds> durations_ns;  ///< Per op.
  /// Per slot: the load with every exit as long as it can be. What follows the last op belongs to
  /// the first slot.
  std::vector<Bytes> needs_bytes;
  std::vector<Exit> exits;  ///< In the order in which they are copied out: by `after`.
};

/// How an exit went.
struct Outcome {
  bool cancelled = false;  ///< It was needed again before the copy out had ended.
  bool timed = false;      ///< Whether the slots are known.
  Slot released = 0;       ///< From this slot on, others had its bytes.
  Slot acquired = 0;       ///< From this slot on, it had bytes again.
};

/// Runs the iteration with the durations that ops and copies are predicted to take, as rehearsal.h
/// describes. Says how each exit went, if asked. Returns how long the iteration took.
/// REQUIRES: no slot needs more than the limit. O((ops + exits) log ops).
Nanoseconds Perform(const Script& script, const Machine& machine, Bytes load_limit_bytes,
                    double prefetch, std::vector<Outcome>* outcomes = nullptr);

}  // namespace plimsoll::plan

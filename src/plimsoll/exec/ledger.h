// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "plimsoll/base/bytes.h"

namespace plimsoll::exec {

/// Keeps account of which bytes of an arena are in use, and by whom, and aborts, with both sides in
/// the message, as soon as one use passes the limit or overlaps another: the promise that the limit
/// holds at every instant, as a check. It is told of every event by whoever gives rooms away, and
/// believes none of them: a second account, kept apart from the one that decides.
///
///     0                                     limit
///     ├───────┬──────────┬────────┬───────────┤
///     │ 17    │          │ 4      │           │     Enter(offset, size, owner), Leave(offset,
///     owner) └───────┴──────────┴────────┴───────────┘
///
/// A ledger that is switched off costs one branch. O(log n) otherwise. Thread-safe.
class Ledger {
 public:
  Ledger(Bytes limit_bytes, bool enabled) : limit_bytes_(limit_bytes), enabled_(enabled) {}

  /// Says that a range is in use from now on. Empty ranges are not kept.
  void Enter(Bytes offset, Bytes size_bytes, std::int64_t owner);
  /// Says that the range that this owner entered at `offset` is free.
  void Leave(Bytes offset, Bytes size_bytes, std::int64_t owner);

  bool enabled() const { return enabled_; }
  Bytes limit_bytes() const { return limit_bytes_; }
  /// These are 0 in a ledger that is switched off.
  Bytes used_bytes() const;
  Bytes peak_top_bytes() const;  ///< The highest end of any range so far.
  std::int64_t ranges() const;
  std::int64_t events() const;  ///< How many calls were checked.

 private:
  struct Range {
    Bytes size_bytes = 0;
    std::int64_t owner = 0;
  };

  const Bytes limit_bytes_;
  const bool enabled_;
  mutable std::mutex mutex_;  // Guards what follows.
  std::map<Bytes, Range> ranges_;
  Bytes used_bytes_ = 0;
  Bytes peak_top_bytes_ = 0;
  std::int64_t events_ = 0;
};

}  // namespace plimsoll::exec

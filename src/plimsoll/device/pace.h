// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "plimsoll/base/bytes.h"

namespace plimsoll::device {

/// The schedule of a link of limited speed: when each byte of each copy is there. Copies that could
/// begin before the last one has ended begin when the last one was scheduled to end, not when it
/// was seen to end, so that sleeping a little too long each time does not add up.
///
///     ready ──┐
///             ├─ latency ─┬───────── size / speed ─────────┐
///     last end┘         start                             end
class Pace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A speed of 0 has no limit; with a latency of 0 as well, there is nothing to pace.
  Pace(double bytes_per_s, Nanoseconds latency_ns)
      : bytes_per_s_(std::max(bytes_per_s, 0.0)), latency_(std::max<Nanoseconds>(latency_ns, 0)) {}

  bool limited() const { return bytes_per_s_ > 0 || latency_.count() > 0; }

  /// Schedules a copy that could begin at `ready`.
  void Begin(TimePoint ready, Bytes size_bytes) {
    start_ = std::max(ready, end_) + latency_;
    end_ = When(size_bytes);
  }

  /// When the first `done_bytes` of the copy are there. REQUIRES: Begin() was called.
  TimePoint When(Bytes done_bytes) const {
    if (bytes_per_s_ <= 0) return start_;
    const std::chrono::duration<double> needed(static_cast<double>(done_bytes) / bytes_per_s_);
    return start_ + std::chrono::duration_cast<std::chrono::nanoseconds>(needed);
  }

 private:
  double bytes_per_s_;
  std::chrono::nanoseconds latency_;
  TimePoint start_{};
  TimePoint end_{};
};

}  // namespace plimsoll::device

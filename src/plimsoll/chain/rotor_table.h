// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/chain/order.h"

namespace plimsoll::chain {

/// The dynamic program of "Optimal checkpointing for heterogeneous chains" (Herrmann, Beaumont,
/// Eyraud-Dubois, Hermann, Joly, Shilova 2019), in memory cut into slots. C(s, t, m) is the least
/// time in which stages s .. t run forward and backward: from x_s, which is there and stays, with
/// m slots for all else, gradients included. Either F_s keeps everything and its B_s comes last,
///
///     C(s, t, m) = F_s + C(s+1, t, m - |x_{s+1}|) + B_s
///
/// or everything from F_s on is done anew for the stages below some r, whose input is kept:
///
///     C(s, t, m) = F_s + .. + F_{r-1} + C(r, t, m - |output r|) + C(s, r-1, m)
///
/// each only if the ops that it runs fit into m. Optimal among schedules in which what is kept
/// stays until its backward op has run. O(n^3 slots) time, O(n^2 slots) memory.
class RotorTable {
 public:
  /// `slot_bytes` for each of `slots` slots. Sizes are rounded to the nearest number of slots, so
  /// that they add up well but may come out too small: the caller looks at real bytes in the end.
  /// With slots of one byte nothing is rounded.
  RotorTable(const Chain& chain, Bytes slot_bytes, std::int64_t slots);

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// C(first, last, slots) in nanoseconds; kNever if it cannot be done.
  double Time(std::size_t first, std::size_t last, std::int64_t slots) const {
    return slots < 0 ? kNever : Row(first, last)[std::min(slots, slots_)];
  }
  std::int64_t slots() const { return slots_; }
  Bytes slot_bytes() const { return slot_bytes_; }

  /// Appends the ops of that solution. REQUIRES: Time() is not kNever.
  void Append(std::size_t first, std::size_t last, std::int64_t slots, Order* order) const;

 private:
  const double* Row(std::size_t first, std::size_t last) const {
    return times_.data() + (first * n_ + last) * static_cast<std::size_t>(slots_ + 1);
  }
  std::int64_t ToSlots(Bytes bytes) const;
  /// What the gradient that stages up to `last` are given takes while they run forward.
  Bytes GivenBytes(std::size_t last) const;
  /// What F_first, keeping everything, and B_first need besides x_first.
  std::int64_t NeedOfStage(std::size_t first, std::size_t last) const;
  double StageTime(std::size_t stage) const;
  void Fill(std::size_t first, std::size_t last);

  const Chain& chain_;
  const std::size_t n_;
  const Bytes slot_bytes_;
  const std::int64_t slots_;
  std::vector<std::int64_t> kept_;    // |x_i| in slots.
  std::vector<std::int64_t> output_;  // Of its output alone.
  std::vector<double> times_;         // By first, last and slots.
};

}  // namespace plimsoll::chain

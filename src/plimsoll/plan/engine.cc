// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/engine.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::plan {

/// How much is done in a nanosecond: bytes of a copy that is moving them, time of an op.
double Engine::Rate(std::size_t q) const {
  if (q == 0) {
    return 1 / ((IsMoving(1) ? machine_.slowdown_by_out : 1) *
                (IsMoving(2) ? machine_.slowdown_by_in : 1));
  }
  if (q == 1)
    return (IsMoving(2) ? machine_.both_out_bytes_per_s : machine_.out_bytes_per_s) * 1e-9;
  return (IsMoving(1) ? machine_.both_in_bytes_per_s : machine_.in_bytes_per_s) * 1e-9;
}

bool Engine::Advance() {
  for (Head& head : heads_) head.ended = false;
  if (!heads_[0].running && !heads_[1].running && !heads_[2].running) return false;
  while (!Step()) {
  }
  return true;
}

/// Goes to the next moment at which something ends or a latency is over; true if something ended.
bool Engine::Step() {
  Nanoseconds next = std::numeric_limits<Nanoseconds>::max();
  std::array<double, kQueues> rates{};
  for (std::size_t q = 0; q < heads_.size(); ++q) {
    if (!heads_[q].running) continue;
    if (!IsMoving(q)) {
      next = std::min(next, std::max(heads_[q].fixed_end, now_));
      continue;
    }
    rates[q] = Rate(q);
    const double wait = std::ceil(heads_[q].bytes_left / rates[q]);
    next = std::min(next, now_ + std::max<Nanoseconds>(1, std::llround(wait)));
  }
  const auto passed = static_cast<double>(next - now_);
  now_ = next;
  bool ended = false;
  for (std::size_t q = 0; q < heads_.size(); ++q) {
    Head& head = heads_[q];
    if (!head.running) continue;
    head.bytes_left -= passed * rates[q];
    // What moves in a thousandth of a nanosecond is a rounding error of the rates.
    if (head.fixed_end > now_ || head.bytes_left > 1e-3 * rates[q]) continue;
    head.running = false;
    head.ended = ended = true;
  }
  return ended;
}

}  // namespace plimsoll::plan

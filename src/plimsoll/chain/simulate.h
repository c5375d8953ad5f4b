// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/chain/schedule.h"

namespace plimsoll::chain {

/// Plays a decision transfer by transfer, without waiting (proposition 1), under assumptions A to E
/// of paper 002: gradients stay, one transfer at a time, the link at full speed, transfers and ops
/// overlap freely, and an activation takes all its room until the end of its way out and from the
/// beginning of its way in.
///
///     link   │ out x_0 │ out x_1   │      │ in x_1    │ in x_0 │
///     device │ F_0 │ F_1 │ . . . F_2 │ B_2 │ . . . B_1 │ B_0   │
///                        ▲           ▲     ▲
///             waits for memory       │     waits for x_1
///                                    room for x_1 until B_1: its way in may begin
///
/// An op starts when the one before has ended, its inputs are there and everything fits. A transfer
/// out starts when the link is free and its activation is made. A transfer in starts when the link
/// is free and its activation fits beside every op that still runs before the one that reads it:
/// starting it sooner would lock the chain up, for nothing that comes in leaves before it is used.
/// Ops that run again (order.h) wait for memory and for their inputs like any others.
/// Where all transfers out precede all transfers in, no schedule of the same order ends earlier.
///
/// The state is small, so that searches copy it: see Mark. Thread-compatible.
class Simulator {
 public:
  /// `model` must outlive the simulator.
  Simulator(const Model& model, Bytes limit_bytes);

  /// Returns when the iteration ends, or nothing if the decision cannot be played: it locks up, or
  /// a transfer comes at a time when it makes no sense. O(n), a little more where transfers in are
  /// begun long before their use.
  [[nodiscard]] std::optional<Nanoseconds> Makespan(const Decision& decision);

  /// As Makespan, and returns when each command starts and ends.
  [[nodiscard]] std::optional<Schedule> Play(const Decision& decision);

  // The same step by step, for searches that do not know yet what will leave. Each returns false if
  // it is impossible, and leaves the state undefined then.
  void Reset();
  bool Step(Transfer transfer);
  /// Runs the ops that are left. The iteration then ends at compute_end_ns().
  bool Finish() { return RunThrough(op_count_ - 1); }

  /// A point to return to while stepping.
  struct Mark {
    std::size_t op = 0;
    Nanoseconds compute_end_ns = 0;
    Nanoseconds link_free_ns = 0;
    Bytes away_bytes = 0;
  };
  Mark mark() const { return mark_; }
  /// Returns to an earlier point. The caller puts back every activation that has moved since.
  void Return(const Mark& mark) { mark_ = mark; }
  /// Where an activation is. A waiting one is on the device and will leave: B_i waits for it.
  enum class Place : std::uint8_t { kHere, kWaiting, kLeaving, kAway, kComing };
  void SetPlace(std::size_t activation, Place place) { place_[activation] = place; }

  Nanoseconds compute_end_ns() const { return mark_.compute_end_ns; }
  Nanoseconds link_free_ns() const { return mark_.link_free_ns; }

 private:
  /// Resets, and lets everything wait that the decision offloads.
  void Prepare(const Decision& decision);
  bool Offload(std::size_t i);
  bool Prefetch(std::size_t i);
  /// Returns the last op before which x_i must not come in, or -1; or nothing if not even the op
  /// that reads x_i would fit. Looks no further back than the op that may still be running.
  std::optional<std::ptrdiff_t> LastOpWithoutRoom(std::size_t i) const;
  bool CanStart(std::size_t op) const;
  void RunOne();
  /// Runs every op that can start before that moment.
  void RunUntil(Nanoseconds moment);
  /// Runs the ops up to and including that one; returns false if one is blocked.
  bool RunThrough(std::size_t last);

  const Model& model_;
  const Bytes limit_;
  const std::size_t op_count_;
  Mark mark_;                 // .op is the next op to run.
  std::vector<Place> place_;  // Of x_0 .. x_{n-1}.
  std::vector<Nanoseconds> op_start_;
  static constexpr std::size_t kNone = kNoOp;
  std::vector<std::size_t> awaits_;  // By op: the activation that it is the first to read again.
  std::vector<std::size_t> unread_;  // By op: no activation from here on has yet to be read again.
  Span last_transfer_;
};

}  // namespace plimsoll::chain

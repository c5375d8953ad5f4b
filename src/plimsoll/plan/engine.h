// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Three queues at work: what runs at the head of each, and when it ends. An op takes its duration,
/// longer while copies move bytes beside it, if the machine says so; a copy takes its latency and
/// then moves its bytes, more slowly while the other direction is moving bytes too. Who may start
/// when is the caller's business:
///
///     Engine engine(machine);
///     do {
///       start whatever may start, in queues that are not busy
///     } while (engine.Advance());      // look at engine.ended(queue)
///
/// Integer nanoseconds and the same arithmetic at every moment: what repeats, repeats exactly.
class Engine {
 public:
  explicit Engine(const Machine& machine) : machine_(machine) {}

  Nanoseconds now_ns() const { return now_; }
  bool busy(Queue queue) const { return head(queue).running; }
  /// Whether the last Advance() ended what the queue was busy with.
  bool ended(Queue queue) const { return head(queue).ended; }

  /// What a queue still has to do: time that passes in any case, and then bytes to move.
  struct Left {
    Nanoseconds fixed_ns = 0;
    double bytes = 0;

    friend bool operator==(const Left&, const Left&) = default;
  };
  /// Nothing if the queue is not busy.
  std::optional<Left> left(Queue queue) const {
    if (!busy(queue)) return std::nullopt;
    return Left{std::max<Nanoseconds>(head(queue).fixed_end - now_, 0), head(queue).bytes_left};
  }

  /// REQUIRES: the queue is not busy.
  void StartOp(Nanoseconds duration_ns) {
    if (machine_.slows_ops()) {
      heads_[0] = {
          .running = true, .fixed_end = now_, .bytes_left = static_cast<double>(duration_ns)};
    } else {
      heads_[0] = {.running = true, .fixed_end = now_ + duration_ns};
    }
  }
  void StartCopy(Queue queue, Bytes bytes) {
    const Nanoseconds latency =
        queue == Queue::kCopyOut ? machine_.out_latency_ns : machine_.in_latency_ns;
    head(queue) = {
        .running = true, .fixed_end = now_ + latency, .bytes_left = static_cast<double>(bytes)};
  }

  /// Goes on to the next moment at which something ends. False if nothing is running.
  bool Advance();

 private:
  struct Head {
    bool running = false;
    bool ended = false;
    Nanoseconds fixed_end = 0;  ///< Of an op, or of a copy's latency.
    double bytes_left = 0;      ///< Of a copy, once its latency is over; of an op that copies slow
                                ///< down, nanoseconds.
  };

  const Head& head(Queue queue) const { return heads_[static_cast<std::size_t>(queue)]; }
  Head& head(Queue queue) { return heads_[static_cast<std::size_t>(queue)]; }
  bool IsMoving(std::size_t q) const {
    return heads_[q].running && heads_[q].fixed_end <= now_ && heads_[q].bytes_left > 0;
  }
  double Rate(std::size_t q) const;
  bool Step();

  const Machine& machine_;
  std::array<Head, kQueues> heads_;
  Nanoseconds now_ = 0;
};

}  // namespace plimsoll::plan

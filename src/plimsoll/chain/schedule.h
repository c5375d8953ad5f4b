// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/chain/model.h"

namespace plimsoll::chain {

enum class Direction : std::uint8_t {
  kOut,  ///< Device to host: an offload.
  kIn,   ///< Host to device: a prefetch.
};

/// One use of the link: activation x_i goes to the host or comes back.
struct Transfer {
  std::int32_t activation = 0;
  Direction direction = Direction::kOut;

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// All that a planner decides: which activations leave, and in which order the link carries them,
/// both ways. Everything else follows (proposition 1: start each thing as early as possible).
using Decision = std::vector<Transfer>;

/// A stretch of time [start_ns, end_ns).
struct Span {
  Nanoseconds start_ns = 0;
  Nanoseconds end_ns = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

struct TimedTransfer {
  Transfer transfer;
  Span span;

  friend bool operator==(const TimedTransfer&, const TimedTransfer&) = default;
};

/// When every command of an iteration starts and ends.
struct Schedule {
  std::vector<Span> ops;                 ///< In the order in which they run: see `order`.
  std::vector<TimedTransfer> transfers;  ///< In the link's order.
  Order order{};  ///< Which op each of `ops` is; empty if every op runs once, in the model's order.

  Nanoseconds iteration_ns() const { return ops.empty() ? 0 : ops.back().end_ns; }
};

/// Returns the ordered decision (paper 002, section 4.1): the marked activations leave by
/// increasing index and come back by decreasing index.
/// REQUIRES: `offloaded` has one mark for each of x_0 .. x_{n-1}.
Decision OrderedDecision(const std::vector<char>& offloaded);

/// What a schedule takes on both sides, at most at any time.
struct Footprint {
  Bytes device_bytes = 0;
  Bytes host_bytes = 0;
  Bytes out_bytes = 0;  ///< Carried out in all; as many come back.
};
/// REQUIRES: the model is that of the schedule's order (ModelOf()).
Footprint MeasureFootprint(const Model& model, const Schedule& schedule);

}  // namespace plimsoll::chain

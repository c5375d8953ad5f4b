// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/chain/schedule.h"

namespace plimsoll::planners {

/// When a command begins and ends, as places in one row of all beginnings and ends.
struct Ranks {
  std::int64_t begin = -1;
  std::int64_t end = -1;
};

/// Brings the beginnings and ends of a chain's schedule into one order. Times alone do not: things
/// may take no time, and much happens at the same moment. Ends come first, since they make room;
/// then ops, unless they wait for a transfer of no time.
///
///     device  │ F_0      │ F_1   │           F_0 begins 0, x_0 out begins 1, F_0 ends 2,
///     link    │ x_0 out     │                F_1 begins 3, x_0 out ends 4, ...
class ChainOrder {
 public:
  /// REQUIRES: the schedule is valid, and the model that of its order (chain::ModelOf()).
  ChainOrder(const chain::Model& model, const chain::Schedule& schedule);

  /// Of an op of chain::ToTrace(), in the order in which they run: the model's, `input` and
  /// `loss`. y_n is counted from B_{n-1} on, hence the loss comes right before that.
  const Ranks& op(std::size_t op) const { return ops_[op]; }
  /// Of a transfer, by its place in the schedule.
  const Ranks& transfer(std::size_t transfer) const { return transfers_[transfer]; }

 private:
  void Merge(const std::vector<chain::Span>& spans, const chain::Schedule& schedule,
             const std::vector<std::size_t>& arrivals);
  static void Advance(std::int64_t rank, Ranks* ranks, std::size_t* next);

  std::vector<Ranks> ops_;
  std::vector<Ranks> transfers_;
};

}  // namespace plimsoll::planners

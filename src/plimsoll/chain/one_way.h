// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/chain/model.h"

/// One half of an iteration, for exact.cc: everything up to the last transfer out, or, in reversed
/// time, everything from the first transfer in. In both an activation gives up its room at the end
/// of its transfer; in both nothing is ever locked up. What differs is the order of the ops and
/// from when an activation may go: x_i after F_{i-1}; in reversed time, after B_i.
namespace plimsoll::chain {

/// A set of activations, one bit each.
using Mask = std::uint32_t;

/// The state right after the last transfer of a set, as early as a certain order of the set gives.
struct Label {
  Nanoseconds link_ns = 0;     ///< The end of the last transfer.
  Nanoseconds compute_ns = 0;  ///< The end of the newest op that started before.
  std::int16_t ops = 0;        ///< How many ops started before.
  std::int16_t last = -1;      ///< The activation of the last transfer.
  std::int32_t parent = -1;    ///< The label before it, in the set without `last`.

  /// Whether nothing that follows the other one ends earlier than it could following this one.
  bool Dominates(const Label& other) const {
    if (link_ns > other.link_ns || ops < other.ops) return false;
    return ops > other.ops || compute_ns <= other.compute_ns;
  }
};

/// Adds a label to those that none of the others dominates; returns false if one dominates it.
bool AddUndominated(const Label& label, std::vector<Label>* front);

class OneWay {
 public:
  enum class Half { kForward, kBackward };

  OneWay(const Model& model, Bytes limit_bytes, Half half);

  /// Fills in the labels of every set of the first `count` activations: for each the orders that no
  /// other one dominates, less those that `hopeless` dismisses. Stops and returns false as soon as
  /// `late` says so.
  bool Run(std::size_t count, const std::function<bool(Mask, const Label&)>& hopeless,
           const std::function<bool()>& late);

  const std::vector<Label>& labels(Mask set) const { return labels_[set]; }
  /// The order in which the label's transfers are made.
  std::vector<std::int32_t> Order(Mask set, const Label& label) const;
  /// The sum of the times of all ops but the first `ops` of this half's order.
  Nanoseconds TimeAfter(std::size_t ops) const { return after_[ops]; }

 private:
  /// Appends the transfer of x_i to a label of `set`; returns false if it comes too late.
  bool Extend(Mask set, Bytes away, const Label& label, std::size_t i, Label* result) const;
  bool CanStart(std::size_t op, Mask set, Bytes away) const;

  const Model& model_;
  const Bytes limit_;
  const std::size_t made_by_;  // x_i may go after that many ops more than i.
  std::vector<Nanoseconds> op_ns_;
  std::vector<Bytes> total_bytes_;
  std::vector<Nanoseconds> after_;
  std::vector<std::vector<Label>> labels_;  // By set.
};

}  // namespace plimsoll::chain

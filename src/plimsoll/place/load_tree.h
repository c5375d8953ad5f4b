// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/place/search.h"

namespace plimsoll::place {

/// A segment tree over sections: adds to a range, finds the heaviest section of a range, both in
/// O(log n).
class LoadTree {
 public:
  explicit LoadTree(const std::vector<Units>& loads) {
    while (capacity_ < loads.size()) capacity_ *= 2;
    heaviest_.assign(2 * capacity_, 0);
    pending_.assign(2 * capacity_, 0);
    std::copy(loads.begin(), loads.end(),
              heaviest_.begin() + static_cast<std::ptrdiff_t>(capacity_));
    for (std::size_t node = capacity_ - 1; node > 0; --node) Pull(node);
  }

  /// Adds `value` to the sections [begin, end).
  void Add(SectionIndex begin, SectionIndex end, Units value) {
    AddTo(1, 0, static_cast<SectionIndex>(capacity_), {begin, end}, value);
  }

  /// Returns the leftmost of the heaviest sections of [begin, end). REQUIRES: begin < end.
  SectionIndex HeaviestIn(SectionIndex begin, SectionIndex end) const {
    return Find(1, 0, static_cast<SectionIndex>(capacity_), {begin, end}).second;
  }

  /// Returns the highest load in [begin, end). REQUIRES: begin < end.
  Units HighestIn(SectionIndex begin, SectionIndex end) const {
    return Highest(1, 0, static_cast<SectionIndex>(capacity_), {begin, end});
  }

 private:
  void Pull(std::size_t node) {
    heaviest_[node] = std::max(heaviest_[2 * node], heaviest_[2 * node + 1]) + pending_[node];
  }

  void AddTo(std::size_t node, SectionIndex begin, SectionIndex end, SectionRange range,
             Units value) {
    if (range.end <= begin || end <= range.begin) return;
    if (range.begin <= begin && end <= range.end) {
      heaviest_[node] += value;
      pending_[node] += value;
      return;
    }
    const SectionIndex middle = (begin + end) / 2;
    AddTo(2 * node, begin, middle, range, value);
    AddTo(2 * node + 1, middle, end, range, value);
    Pull(node);
  }

  /// The highest load of the range, less what is pending above the node.
  Units Highest(std::size_t node, SectionIndex begin, SectionIndex end, SectionRange range) const {
    if (range.begin <= begin && end <= range.end) return heaviest_[node];
    const SectionIndex middle = (begin + end) / 2;
    if (range.end <= middle) return pending_[node] + Highest(2 * node, begin, middle, range);
    if (range.begin >= middle) return pending_[node] + Highest(2 * node + 1, middle, end, range);
    return pending_[node] + std::max(Highest(2 * node, begin, middle, range),
                                     Highest(2 * node + 1, middle, end, range));
  }

  /// The same with its section.
  std::pair<Units, SectionIndex> Find(std::size_t node, SectionIndex begin, SectionIndex end,
                                      SectionRange range) const {
    if (end - begin == 1) return {heaviest_[node], begin};
    const SectionIndex middle = (begin + end) / 2;
    if (range.begin <= begin && end <= range.end) {
      // All of the node counts: follow the heavier child down.
      const bool left = heaviest_[2 * node] >= heaviest_[2 * node + 1];
      auto found =
          left ? Find(2 * node, begin, middle, range) : Find(2 * node + 1, middle, end, range);
      return {heaviest_[node], found.second};
    }
    if (range.end <= middle) return Lift(node, Find(2 * node, begin, middle, range));
    if (range.begin >= middle) return Lift(node, Find(2 * node + 1, middle, end, range));
    const auto left = Find(2 * node, begin, middle, range);
    const auto right = Find(2 * node + 1, middle, end, range);
    return Lift(node, left.first >= right.first ? left : right);
  }

  std::pair<Units, SectionIndex> Lift(std::size_t node,
                                      std::pair<Units, SectionIndex> found) const {
    return {found.first + pending_[node], found.second};
  }

  std::size_t capacity_ = 1;
  std::vector<Units> heaviest_;  // Of the node's sections, with what is pending at the node.
  std::vector<Units> pending_;   // Added to all of the node's sections.
};

}  // namespace plimsoll::place

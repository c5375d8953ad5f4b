// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/place/reduced.h"

namespace plimsoll::place {

/// What a skyline dive takes first: the largest of this. Lengths are counted in sections, which
/// stretches busy times, or in logical time.
enum class DiveKey { kArea, kTimeArea, kLength, kTime, kSize };

/// Places items on a skyline, without ever going back:
///
///     while something is unplaced:
///       take the lowest plateau, leftmost first
///       place the item with the largest key that fits onto it, side to side
///       if none fits, raise the plateau to its lower neighbour: the bytes between are lost
///
/// With `critical_first`, an item that crosses the plateau's most loaded section is preferred over
/// all others: there, lost bytes hurt most. The idea is that of Sekiyama, Imai, Negishi, Kawachiya,
/// "Profile-guided memory optimization for deep neural networks" (2018), with orders of our own.
///
/// O(n log n) in practice: candidates come from a search tree over start sections that is pruned by
/// end sections and keys. Handles a million items in about a second. An object may dive again and
/// again; it keeps its index.
///
/// Items that live around the end of a cycle are the ground: they are all live at its beginning, so
/// they are stacked there, the longest first, and everything else is placed on top of them.
///
/// REQUIRES: no fixed items. Other gaps are not used: such an item takes its whole hull.
class SkylineDiver {
 public:
  explicit SkylineDiver(const Reduced& reduced);

  /// Returns an offset for every item.
  std::vector<Units> Dive(DiveKey key, bool critical_first);

 private:
  using Index = std::int32_t;

  /// A node of the candidate tree: what is unplaced below it.
  struct Node {
    std::int32_t best_rank;  ///< Smallest rank; kNobody if nothing is unplaced.
    SectionIndex least_end;
    SectionIndex largest_end;

    friend bool operator==(const Node&, const Node&) = default;
  };

  void RankBy(DiveKey key);
  /// Places the items around the end; returns the height of the ground in each section.
  std::vector<Units> LayGround(std::vector<Units>* offsets);
  void Pull(std::size_t node);
  void BuildTree();
  void Remove(Index leaf);
  /// Returns the unplaced leaf with the best rank that begins in [begin, last_begin] and ends in
  /// [first_end, end], or -1.
  Index FindBest(SectionIndex begin, SectionIndex last_begin, SectionIndex first_end,
                 SectionIndex end) const;
  void Visit(std::size_t node, Index node_begin, Index node_end, struct DiveQuery* query) const;

  const Reduced& reduced_;
  std::vector<Index> item_of_leaf_;  // Leaves are items sorted by first section, then end.
  std::vector<SectionRange> span_;   // Per leaf.
  std::vector<Index> first_leaf_;    // Per section: the first leaf that begins there or later.
  std::vector<Index> ground_;        // Leaves that live around the end, the longest first.
  std::vector<std::int32_t> rank_;   // Per leaf; smaller is better.
  std::vector<Index> leaf_of_rank_;
  Index leaf_capacity_ = 1;  // A power of two.
  std::vector<Node> tree_;
};

}  // namespace plimsoll::place

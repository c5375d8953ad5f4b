// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/place/problem.h"
#include "plimsoll/place/search.h"

namespace plimsoll::place {

/// A problem as the algorithms of `tight` want it. Empty buffers are gone, sizes are rounded up to
/// the alignment that all offsets share and divided by their common divisor, and time is cut into
/// sections, the maximal sets of buffers that are live together:
///
///     time      ──────────────────────────────▶
///     A         ├────────────────────────┤
///     B         ├────────┤
///     C               ├────┤
///     D                       ├──────┤
///     sections  │ A B C      │ A D       │      a new one at the first start after an end
///
/// Two buffers overlap in time exactly if they share a section.
struct Reduced {
  struct Item {
    std::size_t buffer = 0;            ///< Index into the problem.
    std::vector<SectionRange> ranges;  ///< Ascending, disjoint; one unless it has gaps.
    Units size = 0;                    ///< Positive.
    Units alignment = 1;
    Units fixed_offset = -1;  ///< Negative if it may move.
    double length = 0;        ///< Time from first to last section's end.

    SectionRange hull() const { return {ranges.front().begin, ranges.back().end}; }
    double size_key() const { return static_cast<double>(size); }
    double length_key() const { return length; }
    double area_key() const { return length * static_cast<double>(size); }
  };

  Bytes unit = 1;
  SectionIndex section_count = 0;
  std::vector<Item> items;
  std::vector<Units> load;   ///< Per section: sizes of its members.
  Units lower_bound = 0;     ///< In units; holds for the rounded sizes.
  bool has_padding = false;  ///< Whether any size was rounded up.
  bool has_fixed = false;
  bool has_gaps = false;
  bool uniform_alignment = true;  ///< Any offset will do for any item.

  /// Turns offsets of items into offsets of the problem's buffers; empty buffers get 0.
  std::vector<Bytes> Expand(const Problem& problem, const std::vector<Units>& offsets) const;

  /// Returns the highest top.
  Units Height(const std::vector<Units>& offsets) const;
};

Reduced Reduce(const Problem& problem);

}  // namespace plimsoll::place

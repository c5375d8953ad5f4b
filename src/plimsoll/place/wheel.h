// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plimsoll/place/reduced.h"

namespace plimsoll::place {

/// Squeaky wheel optimisation (Joslin and Clements, 1999) of an order for first fit:
///
///     until all are within the capacity:
///       place the items one after the other, by priority, each as low as it can be
///       whoever ends above the capacity gets a higher priority, by more or less
///
/// A pass takes a fraction of a millisecond, and what is in trouble comes first in the next one:
/// where a search from the bottom up is lost in details, this often needs a hundred passes. It
/// proves nothing. Only the large items take part, as many as matter for the capacity; items that
/// are there all the time are stacked at the bottom. The caller finds room for the small ones.
///
/// REQUIRES: no fixed items, and any offset will do for any item.
class Wheel {
 public:
  /// Keeps a reference to `reduced`.
  Wheel(const Reduced& reduced, Units capacity, std::uint64_t seed);

  /// Places all that take part within the capacity, less `reserve`, which is for the others. False
  /// if `placements` are spent before it has: each time that an item is placed counts. False at
  /// once if so many take part that a pass takes too long, and soon if it does not come close.
  bool Turn(Units reserve, std::int64_t* placements);

  /// The items that take part, and the offset of each as of the last pass; the bottom ones first.
  const std::vector<std::size_t>& items() const { return items_; }
  const std::vector<Units>& offsets() const { return offsets_; }
  /// The highest load of those that do not take part.
  Units small_load() const { return small_load_; }

 private:
  using Index = std::uint32_t;
  struct Stretch {
    Units begin;
    Units end;
  };
  static constexpr Stretch kNowhere{-1, -1};

  void ChooseItems(Units capacity);
  bool IsAlwaysThere(const Reduced::Item& item) const;
  bool IsLarge() const;
  Units LoadBelow(Units size) const;
  void ListNeighbours();
  void Prioritise(int round);
  Units PlaceAll();
  Units FindOffset(Index k);
  void Complain(Units capacity);
  double Random() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  const Reduced& reduced_;
  const Units capacity_;
  std::mt19937_64 random_;
  std::vector<std::size_t> items_;
  std::size_t bottom_count_ = 0;  // Of the items: they are there all the time.
  Units bottom_height_ = 0;
  Units small_load_ = 0;
  std::vector<std::vector<Index>> neighbours_;  // Per item that is not at the bottom: who meets it.
  std::vector<double> priority_;
  std::vector<Index> order_;
  std::vector<Units> sizes_;
  std::vector<Units> offsets_;
  std::vector<Stretch> stretches_;  // What each takes of the addresses; kNowhere if not placed yet.
  std::vector<Stretch> above_;      // Of what has been placed: what is above where another may go.
};

}  // namespace plimsoll::place

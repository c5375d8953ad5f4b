// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/place/reduced.h"
#include "plimsoll/place/search.h"

namespace plimsoll::place {

/// The part of a problem that decides its footprint: the sections whose load is at or above a
/// threshold, and the items that cross them.
///
///     load ▲      ┌┐  ┌─┐                   A placement of the core that fits is completed by the
///          │ ─ ─ ─││─ │ │─ ─ threshold      rest, which lives where there is room to spare; a core
///          │   ┌──┘└──┘ └───┐               that does not fit proves that nothing does.
///          └───┴────────────┴──▶ time
///
/// Items that cross every section of the core are stacked at its bottom, longest lifetime first:
/// nothing can be under or over them in part, so that costs nothing and leaves the search less.
struct Core {
  SearchProblem problem;
  std::vector<std::size_t> items;  ///< Per buffer of the problem: its item in the Reduced.
  std::vector<std::size_t> base;   ///< Items at the bottom, lowest first.
  Units base_height = 0;
  std::size_t incidences = 0;  ///< Pairs of buffer and section: what a search has to carry.
};

Core ExtractCore(const Reduced& reduced, Units threshold);

/// Returns a thinner core first: cores with thresholds from near `capacity` down to nothing, each
/// with more items than the one before, none too large to search.
std::vector<Core> ExtractCores(const Reduced& reduced, Units capacity);

}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/place/problem.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// The placement problem of an iteration.
struct PlacementProblem {
  place::Problem problem;
  /// How many consecutive iterations it spans: one, unless a variable outlives its iteration by so
  /// much that several instances of it are live at once.
  std::int32_t iterations = 1;
  /// Per variable: its buffer in the first of these iterations. The buffers for the following ones
  /// come right after it; a persistent variable has only the one.
  std::vector<std::size_t> first_buffer;
};

/// Turns lifetimes into rectangles:
///   - persistent variables live through the whole cycle;
///   - a variable that lives around the end of the cycle has the middle of it as a gap;
///   - if a variable has n live instances, the cycle spans n iterations, so that each instance has
///   a
///     place of its own; every other variable may then be elsewhere in each of them.
PlacementProblem ToPlacement(const Problem& problem, Bytes alignment = kDefaultAlignment);

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/place/problem.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// The placement problem of an iteration.
struct PlacementProblem {
  place::Problem problem;
  /// Per variable: its first buffer. A variable with n live instances has n buffers, the places
  /// that it takes in turn, one after another.
  std::vector<std::size_t> first_buffer;
};

/// Turns lifetimes into rectangles:
///   - persistent variables live through the whole period;
///   - a variable that lives around the end has the middle of the period as a gap;
///   - a variable with several live instances gets as many places. Which of them is free at a given
///     position changes from iteration to iteration, so each is kept for the whole period.
PlacementProblem ToPlacement(const Problem& problem, Bytes alignment = kDefaultAlignment);

}  // namespace plimsoll::plan

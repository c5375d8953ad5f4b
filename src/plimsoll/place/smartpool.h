// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/place/problem.h"

namespace plimsoll::place {

/// Which hole between its placed neighbours a buffer is put into:
///
///     offset
///       ▲  ██████   placed
///       │  ......   hole of 2: the smallest that holds a buffer of 2, taken by kBest
///       │  ██████   placed
///       │  ......
///       │  ......   hole of 3: the lowest that holds it, taken by kFirst
///       │  ......
///       │  ██████   placed
enum class Fit {
  kFirst,  ///< The lowest hole that is large enough.
  kBest,   ///< The smallest hole that is large enough, the lowest of equals.
};

/// The offset of a buffer that has not been placed.
inline constexpr Bytes kUnplaced = -1;

/// Returns every buffer's fixed offset, or kUnplaced: where PlaceInOrder() begins.
std::vector<Bytes> FixedOffsets(const Problem& problem);

/// Places the buffers in `order` (indices into the problem) one after another: each in a hole
/// between the buffers placed so far that are live at the same time, or, if no hole is large
/// enough, on top of them. Holes begin at an aligned offset; buffers of size zero go to 0.
///
/// `offsets` has one entry per buffer of the problem. Those other than kUnplaced are obstacles that
/// stay; buffers that are kUnplaced and not in `order` are left out.
/// Gives up, and returns false, as soon as one of them reaches above `ceiling`.
/// REQUIRES: no buffer is twice in `order`, and each in it is kUnplaced.
///
/// Takes O(log n + k log k) per buffer with k neighbours, but never much more than one pass over
/// all that is placed around the same time.
bool PlaceInOrder(const Problem& problem, const std::vector<std::size_t>& order, Fit fit,
                  std::vector<Bytes>* offsets, Bytes ceiling = kMaxBytes);

}  // namespace plimsoll::place

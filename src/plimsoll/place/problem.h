// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// Placement: rectangles of known width (lifetime) and height (size) are moved up and down until no
/// two overlap and the highest top, the footprint, is as low as possible. Dynamic storage
/// allocation, offline; NP-complete.
///
///     offset
///       ▲
///   100 ┤        ┌─────────────┐             footprint 100
///       │        │ C           │
///    60 ┤  ┌─────┴──────┬──────┴─────┐
///       │  │ B          │ D          │
///    30 ┤──┴────────────┴────────────┴───┐
///       │ A                              │
///     0 ┼──┬─────┬──────┬──────┬─────┬───┴─▶ time
///       0  1     2      3      4     5   6
///
/// This folder knows nothing of traces, tensors or devices: the device's arena and the host's slab
/// are laid out by the same code.
namespace plimsoll::place {

/// Logical time; only its order matters.
using Time = std::int64_t;

/// A half-open stretch of time [lower, upper).
struct Interval {
  Time lower = 0;
  Time upper = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// One rectangle.
struct Buffer {
  std::string id;                       ///< Carried through to the output.
  Interval lifetime;                    ///< Lower < upper.
  Bytes size_bytes = 0;                 ///< May be zero: then it collides with nothing.
  Bytes alignment = 1;                  ///< The offset is a multiple of this.
  std::optional<Bytes> fixed_offset{};  ///< Where it must be, if it must not move.
  /// Stretches inside the lifetime in which the bytes are not needed: ascending, disjoint. A
  /// variable that lives around the end of a cycle is [0, period) with one gap in the middle.
  std::vector<Interval> gaps{};
};

struct Problem {
  std::vector<Buffer> buffers;
};

/// An answer: one offset per buffer, in the problem's order.
struct Placement {
  std::vector<Bytes> offsets;
  /// Bytes of device memory that the planner takes. The highest top for a planned arena; an
  /// allocator that reserves segments takes more, cudaMalloc's paged addresses take less.
  Bytes footprint_bytes = 0;
  /// No placement of this problem can have a smaller footprint; at least the peak load.
  Bytes lower_bound_bytes = 0;
};

/// Returns the stretches in which the buffer holds its bytes: its lifetime less its gaps.
std::vector<Interval> LiveIntervals(const Buffer& buffer);

/// Returns the highest offset + size over all buffers.
Bytes HighestTop(const Problem& problem, const std::vector<Bytes>& offsets);

/// Throws InputError, naming `source` and the buffer, unless every buffer is well-formed (a
/// non-empty lifetime, sizes and alignments in range, ordered gaps, aligned fixed offsets) and
/// fixed buffers do not overlap.
void CheckWellFormed(const Problem& problem, const std::string& source);

}  // namespace plimsoll::place

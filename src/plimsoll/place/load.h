// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/place/problem.h"

namespace plimsoll::place {

/// Returns the largest sum of sizes of buffers that are live at one moment, sizes as asked for.
Bytes PeakLoad(const Problem& problem);

/// Returns a footprint that no placement can beat: the largest load with each size rounded up to
/// the alignment that all offsets share, less the rounding of whichever buffer may lie on top; and
/// at least every fixed top. At or above PeakLoad(). O(n log n).
Bytes LowerBound(const Problem& problem);

}  // namespace plimsoll::place

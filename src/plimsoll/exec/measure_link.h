// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/device/backend.h"
#include "plimsoll/plan/machine.h"

namespace plimsoll::exec {

/// Measures the link of a backend: each direction alone and both at once, with large copies, and
/// the latency with small ones. Medians; takes some tens of milliseconds. Gives back all memory
/// that it takes. Throws OutOfMemory and DeviceError. REQUIRES: nothing is under way on the
/// backend, which really runs things.
plan::Machine MeasureLink(device::Backend* backend);

}  // namespace plimsoll::exec

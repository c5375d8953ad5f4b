// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "plimsoll/device/backend.h"
#include "plimsoll/plan/machine.h"

namespace plimsoll::exec {

/// Measures the link of a backend: each direction alone and both at once, with large copies, and
/// the latency with small ones. Medians; takes some tens of milliseconds. Gives back all memory
/// that it takes. Throws OutOfMemory and DeviceError. REQUIRES: nothing is under way on the
/// backend, which really runs things.
plan::Machine MeasureLink(device::Backend* backend);

/// How copies in both directions and compute that is bound by memory get in each other's way.
struct Interference {
  double compute_slowdown = 1;  ///< Of compute, while copies run.
  double out_slowdown = 1;      ///< Of copies that both run, while compute does.
  double in_slowdown = 1;
};
/// Makes a function that reads and writes so much device memory over and over, for some
/// milliseconds.
using MakeTraffic =
    std::function<std::function<void(void* native_stream)>(std::byte* memory, Bytes size_bytes)>;
Interference MeasureInterference(device::Backend* backend, const MakeTraffic& make_traffic);

}  // namespace plimsoll::exec

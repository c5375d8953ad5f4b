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

/// Makes a function that reads and writes so much device memory over and over.
using MakeTraffic =
    std::function<std::function<void(void* native_stream)>(std::byte* memory, Bytes size_bytes)>;

/// Measures what copies cost ops, and notes it in the machine: how much slower ops are that live in
/// the cache or off memory, whichever is worse, beside copies out and in, and what an op loses that
/// waits for a copy. As MeasureLink() otherwise.
void MeasureCosts(device::Backend* backend, const MakeTraffic& make_traffic,
                  plan::Machine* machine);

/// How copies in both directions and compute that is bound by memory get in each other's way.
struct Interference {
  double compute_slowdown = 1;  ///< Of compute, while copies run.
  double out_slowdown = 1;      ///< Of copies that both run, while compute does.
  double in_slowdown = 1;
};
Interference MeasureInterference(device::Backend* backend, const MakeTraffic& make_traffic);

}  // namespace plimsoll::exec

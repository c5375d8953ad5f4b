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

/// What copies and ops cost each other: how many times as long each takes beside the other.
struct Costs {
  double op_by_out = 1;
  double op_by_in = 1;
  double out_by_ops = 1;
  double in_by_ops = 1;
  Nanoseconds handover_ns = 0;  ///< What an op loses that waits for a copy.
};

/// Measures that with ops that live in the cache, and off memory; whichever is worse counts. Where
/// the link of the machine carries next to nothing while an op runs, there are no costs.
/// As MeasureLink() otherwise.
Costs MeasureCosts(device::Backend* backend, const MakeTraffic& make_traffic,
                   const plan::Machine& machine);

/// Notes in a machine what copies cost ops.
void CountCosts(const Costs& costs, plan::Machine* machine);

/// Lowers the speeds of a machine to those of copies beside ops. Where the processor that runs ops
/// copies, too, that is how fast they are: plans that are any good have ops running all the time.
void SlowCopies(const Costs& costs, plan::Machine* machine);

/// How copies in both directions and compute that is bound by memory get in each other's way.
struct Interference {
  double compute_slowdown = 1;  ///< Of compute, while copies run.
  double out_slowdown = 1;      ///< Of copies that both run, while compute does.
  double in_slowdown = 1;
};
Interference MeasureInterference(device::Backend* backend, const MakeTraffic& make_traffic);

}  // namespace plimsoll::exec

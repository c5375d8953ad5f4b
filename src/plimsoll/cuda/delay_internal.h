// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "plimsoll/base/bytes.h"

namespace plimsoll::cuda {

/// Whether kernels were compiled for the current GPU.
bool HasKernelsHere();

/// Launches a kernel that does nothing for so long.
void LaunchDelay(Nanoseconds duration_ns, cudaStream_t stream);

/// Launches a kernel that reads and writes memory over and over, for about so long: what copies
/// have to share the card's memory with.
void LaunchTraffic(void* memory, Bytes size_bytes, int rounds, cudaStream_t stream);

}  // namespace plimsoll::cuda

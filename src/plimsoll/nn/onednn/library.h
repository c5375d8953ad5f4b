// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "plimsoll/nn/op.h"

namespace plimsoll::nn {

/// Kernels for the host: convolutions and matrix products by oneDNN, the rest by loops of our own,
/// on as many threads as OpenMP gives the thread that prepares them.
///
/// Equal inputs give equal bits: neither addresses, nor what was in outputs and workspaces before,
/// nor whether an op runs in place, change a result. The number of threads may.
///
/// The library is not thread-safe. Kernels run on one thread at a time, and outlive the library.
std::unique_ptr<KernelLibrary> MakeOneDnnLibrary();

/// Makes a function that computes one half of the memory from the other, on the threads that
/// kernels run on, and is bound by both memory and arithmetic, as they are in turn
/// (exec::MakeTraffic).
std::function<void(void* native_stream)> MakeHostTraffic(std::byte* memory, Bytes size_bytes);

}  // namespace plimsoll::nn

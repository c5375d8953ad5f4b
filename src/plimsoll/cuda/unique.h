// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

/// What CUDA gives and wants back, as values that end with whoever holds them.
namespace plimsoll::cuda {

/// Calls a function of CUDA on a handle; what it answers is of no use to anybody any more.
template <auto kFunction>
struct Giver {
  template <typename Handle>
  void operator()(Handle* handle) const noexcept {
    kFunction(handle);
  }
};

using UniqueStream = std::unique_ptr<CUstream_st, Giver<cudaStreamDestroy>>;
using UniqueEvent = std::unique_ptr<CUevent_st, Giver<cudaEventDestroy>>;
using UniqueGraph = std::unique_ptr<CUgraphExec_st, Giver<cudaGraphExecDestroy>>;
/// Of the card.
using UniqueMemory = std::unique_ptr<std::byte, Giver<cudaFree>>;

/// These throw DeviceError; the last OutOfMemory if the card has not so much.
UniqueStream NewStream();
UniqueEvent NewEvent(unsigned flags = cudaEventDefault);
UniqueMemory NewMemory(std::size_t size_bytes);

}  // namespace plimsoll::cuda

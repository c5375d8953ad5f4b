// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/unique.h"

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/check.h"

namespace plimsoll::cuda {

UniqueStream NewStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return UniqueStream(stream);
}

UniqueEvent NewEvent(unsigned flags) {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, flags), "creating an event");
  return UniqueEvent(event);
}

UniqueMemory NewMemory(std::size_t size_bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, size_bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    Check(cudaMemGetInfo(&free, &total), "asking for free memory");
    throw OutOfMemory(static_cast<Bytes>(size_bytes), static_cast<Bytes>(free),
                      "the card has no more; end what else runs on it, or give a lower limit");
  }
  Check(status, "allocating device memory");
  return UniqueMemory(static_cast<std::byte*>(memory));
}

}  // namespace plimsoll::cuda

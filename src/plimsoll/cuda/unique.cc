// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/unique.h"

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
  Check(cudaMalloc(&memory, size_bytes), "allocating device memory");
  return UniqueMemory(static_cast<std::byte*>(memory));
}

}  // namespace plimsoll::cuda

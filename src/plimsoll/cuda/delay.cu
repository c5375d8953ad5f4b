// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/delay_internal.h"

namespace plimsoll::cuda {
namespace {

__global__ void Delay(unsigned long long duration_ns) {
  unsigned long long begin = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < duration_ns);
}

__global__ void Traffic(float4* memory, long long count, int rounds) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < count;
         i += step) {
      float4 value = memory[i];
      value.x += 1;
      memory[i] = value;
    }
  }
}

}  // namespace

bool HasKernelsHere() {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, Delay);
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    return false;
  }
  Check(status, "opening the GPU");
  return false;
}

void LaunchDelay(Nanoseconds duration_ns, cudaStream_t stream) {
  Delay<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(duration_ns));
  CheckLaunch("delay");
}

void LaunchTraffic(void* memory, Bytes size_bytes, int rounds, cudaStream_t stream) {
  Traffic<<<1056, 256, 0, stream>>>(static_cast<float4*>(memory), size_bytes / 16, rounds);
  CheckLaunch("traffic");
}

}  // namespace plimsoll::cuda

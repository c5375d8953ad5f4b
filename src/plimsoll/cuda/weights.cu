// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/weights.h"

namespace plimsoll::cuda {
namespace {

using Bfloat16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 16;

int BlocksFor(std::int64_t threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, kMostBlocks));
}

__device__ std::int64_t ThreadNumber() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ std::int64_t ThreadCount() { return std::int64_t{gridDim.x} * blockDim.x; }

/// Four at a time; the rest by the first threads.
__global__ void ToBfloat16Kernel(const float* __restrict__ from, Bfloat16* __restrict__ to,
                                 std::int64_t count) {
  const std::int64_t fours = count / 4;
  for (std::int64_t i = ThreadNumber(); i < fours; i += ThreadCount()) {
    const float4 x = reinterpret_cast<const float4*>(from)[i];
    __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
    reinterpret_cast<uint2*>(to)[i] = *reinterpret_cast<const uint2*>(pair);
  }
  const std::int64_t last = fours * 4 + ThreadNumber();
  if (last < count) to[last] = __float2bfloat16_rn(from[last]);
}

__global__ void ToFloatsKernel(const Bfloat16* __restrict__ from, float* __restrict__ to,
                               std::int64_t count) {
  const std::int64_t fours = count / 4;
  for (std::int64_t i = ThreadNumber(); i < fours; i += ThreadCount()) {
    const uint2 x = reinterpret_cast<const uint2*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000U),
                    __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000U));
  }
  const std::int64_t last = fours * 4 + ThreadNumber();
  if (last < count) to[last] = __bfloat162float(from[last]);
}

__device__ void Store(float* to, float x) { *to = x; }
__device__ void Store(Bfloat16* to, float x) { *to = __float2bfloat16_rn(x); }

/// One thread for each element of `to`.
template <typename To>
__global__ void ExchangeKernel(ExchangedChannels sizes, std::int64_t count,
                               const float* __restrict__ from, To* __restrict__ to) {
  for (std::int64_t i = ThreadNumber(); i < count; i += ThreadCount()) {
    const std::int64_t outer = i % sizes.outer;
    const std::int64_t window = i / sizes.outer % sizes.window;
    const std::int64_t inner = i / (sizes.outer * sizes.window) % sizes.inner;
    const std::int64_t group = i / (sizes.outer * sizes.window * sizes.inner);
    const std::int64_t at =
        ((group * sizes.outer + outer) * sizes.window + window) * sizes.inner + inner;
    Store(to + i, from[at]);
  }
}

/// Two bfloat16 in each word.
__global__ void FillRandomKernel(std::uint32_t* words, std::int64_t count) {
  for (std::int64_t i = ThreadNumber(); i < count; i += ThreadCount()) {
    std::uint64_t x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15U + 0x1234567U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    const auto bits = static_cast<std::uint32_t>(x >> 32);
    // Signs and mantissas as they come; the exponent is 2^-4.
    words[i] = (bits & 0x807f807fU) | 0x3d803d80U;
  }
}

cudaStream_t Stream(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

void ToBfloat16(const float* from, void* to, std::int64_t count, void* stream) {
  ToBfloat16Kernel<<<BlocksFor(count / 4), kThreads, 0, Stream(stream)>>>(
      from, static_cast<Bfloat16*>(to), count);
  CheckLaunch("casting weights");
}

void ToFloats(const void* from, float* to, std::int64_t count, void* stream) {
  ToFloatsKernel<<<BlocksFor(count / 4), kThreads, 0, Stream(stream)>>>(
      static_cast<const Bfloat16*>(from), to, count);
  CheckLaunch("casting gradients");
}

void Exchange(const ExchangedChannels& sizes, const float* from, void* to, bool to_bfloat16,
              void* stream) {
  const int blocks = BlocksFor(sizes.count());
  if (to_bfloat16) {
    ExchangeKernel<<<blocks, kThreads, 0, Stream(stream)>>>(sizes, sizes.count(), from,
                                                            static_cast<Bfloat16*>(to));
  } else {
    ExchangeKernel<<<blocks, kThreads, 0, Stream(stream)>>>(sizes, sizes.count(), from,
                                                            static_cast<float*>(to));
  }
  CheckLaunch("exchanging channels");
}

void FillRandom(void* memory, std::int64_t size_bytes, void* stream) {
  const std::int64_t words = size_bytes / 4;
  FillRandomKernel<<<BlocksFor(words), kThreads, 0, Stream(stream)>>>(
      static_cast<std::uint32_t*>(memory), words);
  CheckLaunch("filling scratch memory");
}

}  // namespace plimsoll::cuda

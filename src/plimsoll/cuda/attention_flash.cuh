// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/cuda/attention.h"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/tensor_cores.cuh"

/// What attention's kernels for tensor cores share. For device code only.
namespace plimsoll::cuda {

using Bfloat16 = __nv_bfloat16;

inline constexpr float kLog2OfE = 1.44269504F;

/// 2^x, to about 22 bits; 0 for very small x.
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Where this block's head of a sequence is in [n, t, d], [n, t, 3d] and [n, heads, t].
struct FlashHead {
  std::int64_t in_y;
  std::int64_t in_qkv;  ///< Of its queries; keys and values follow at multiples of y_stride.
  std::int64_t in_rows;
  std::int64_t y_stride;
  std::int64_t qkv_stride;

  __device__ explicit FlashHead(const AttentionSizes& s)
      : y_stride(std::int64_t{s.heads} * s.width), qkv_stride(3 * y_stride) {
    const std::int64_t sequence = blockIdx.x / s.heads;
    const std::int64_t head = blockIdx.x % s.heads;
    in_y = sequence * s.length * y_stride + head * s.width;
    in_qkv = sequence * s.length * qkv_stride + head * s.width;
    in_rows = std::int64_t{blockIdx.x} * s.length;
  }
};

/// Calls `visit(tile, column, i, row, in_row)` for each number of Sums<kTiles, kColumns> that this
/// thread holds: sums[tile][column][i] is at that row, and at that place in it.
template <int kTiles, int kColumns, typename Visit>
__device__ inline void ForEach(const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int column = 0; column < kColumns / 8; ++column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        visit(tile, column, i, tile * 16 + i / 2 * 8 + lane / 4, column * 8 + lane % 4 * 2 + i % 2);
      }
    }
  }
}

/// A block for each `tile` rows of each head. Blocks of all heads that do the same follow each
/// other: what takes longest can go first, whatever the head.
template <typename Kernel, typename... Arguments>
void LaunchFlash(Kernel* kernel, const AttentionSizes& s, int tile, int threads, int shared_bytes,
                 void* stream, Arguments... arguments) {
  Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "preparing attention");
  const dim3 grid(static_cast<unsigned>(s.sequences * s.heads),
                  static_cast<unsigned>((s.length + tile - 1) / tile));
  kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(shared_bytes),
           static_cast<cudaStream_t>(stream)>>>(s, arguments...);
  CheckLaunch("running attention");
}

/// Calls `run` with the width as a constant. REQUIRES: a multiple of 16, at most 128.
template <typename Run>
void WithFlashWidth(int width, const Run& run) {
  switch (width) {
    case 16:
      return run.template operator()<16>();
    case 32:
      return run.template operator()<32>();
    case 48:
      return run.template operator()<48>();
    case 64:
      return run.template operator()<64>();
    case 80:
      return run.template operator()<80>();
    case 96:
      return run.template operator()<96>();
    case 112:
      return run.template operator()<112>();
    default:
      return run.template operator()<128>();
  }
}

}  // namespace plimsoll::cuda

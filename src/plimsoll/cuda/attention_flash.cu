// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/attention.h"
#include "plimsoll/cuda/attention_flash.cuh"

/// The forward pass on tensor cores, as FlashAttention-2 does it (Dao, 2023): each warp keeps some
/// queries in registers, and goes through the keys with running largest scores and sums.
namespace plimsoll::cuda {
namespace {

/// Keys of one step.
constexpr int kKeys = 64;

template <int kWidth>
struct ForwardSizes {
  /// Wide heads leave no registers for more than 16 queries of a warp.
  static constexpr int kTiles = kWidth <= 64 ? 2 : 1;
  static constexpr int kWarps = kWidth <= 64 ? 4 : 8;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kQueries = kWarps * kTiles * 16;
  static constexpr int kTile = kKeys * kTileStride<kWidth>;
  /// Queries, and keys and values of two steps.
  static constexpr int kSharedBytes = 2 * (kQueries * kTileStride<kWidth> + 4 * kTile);
};

/// What a warp knows of its queries: two rows of each tile, as a thread holds them.
template <int kWidth, int kTiles>
struct Running {
  Sums<kTiles, kWidth> sums;
  float largest[kTiles][2];  ///< Of scores before they are scaled.
  float total[kTiles][2];    ///< Of this thread's columns only.

  __device__ Running() {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[tile][half] = -INFINITY;
        total[tile][half] = 0;
      }
#pragma unroll
      for (int column = 0; column < kWidth / 8; ++column) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[tile][column][i] = 0;
      }
    }
  }

  /// Turns scores into weights, and scales what was summed before to match them.
  __device__ void Take(Sums<kTiles, kKeys>& scores, float log2_scale) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = largest[tile][half];
#pragma unroll
        for (int column = 0; column < kKeys / 8; ++column) {
          most = fmaxf(most,
                       fmaxf(scores[tile][column][2 * half], scores[tile][column][2 * half + 1]));
        }
        most = fmaxf(most, __shfl_xor_sync(~0U, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0U, most, 2));
        // Every query sees key 0, which is in the first step: `most` is not infinite.
        const float factor = Exp2((largest[tile][half] - most) * log2_scale);
        const float shift = most * log2_scale;
        largest[tile][half] = most;
        float sum = 0;
#pragma unroll
        for (int column = 0; column < kKeys / 8; ++column) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& x = scores[tile][column][i];
            x = Exp2(x * log2_scale - shift);
            sum += x;
          }
        }
        total[tile][half] = total[tile][half] * factor + sum;
#pragma unroll
        for (int column = 0; column < kWidth / 8; ++column) {
          sums[tile][column][2 * half] *= factor;
          sums[tile][column][2 * half + 1] *= factor;
        }
      }
    }
  }
};

template <int kWidth>
__global__ void __launch_bounds__(ForwardSizes<kWidth>::kThreads)
    Forward(AttentionSizes s, const Bfloat16* qkv, Bfloat16* y, float* log_sum) {
  using Of = ForwardSizes<kWidth>;
  extern __shared__ __align__(16) Bfloat16 shared[];
  Bfloat16* queries = shared;
  Bfloat16* steps = queries + Of::kQueries * kTileStride<kWidth>;
  const FlashHead head(s);
  const Bfloat16* from = qkv + head.in_qkv;
  // Blocks with the most keys go first.
  const int begin = static_cast<int>(gridDim.y - 1 - blockIdx.y) * Of::kQueries;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * Of::kTiles * 16;
  const int warp_begin = begin + warp_row;
  const int keys_end = s.causal ? min(begin + Of::kQueries, s.length) : s.length;
  const int step_count = (keys_end + kKeys - 1) / kKeys;
  const auto copy_step = [&](int step) {
    Bfloat16* to = steps + step % 2 * 2 * Of::kTile;
    CopyTile<kWidth, kKeys, Of::kThreads>(from + head.y_stride, head.qkv_stride, step * kKeys,
                                          s.length, to);
    CopyTile<kWidth, kKeys, Of::kThreads>(from + 2 * head.y_stride, head.qkv_stride, step * kKeys,
                                          s.length, to + Of::kTile);
    CommitCopies();
  };
  CopyTile<kWidth, Of::kQueries, Of::kThreads>(from, head.qkv_stride, begin, s.length, queries);
  copy_step(0);

  LeftRows<kWidth, Of::kTiles> mine;
  Running<kWidth, Of::kTiles> running;
  const float log2_scale = s.scale * kLog2OfE;
  for (int step = 0; step < step_count; ++step) {
    if (step + 1 < step_count) {
      copy_step(step + 1);
      WaitForCopies<1>();
    } else {
      WaitForCopies<0>();
    }
    __syncthreads();
    if (step == 0) mine.Load(queries + warp_row * kTileStride<kWidth>);
    const int keys = step * kKeys;
    // The warp's last query may be before all of these keys.
    if (!s.causal || keys < warp_begin + Of::kTiles * 16) {
      const Bfloat16* tile = steps + step % 2 * 2 * Of::kTile;
      Sums<Of::kTiles, kKeys> scores;
      MultiplyRows<kWidth, Of::kTiles, kKeys>(mine, tile, scores);
      const bool all_seen =
          keys + kKeys <= s.length && (!s.causal || keys + kKeys - 1 <= warp_begin);
      if (!all_seen) {
        ForEach<Of::kTiles, kKeys>([&](int t, int column, int i, int row, int in_row) {
          const int key = keys + in_row;
          const bool seen = key < s.length && (!s.causal || key <= warp_begin + row);
          if (!seen) scores[t][column][i] = -INFINITY;
        });
      }
      running.Take(scores, log2_scale);
      AddWeighted<kWidth, Of::kTiles, kKeys>(scores, tile + Of::kTile, running.sums);
    }
    __syncthreads();
  }

  const int lane = static_cast<int>(threadIdx.x) % 32;
  float factors[Of::kTiles][2];
#pragma unroll
  for (int tile = 0; tile < Of::kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = running.total[tile][half];
      total += __shfl_xor_sync(~0U, total, 1);
      total += __shfl_xor_sync(~0U, total, 2);
      factors[tile][half] = 1 / total;
      const int row = warp_begin + tile * 16 + half * 8 + lane / 4;
      if (log_sum != nullptr && lane % 4 == 0 && row < s.length) {
        log_sum[head.in_rows + row] = running.largest[tile][half] * s.scale + __logf(total);
      }
    }
  }
  StoreRows<kWidth, Of::kTiles>(running.sums, factors, queries + warp_row * kTileStride<kWidth>,
                                y + head.in_y, head.y_stride, warp_begin, s.length);
}

template <int kWidth>
void Launch(const AttentionSizes& s, const AttentionForward& operands, void* stream) {
  using Of = ForwardSizes<kWidth>;
  LaunchFlash(Forward<kWidth>, s, Of::kQueries, Of::kThreads, Of::kSharedBytes, stream,
              static_cast<const Bfloat16*>(operands.qkv), static_cast<Bfloat16*>(operands.y),
              operands.log_sum);
}

}  // namespace

bool CanRunFlash(const AttentionSizes& sizes) {
  return sizes.bfloat16 && sizes.width % 16 == 0 && sizes.width <= 128;
}

void RunFlashForward(const AttentionSizes& sizes, const AttentionForward& operands, void* stream) {
  WithFlashWidth(sizes.width, [&]<int kWidth>() { Launch<kWidth>(sizes, operands, stream); });
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/attention_flash.cuh"

/// The backward pass on tensor cores, in two kernels: one keeps keys and goes through the queries,
/// one keeps queries and goes through the keys. Both compute scores again, so that nothing is added
/// up by several blocks: results are the same each time.
namespace plimsoll::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kRows = 16 * kWarps;  ///< That a block keeps.

template <int kWidth>
struct BackwardSizes {
  /// Rows that a block goes through in one step.
  static constexpr int kStep = kWidth <= 64 ? 64 : 32;
  /// Whether the rows that are kept fit in registers.
  static constexpr bool kInRegisters = kWidth <= 64;
  static constexpr int kKept = kRows * kTileStride<kWidth>;
  static constexpr int kTile = kStep * kTileStride<kWidth>;
  /// Two kinds of rows that are kept, two of two steps, and two numbers for each row of a step.
  static constexpr int kSharedBytes = 2 * (2 * kKept + 4 * kTile) + 4 * 2 * 2 * kStep;
};

/// Rows of a warp, in registers or still in their tile.
template <int kWidth, bool kInRegisters>
struct KeptRows {
  LeftRows<kWidth, 1> rows;

  __device__ void Load(const Bfloat16* tile) { rows.Load(tile); }
  template <int kColumns>
  __device__ void Multiply(const Bfloat16* right, Sums<1, kColumns>& sums) const {
    MultiplyRows<kWidth, 1, kColumns>(rows, right, sums);
  }
};
template <int kWidth>
struct KeptRows<kWidth, false> {
  const Bfloat16* rows;

  __device__ void Load(const Bfloat16* tile) { rows = tile; }
  template <int kColumns>
  __device__ void Multiply(const Bfloat16* right, Sums<1, kColumns>& sums) const {
    MultiplyRows<kWidth, 1, kColumns>(rows, right, sums);
  }
};

template <int kWidth>
__device__ void Clear(Sums<1, kWidth>& sums) {
#pragma unroll
  for (int column = 0; column < kWidth / 8; ++column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[0][column][i] = 0;
  }
}

/// dK and dV. Rows are keys, columns queries.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    BackwardKeys(AttentionSizes s, AttentionBackward operands) {
  using Of = BackwardSizes<kWidth>;
  constexpr int kStep = Of::kStep;
  extern __shared__ __align__(16) Bfloat16 shared[];
  Bfloat16* keys = shared;
  Bfloat16* values = keys + Of::kKept;
  Bfloat16* steps = values + Of::kKept;
  auto* numbers = reinterpret_cast<float*>(steps + 4 * Of::kTile);
  const FlashHead head(s);
  const Bfloat16* from = static_cast<const Bfloat16*>(operands.qkv) + head.in_qkv;
  const Bfloat16* dy = static_cast<const Bfloat16*>(operands.dy) + head.in_y;
  const int begin = static_cast<int>(blockIdx.y) * kRows;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int warp_begin = begin + warp_row;
  // A multiple of a step: queries before it see none of these keys.
  const int first = s.causal ? begin / kStep : 0;
  const int step_end = (s.length + kStep - 1) / kStep;
  const auto copy_step = [&](int step) {
    Bfloat16* to = steps + step % 2 * 2 * Of::kTile;
    CopyTile<kWidth, kStep, kThreads>(from, head.qkv_stride, step * kStep, s.length, to);
    CopyTile<kWidth, kStep, kThreads>(dy, head.y_stride, step * kStep, s.length, to + Of::kTile);
    CommitCopies();
    float* to_numbers = numbers + step % 2 * 2 * kStep;
    for (int i = static_cast<int>(threadIdx.x); i < kStep; i += kThreads) {
      const int query = step * kStep + i;
      const bool there = query < s.length;
      to_numbers[i] = there ? operands.log_sum[head.in_rows + query] * kLog2OfE : 0;
      to_numbers[kStep + i] = there ? operands.dots[head.in_rows + query] : 0;
    }
  };
  CopyTile<kWidth, kRows, kThreads>(from + head.y_stride, head.qkv_stride, begin, s.length, keys);
  CopyTile<kWidth, kRows, kThreads>(from + 2 * head.y_stride, head.qkv_stride, begin, s.length,
                                    values);
  copy_step(first);

  KeptRows<kWidth, Of::kInRegisters> my_keys;
  KeptRows<kWidth, Of::kInRegisters> my_values;
  Sums<1, kWidth> dk;
  Sums<1, kWidth> dv;
  Clear<kWidth>(dk);
  Clear<kWidth>(dv);
  const float log2_scale = s.scale * kLog2OfE;
  for (int step = first; step < step_end; ++step) {
    if (step + 1 < step_end) {
      copy_step(step + 1);
      WaitForCopies<1>();
    } else {
      WaitForCopies<0>();
    }
    __syncthreads();
    if (step == first) {
      my_keys.Load(keys + warp_row * kTileStride<kWidth>);
      my_values.Load(values + warp_row * kTileStride<kWidth>);
    }
    const int queries = step * kStep;
    // The warp's first key may be after all of these queries.
    if (!s.causal || queries + kStep > warp_begin) {
      const Bfloat16* query_tile = steps + step % 2 * 2 * Of::kTile;
      const Bfloat16* dy_tile = query_tile + Of::kTile;
      const float* log_sums = numbers + step % 2 * 2 * kStep;
      const float* dots = log_sums + kStep;
      Sums<1, kStep> weights;
      Sums<1, kStep> slopes;
      my_keys.template Multiply<kStep>(query_tile, weights);
      my_values.template Multiply<kStep>(dy_tile, slopes);
      const bool all_seen = !s.causal || warp_begin + 15 <= queries;
      ForEach<1, kStep>([&](int t, int column, int i, int row, int in_row) {
        const float x = Exp2(weights[t][column][i] * log2_scale - log_sums[in_row]);
        // Queries beyond the end are zeros, and so is what comes down to them.
        const bool seen = all_seen || warp_begin + row <= queries + in_row;
        weights[t][column][i] = seen ? x : 0;
        slopes[t][column][i] = weights[t][column][i] * (slopes[t][column][i] - dots[in_row]);
      });
      AddWeighted<kWidth, 1, kStep>(weights, dy_tile, dv);
      AddWeighted<kWidth, 1, kStep>(slopes, query_tile, dk);
    }
    __syncthreads();
  }
  const float scales[1][2] = {{s.scale, s.scale}};
  const float ones[1][2] = {{1, 1}};
  Bfloat16* to = static_cast<Bfloat16*>(operands.dqkv) + head.in_qkv;
  StoreRows<kWidth, 1>(dk, scales, keys + warp_row * kTileStride<kWidth>, to + head.y_stride,
                       head.qkv_stride, warp_begin, s.length);
  StoreRows<kWidth, 1>(dv, ones, values + warp_row * kTileStride<kWidth>, to + 2 * head.y_stride,
                       head.qkv_stride, warp_begin, s.length);
}

/// dQ. Rows are queries, columns keys.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    BackwardQueries(AttentionSizes s, AttentionBackward operands) {
  using Of = BackwardSizes<kWidth>;
  constexpr int kStep = Of::kStep;
  extern __shared__ __align__(16) Bfloat16 shared[];
  Bfloat16* queries = shared;
  Bfloat16* dys = queries + Of::kKept;
  Bfloat16* steps = dys + Of::kKept;
  const FlashHead head(s);
  const Bfloat16* from = static_cast<const Bfloat16*>(operands.qkv) + head.in_qkv;
  // Blocks with the most keys go first.
  const int begin = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kRows;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int warp_begin = begin + warp_row;
  const int keys_end = s.causal ? min(begin + kRows, s.length) : s.length;
  const int step_end = (keys_end + kStep - 1) / kStep;
  const auto copy_step = [&](int step) {
    Bfloat16* to = steps + step % 2 * 2 * Of::kTile;
    CopyTile<kWidth, kStep, kThreads>(from + head.y_stride, head.qkv_stride, step * kStep, s.length,
                                      to);
    CopyTile<kWidth, kStep, kThreads>(from + 2 * head.y_stride, head.qkv_stride, step * kStep,
                                      s.length, to + Of::kTile);
    CommitCopies();
  };
  CopyTile<kWidth, kRows, kThreads>(from, head.qkv_stride, begin, s.length, queries);
  CopyTile<kWidth, kRows, kThreads>(static_cast<const Bfloat16*>(operands.dy) + head.in_y,
                                    head.y_stride, begin, s.length, dys);
  copy_step(0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float log_sums[2];
  float dots[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = warp_begin + half * 8 + lane / 4;
    const bool there = query < s.length;
    log_sums[half] = there ? operands.log_sum[head.in_rows + query] * kLog2OfE : 0;
    dots[half] = there ? operands.dots[head.in_rows + query] : 0;
  }

  KeptRows<kWidth, Of::kInRegisters> my_queries;
  KeptRows<kWidth, Of::kInRegisters> my_dys;
  Sums<1, kWidth> dq;
  Clear<kWidth>(dq);
  const float log2_scale = s.scale * kLog2OfE;
  for (int step = 0; step < step_end; ++step) {
    if (step + 1 < step_end) {
      copy_step(step + 1);
      WaitForCopies<1>();
    } else {
      WaitForCopies<0>();
    }
    __syncthreads();
    if (step == 0) {
      my_queries.Load(queries + warp_row * kTileStride<kWidth>);
      my_dys.Load(dys + warp_row * kTileStride<kWidth>);
    }
    const int keys = step * kStep;
    if (!s.causal || keys < warp_begin + 16) {
      const Bfloat16* key_tile = steps + step % 2 * 2 * Of::kTile;
      Sums<1, kStep> weights;
      Sums<1, kStep> slopes;
      my_queries.template Multiply<kStep>(key_tile, weights);
      my_dys.template Multiply<kStep>(key_tile + Of::kTile, slopes);
      const bool all_seen =
          keys + kStep <= s.length && (!s.causal || keys + kStep - 1 <= warp_begin);
      ForEach<1, kStep>([&](int t, int column, int i, int row, int in_row) {
        const int key = keys + in_row;
        const float x = Exp2(weights[t][column][i] * log2_scale - log_sums[i / 2]);
        const bool seen = all_seen || (key < s.length && (!s.causal || key <= warp_begin + row));
        slopes[t][column][i] = seen ? x * (slopes[t][column][i] - dots[i / 2]) : 0;
      });
      AddWeighted<kWidth, 1, kStep>(slopes, key_tile, dq);
    }
    __syncthreads();
  }
  const float scales[1][2] = {{s.scale, s.scale}};
  StoreRows<kWidth, 1>(dq, scales, queries + warp_row * kTileStride<kWidth>,
                       static_cast<Bfloat16*>(operands.dqkv) + head.in_qkv, head.qkv_stride,
                       warp_begin, s.length);
}

template <int kWidth>
void Launch(const AttentionSizes& s, const AttentionBackward& operands, void* stream) {
  constexpr int kSharedBytes = BackwardSizes<kWidth>::kSharedBytes;
  LaunchFlash(BackwardKeys<kWidth>, s, kRows, kThreads, kSharedBytes, stream, operands);
  LaunchFlash(BackwardQueries<kWidth>, s, kRows, kThreads, kSharedBytes, stream, operands);
}

}  // namespace

void RunFlashBackward(const AttentionSizes& sizes, const AttentionBackward& operands,
                      void* stream) {
  WithFlashWidth(sizes.width, [&]<int kWidth>() { Launch<kWidth>(sizes, operands, stream); });
}

}  // namespace plimsoll::cuda

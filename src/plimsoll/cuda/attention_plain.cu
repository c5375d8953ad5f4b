// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include "plimsoll/cuda/attention.h"
#include "plimsoll/cuda/check.h"

/// Attention in floats. A block of 16 x 16 threads holds a tile of scores, each thread some rows
/// that follow each other and every 16th column.
namespace plimsoll::cuda {
namespace {

using Bfloat16 = __nv_bfloat16;

constexpr int kSide = 16;
constexpr int kThreads = kSide * kSide;

__device__ float Load(const float* at) { return *at; }
__device__ float Load(const Bfloat16* at) { return __bfloat162float(*at); }
__device__ void Store(float* at, float x) { *at = x; }
__device__ void Store(Bfloat16* at, float x) { *at = __float2bfloat16_rn(x); }

/// Where a head of a sequence is in [n, t, d] and [n, t, 3d].
struct Head {
  std::int64_t in_y;
  std::int64_t in_qkv;  ///< Of its queries; keys and values follow at multiples of y_stride.
  std::int64_t in_rows;
  int y_stride;
  int qkv_stride;

  __device__ explicit Head(const AttentionSizes& s)
      : y_stride(s.heads * s.width), qkv_stride(3 * s.heads * s.width) {
    const std::int64_t sequence = blockIdx.y / s.heads;
    const std::int64_t head = blockIdx.y % s.heads;
    in_y = sequence * s.length * y_stride + head * s.width;
    in_qkv = sequence * s.length * qkv_stride + head * s.width;
    in_rows = std::int64_t{blockIdx.y} * s.length;
  }
};

/// Copies rows to shared memory, with zeros beyond the sequence's end and beyond the head's width.
template <int kWidth, int kTile, typename T>
__device__ void LoadTile(const AttentionSizes& s, const T* from, int stride, int begin,
                         float (*to)[kWidth + 1]) {
  for (int i = threadIdx.x; i < kTile * kWidth; i += kThreads) {
    const int row = i / kWidth;
    const int column = i % kWidth;
    const bool inside = begin + row < s.length && column < s.width;
    to[row][column] = inside ? Load(from + std::int64_t{begin + row} * stride + column) : 0.0F;
  }
}

/// out[i][j] = left[row i] . right[column j].
template <int kWidth, int kTile>
__device__ void Products(const float (*left)[kWidth + 1], const float (*right)[kWidth + 1],
                         float (&out)[kTile / kSide][kTile / kSide]) {
  constexpr int kMine = kTile / kSide;
  const int row = threadIdx.x / kSide * kMine;
  const int column = threadIdx.x % kSide;
  for (int i = 0; i < kMine; ++i) {
    for (int j = 0; j < kMine; ++j) out[i][j] = 0;
  }
#pragma unroll 8
  for (int d = 0; d < kWidth; ++d) {
    float l[kMine];
    float r[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i) l[i] = left[row + i][d];
#pragma unroll
    for (int j = 0; j < kMine; ++j) r[j] = right[column + kSide * j][d];
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
#pragma unroll
      for (int j = 0; j < kMine; ++j) out[i][j] += l[i] * r[j];
    }
  }
}

/// sums[i][c] += sum over k of weights[row i][k] * rows[k][column c].
template <int kWidth, int kTile>
__device__ void Accumulate(const float (*weights)[kTile + 1], const float (*rows)[kWidth + 1],
                           float (&sums)[kTile / kSide][kWidth / kSide]) {
  constexpr int kMine = kTile / kSide;
  const int row = threadIdx.x / kSide * kMine;
  const int column = threadIdx.x % kSide;
#pragma unroll 4
  for (int k = 0; k < kTile; ++k) {
    float w[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i) w[i] = weights[row + i][k];
#pragma unroll
    for (int c = 0; c < kWidth / kSide; ++c) {
      const float x = rows[k][column + kSide * c];
#pragma unroll
      for (int i = 0; i < kMine; ++i) sums[i][c] += w[i] * x;
    }
  }
}

/// Writes sums, times a factor for each of the thread's rows.
template <int kWidth, int kTile, typename T>
__device__ void StoreTile(const AttentionSizes& s, T* to, int stride, int begin,
                          const float (&sums)[kTile / kSide][kWidth / kSide],
                          const float (&factors)[kTile / kSide]) {
  constexpr int kMine = kTile / kSide;
  for (int i = 0; i < kMine; ++i) {
    const int row = begin + threadIdx.x / kSide * kMine + i;
    if (row >= s.length) continue;
    for (int c = 0; c < kWidth / kSide; ++c) {
      const int column = threadIdx.x % kSide + kSide * c;
      if (column < s.width)
        Store(to + std::int64_t{row} * stride + column, sums[i][c] * factors[i]);
    }
  }
}

/// Over the 16 threads that share rows.
__device__ float MaxOfRow(float x) {
  for (int lane = kSide / 2; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, lane));
  return x;
}
__device__ float SumOfRow(float x) {
  for (int lane = kSide / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(~0U, x, lane);
  return x;
}

template <typename T, int kWidth, int kTile>
__global__ void __launch_bounds__(kThreads)
    Forward(AttentionSizes s, const T* qkv, T* y, float* log_sum) {
  extern __shared__ float shared[];
  using Tile = float[kWidth + 1];
  auto* q = reinterpret_cast<Tile*>(shared);
  Tile* k = q + kTile;
  Tile* v = k + kTile;
  auto* weights = reinterpret_cast<float(*)[kTile + 1]>(v + kTile);
  constexpr int kMine = kTile / kSide;
  const Head head(s);
  const int begin = static_cast<int>(blockIdx.x) * kTile;
  const int my_row = static_cast<int>(threadIdx.x) / kSide * kMine;
  const int my_column = static_cast<int>(threadIdx.x) % kSide;
  qkv += head.in_qkv;
  LoadTile<kWidth, kTile>(s, qkv, head.qkv_stride, begin, q);
  float sums[kMine][kWidth / kSide] = {};
  float largest[kMine];
  float total[kMine] = {};
  for (float& x : largest) x = -INFINITY;
  const int keys_end = s.causal ? min(begin + kTile, s.length) : s.length;
  for (int keys = 0; keys < keys_end; keys += kTile) {
    __syncthreads();
    LoadTile<kWidth, kTile>(s, qkv + head.y_stride, head.qkv_stride, keys, k);
    LoadTile<kWidth, kTile>(s, qkv + 2 * head.y_stride, head.qkv_stride, keys, v);
    __syncthreads();
    float scores[kMine][kMine];
    Products<kWidth, kTile>(q, k, scores);
    for (int i = 0; i < kMine; ++i) {
      float row_largest = largest[i];
      for (int j = 0; j < kMine; ++j) {
        const int key = keys + my_column + kSide * j;
        const bool seen = key < s.length && (!s.causal || key <= begin + my_row + i);
        scores[i][j] = seen ? scores[i][j] * s.scale : -INFINITY;
        row_largest = fmaxf(row_largest, scores[i][j]);
      }
      // The first tile holds key 0, which every query sees: never infinite from there on.
      row_largest = MaxOfRow(row_largest);
      const float factor = __expf(largest[i] - row_largest);
      largest[i] = row_largest;
      float row_sum = 0;
      for (int j = 0; j < kMine; ++j) {
        const float p = __expf(scores[i][j] - row_largest);
        weights[my_row + i][my_column + kSide * j] = p;
        row_sum += p;
      }
      total[i] = total[i] * factor + SumOfRow(row_sum);
      for (int c = 0; c < kWidth / kSide; ++c) sums[i][c] *= factor;
    }
    __syncthreads();
    Accumulate<kWidth, kTile>(weights, v, sums);
  }
  float factors[kMine];
  for (int i = 0; i < kMine; ++i) {
    factors[i] = 1 / total[i];
    const int row = begin + my_row + i;
    if (log_sum != nullptr && my_column == 0 && row < s.length) {
      log_sum[head.in_rows + row] = largest[i] + __logf(total[i]);
    }
  }
  StoreTile<kWidth, kTile>(s, y + head.in_y, head.y_stride, begin, sums, factors);
}

/// What both kernels of the backward pass compute of one tile: rows are queries, or keys.
template <int kWidth, int kTile, bool kRowsAreKeys>
__device__ void Slopes(const AttentionSizes& s, const Head& head, const AttentionBackward& operands,
                       const float (*row_x)[kWidth + 1], const float (*column_x)[kWidth + 1],
                       const float (*row_d)[kWidth + 1], const float (*column_d)[kWidth + 1],
                       int row_begin, int column_begin, float (*probabilities)[kTile + 1],
                       float (*slopes)[kTile + 1]) {
  constexpr int kMine = kTile / kSide;
  const int my_row = static_cast<int>(threadIdx.x) / kSide * kMine;
  const int my_column = static_cast<int>(threadIdx.x) % kSide;
  float scores[kMine][kMine];
  float gradients[kMine][kMine];
  Products<kWidth, kTile>(row_x, column_x, scores);
  Products<kWidth, kTile>(row_d, column_d, gradients);
  for (int i = 0; i < kMine; ++i) {
    for (int j = 0; j < kMine; ++j) {
      const int row = row_begin + my_row + i;
      const int column = column_begin + my_column + kSide * j;
      const int key = kRowsAreKeys ? row : column;
      const int query = kRowsAreKeys ? column : row;
      const bool seen = key < s.length && query < s.length && (!s.causal || key <= query);
      float p = 0;
      float slope = 0;
      if (seen) {
        p = __expf(scores[i][j] * s.scale - operands.log_sum[head.in_rows + query]);
        slope = p * (gradients[i][j] - operands.dots[head.in_rows + query]) * s.scale;
      }
      if (kRowsAreKeys) probabilities[my_row + i][my_column + kSide * j] = p;
      slopes[my_row + i][my_column + kSide * j] = slope;
    }
  }
}

template <typename T, int kWidth, int kTile>
__global__ void __launch_bounds__(kThreads)
    BackwardKeys(AttentionSizes s, AttentionBackward operands) {
  extern __shared__ float shared[];
  using Tile = float[kWidth + 1];
  auto* k = reinterpret_cast<Tile*>(shared);
  Tile* v = k + kTile;
  Tile* q = v + kTile;
  Tile* dy = q + kTile;
  auto* probabilities = reinterpret_cast<float(*)[kTile + 1]>(dy + kTile);
  auto* slopes = probabilities + kTile;
  constexpr int kMine = kTile / kSide;
  const Head head(s);
  const int begin = static_cast<int>(blockIdx.x) * kTile;
  const T* qkv = static_cast<const T*>(operands.qkv) + head.in_qkv;
  const T* dys = static_cast<const T*>(operands.dy) + head.in_y;
  LoadTile<kWidth, kTile>(s, qkv + head.y_stride, head.qkv_stride, begin, k);
  LoadTile<kWidth, kTile>(s, qkv + 2 * head.y_stride, head.qkv_stride, begin, v);
  float dk[kMine][kWidth / kSide] = {};
  float dv[kMine][kWidth / kSide] = {};
  // `begin` is a multiple of the tile: queries before it see none of these keys.
  for (int queries = s.causal ? begin : 0; queries < s.length; queries += kTile) {
    __syncthreads();
    LoadTile<kWidth, kTile>(s, qkv, head.qkv_stride, queries, q);
    LoadTile<kWidth, kTile>(s, dys, head.y_stride, queries, dy);
    __syncthreads();
    Slopes<kWidth, kTile, true>(s, head, operands, k, q, v, dy, begin, queries, probabilities,
                                slopes);
    __syncthreads();
    Accumulate<kWidth, kTile>(probabilities, dy, dv);
    Accumulate<kWidth, kTile>(slopes, q, dk);
  }
  float ones[kMine];
  for (float& x : ones) x = 1;
  T* to = static_cast<T*>(operands.dqkv) + head.in_qkv;
  StoreTile<kWidth, kTile>(s, to + head.y_stride, head.qkv_stride, begin, dk, ones);
  StoreTile<kWidth, kTile>(s, to + 2 * head.y_stride, head.qkv_stride, begin, dv, ones);
}

template <typename T, int kWidth, int kTile>
__global__ void __launch_bounds__(kThreads)
    BackwardQueries(AttentionSizes s, AttentionBackward operands) {
  extern __shared__ float shared[];
  using Tile = float[kWidth + 1];
  auto* q = reinterpret_cast<Tile*>(shared);
  Tile* dy = q + kTile;
  Tile* k = dy + kTile;
  Tile* v = k + kTile;
  auto* slopes = reinterpret_cast<float(*)[kTile + 1]>(v + kTile);
  constexpr int kMine = kTile / kSide;
  const Head head(s);
  const int begin = static_cast<int>(blockIdx.x) * kTile;
  const T* qkv = static_cast<const T*>(operands.qkv) + head.in_qkv;
  LoadTile<kWidth, kTile>(s, qkv, head.qkv_stride, begin, q);
  LoadTile<kWidth, kTile>(s, static_cast<const T*>(operands.dy) + head.in_y, head.y_stride, begin,
                          dy);
  float dq[kMine][kWidth / kSide] = {};
  const int keys_end = s.causal ? min(begin + kTile, s.length) : s.length;
  for (int keys = 0; keys < keys_end; keys += kTile) {
    __syncthreads();
    LoadTile<kWidth, kTile>(s, qkv + head.y_stride, head.qkv_stride, keys, k);
    LoadTile<kWidth, kTile>(s, qkv + 2 * head.y_stride, head.qkv_stride, keys, v);
    __syncthreads();
    Slopes<kWidth, kTile, false>(s, head, operands, q, k, dy, v, begin, keys, slopes, slopes);
    __syncthreads();
    Accumulate<kWidth, kTile>(slopes, k, dq);
  }
  float ones[kMine];
  for (float& x : ones) x = 1;
  StoreTile<kWidth, kTile>(s, static_cast<T*>(operands.dqkv) + head.in_qkv, head.qkv_stride, begin,
                           dq, ones);
}

/// One warp for each row of a head.
template <typename T>
__global__ void Dots(AttentionSizes s, const T* y, const T* dy, float* dots, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  // Rows are numbered as memory is: [n, t, heads].
  const std::int64_t at = row * s.width;
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < s.width; i += 32) {
    sum += Load(y + at + i) * Load(dy + at + i);
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0U, sum, lane);
  if (threadIdx.x % 32 != 0) return;
  const std::int64_t head = row % s.heads;
  const std::int64_t time = row / s.heads % s.length;
  const std::int64_t sequence = row / s.heads / s.length;
  dots[(sequence * s.heads + head) * s.length + time] = sum;
}

template <typename Kernel, typename... Arguments>
void Launch(Kernel* kernel, const AttentionSizes& s, int tile, int shared_bytes, void* stream,
            Arguments... arguments) {
  Check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "preparing attention");
  const dim3 grid(static_cast<unsigned>((s.length + tile - 1) / tile),
                  static_cast<unsigned>(s.sequences * s.heads));
  kernel<<<grid, kThreads, shared_bytes, static_cast<cudaStream_t>(stream)>>>(s, arguments...);
  CheckLaunch("running attention");
}

template <typename T, int kWidth, int kTile>
struct Sized {
  /// Of so many tiles of rows, and of scores.
  static int SharedBytes(int rows, int scores) {
    return 4 * kTile * (rows * (kWidth + 1) + scores * (kTile + 1));
  }
  static void RunForward(const AttentionSizes& s, const AttentionForward& o, void* stream) {
    Launch(Forward<T, kWidth, kTile>, s, kTile, SharedBytes(3, 1), stream,
           static_cast<const T*>(o.qkv), static_cast<T*>(o.y), o.log_sum);
  }
  static void RunBackward(const AttentionSizes& s, const AttentionBackward& o, void* stream) {
    Launch(BackwardKeys<T, kWidth, kTile>, s, kTile, SharedBytes(4, 2), stream, o);
    Launch(BackwardQueries<T, kWidth, kTile>, s, kTile, SharedBytes(4, 1), stream, o);
  }
};

/// Calls `run` with the narrowest kernels that are wide enough.
template <typename T, typename Run>
void WithWidth(int width, const Run& run) {
  if (width <= 16) {
    run(Sized<T, 16, 64>());
  } else if (width <= 32) {
    run(Sized<T, 32, 64>());
  } else if (width <= 64) {
    run(Sized<T, 64, 64>());
  } else if (width <= 128) {
    run(Sized<T, 128, 64>());
  } else {
    run(Sized<T, kWidestHead, 32>());
  }
}
template <typename Run>
void WithType(const AttentionSizes& sizes, const Run& run) {
  if (sizes.bfloat16) {
    WithWidth<Bfloat16>(sizes.width, run);
  } else {
    WithWidth<float>(sizes.width, run);
  }
}

}  // namespace

void AttentionDots(const AttentionSizes& sizes, const void* y, const void* dy, float* dots,
                   void* stream) {
  const std::int64_t rows = std::int64_t{sizes.sequences} * sizes.length * sizes.heads;
  const auto blocks = static_cast<unsigned>((rows + 7) / 8);
  const auto on = static_cast<cudaStream_t>(stream);
  if (sizes.bfloat16) {
    Dots<<<blocks, 256, 0, on>>>(sizes, static_cast<const Bfloat16*>(y),
                                 static_cast<const Bfloat16*>(dy), dots, rows);
  } else {
    Dots<<<blocks, 256, 0, on>>>(sizes, static_cast<const float*>(y), static_cast<const float*>(dy),
                                 dots, rows);
  }
  CheckLaunch("preparing attention's backward pass");
}

void RunPlainForward(const AttentionSizes& sizes, const AttentionForward& operands, void* stream) {
  WithType(sizes, [&](auto sized) { sized.RunForward(sizes, operands, stream); });
}

void RunPlainBackward(const AttentionSizes& sizes, const AttentionBackward& operands,
                      void* stream) {
  WithType(sizes, [&](auto sized) { sized.RunBackward(sizes, operands, stream); });
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>

#include "plimsoll/cuda/bias.h"
#include "plimsoll/cuda/check.h"

namespace plimsoll::cuda {
namespace {

using Bfloat16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kMostBlocks = 132 * 16;
constexpr int kLanes = 32;  ///< Threads of a block next to each other in a row.
constexpr int kBlockRows = 8;
constexpr int kParts = 512;  ///< Blocks that are worth having.

cudaStream_t Stream(void* stream) { return static_cast<cudaStream_t>(stream); }

/// Four numbers next to each other, at an address that is a multiple of their size.
__device__ float4 LoadFour(const float* at) { return *reinterpret_cast<const float4*>(at); }
__device__ float4 LoadFour(const Bfloat16* at) {
  const uint2 x = *reinterpret_cast<const uint2*>(at);
  return make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000U),
                     __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000U));
}
__device__ void StoreFour(float* at, float4 x) { *reinterpret_cast<float4*>(at) = x; }
__device__ void StoreFour(Bfloat16* at, float4 x) {
  __nv_bfloat162 pair[2] = {__floats2bfloat162_rn(x.x, x.y), __floats2bfloat162_rn(x.z, x.w)};
  *reinterpret_cast<uint2*>(at) = *reinterpret_cast<const uint2*>(pair);
}
__device__ float Load(const float* at) { return *at; }
__device__ float Load(const Bfloat16* at) { return __bfloat162float(*at); }
__device__ void Store(float* at, float x) { *at = x; }
__device__ void Store(Bfloat16* at, float x) { *at = __float2bfloat16_rn(x); }

template <typename T>
__global__ void AddBiasKernel(T* matrix, const float* __restrict__ bias, std::int64_t count,
                              std::int64_t columns) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    Store(matrix + i, Load(matrix + i) + bias[i % columns]);
  }
}

/// REQUIRES: columns are a multiple of 4.
template <typename T>
__global__ void AddBiasFours(T* matrix, const float* __restrict__ bias, std::int64_t fours,
                             std::int64_t columns) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < fours; i += step) {
    float4 x = LoadFour(matrix + 4 * i);
    const float4 b = LoadFour(bias + 4 * i % columns);
    x.x += b.x;
    x.y += b.y;
    x.z += b.z;
    x.w += b.w;
    StoreFour(matrix + 4 * i, x);
  }
}

/// Sums every gridDim.y-th row of blocks of rows; a block has kLanes * kBlockRows threads.
template <typename T, int kWidth>
__global__ void PartialSums(const T* __restrict__ matrix, float* __restrict__ partial,
                            std::int64_t rows, std::int64_t columns) {
  __shared__ float sums[kBlockRows][kLanes * kWidth];
  const std::int64_t column = (std::int64_t{blockIdx.x} * kLanes + threadIdx.x) * kWidth;
  const std::int64_t step = std::int64_t{gridDim.y} * kBlockRows;
  float sum[kWidth] = {};
  if (column < columns) {
    for (std::int64_t row = std::int64_t{blockIdx.y} * kBlockRows + threadIdx.y; row < rows;
         row += step) {
      const T* at = matrix + row * columns + column;
      if constexpr (kWidth == 4) {
        const float4 x = LoadFour(at);
        sum[0] += x.x;
        sum[1] += x.y;
        sum[2] += x.z;
        sum[3] += x.w;
      } else {
        sum[0] += Load(at);
      }
    }
  }
  for (int i = 0; i < kWidth; ++i) sums[threadIdx.y][threadIdx.x * kWidth + i] = sum[i];
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 0; i < kWidth; ++i) {
    float total = 0;
    for (int row = 0; row < kBlockRows; ++row) total += sums[row][threadIdx.x * kWidth + i];
    partial[blockIdx.y * columns + column + i] = total;
  }
}

/// A warp's worth of rows of partial sums for each column: a block has kLanes columns.
__global__ void TotalSums(const float* __restrict__ partial, float* __restrict__ sums, int parts,
                          std::int64_t columns) {
  __shared__ float shared[kBlockRows][kLanes];
  const std::int64_t column = std::int64_t{blockIdx.x} * kLanes + threadIdx.x;
  float sum = 0;
  if (column < columns) {
    for (int part = static_cast<int>(threadIdx.y); part < parts; part += kBlockRows) {
      sum += partial[part * columns + column];
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float total = 0;
  for (int row = 0; row < kBlockRows; ++row) total += shared[row][threadIdx.x];
  sums[column] = total;
}

template <typename T>
void LaunchBias(T* matrix, const float* bias, std::int64_t rows, std::int64_t columns,
                cudaStream_t stream) {
  const bool fours = columns % 4 == 0;
  const std::int64_t threads = rows * columns / (fours ? 4 : 1);
  const int blocks = static_cast<int>(
      std::clamp<std::int64_t>((threads + kThreads - 1) / kThreads, 1, kMostBlocks));
  if (fours) {
    AddBiasFours<<<blocks, kThreads, 0, stream>>>(matrix, bias, threads, columns);
  } else {
    AddBiasKernel<<<blocks, kThreads, 0, stream>>>(matrix, bias, threads, columns);
  }
  CheckLaunch("adding a bias");
}

template <typename T>
void LaunchPartial(const T* matrix, float* partial, std::int64_t rows, std::int64_t columns,
                   int width, int parts, cudaStream_t stream) {
  const dim3 block(kLanes, kBlockRows);
  const dim3 grid(static_cast<unsigned>((columns + kLanes * width - 1) / (kLanes * width)),
                  static_cast<unsigned>(parts));
  if (width == 4) {
    PartialSums<T, 4><<<grid, block, 0, stream>>>(matrix, partial, rows, columns);
  } else {
    PartialSums<T, 1><<<grid, block, 0, stream>>>(matrix, partial, rows, columns);
  }
  CheckLaunch("summing columns");
}

}  // namespace

void AddBias(void* matrix, bool bfloat16, const float* bias, std::int64_t rows,
             std::int64_t columns, void* stream) {
  if (bfloat16) {
    LaunchBias(static_cast<Bfloat16*>(matrix), bias, rows, columns, Stream(stream));
  } else {
    LaunchBias(static_cast<float*>(matrix), bias, rows, columns, Stream(stream));
  }
}

ColumnSums::ColumnSums(std::int64_t rows, std::int64_t columns, bool bfloat16)
    : rows_(rows), columns_(columns), bfloat16_(bfloat16), width_(columns % 4 == 0 ? 4 : 1) {
  const std::int64_t across = (columns + kLanes * width_ - 1) / (kLanes * width_);
  const std::int64_t down = (rows + kBlockRows - 1) / kBlockRows;
  parts_ = static_cast<int>(std::clamp<std::int64_t>(kParts / across, 1, down));
}

Bytes ColumnSums::workspace_bytes() const { return parts_ * columns_ * 4; }

void ColumnSums::Run(const void* matrix, float* sums, std::byte* workspace, void* stream) const {
  auto* partial = reinterpret_cast<float*>(workspace);
  if (bfloat16_) {
    LaunchPartial(static_cast<const Bfloat16*>(matrix), partial, rows_, columns_, width_, parts_,
                  Stream(stream));
  } else {
    LaunchPartial(static_cast<const float*>(matrix), partial, rows_, columns_, width_, parts_,
                  Stream(stream));
  }
  TotalSums<<<static_cast<unsigned>((columns_ + kLanes - 1) / kLanes), dim3(kLanes, kBlockRows), 0,
              Stream(stream)>>>(partial, sums, parts_, columns_);
  CheckLaunch("summing columns");
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/cuda/tiles.cuh"

/// Rows that stay in registers: some warps of a block of kTileThreads have a row between them, each
/// lane `kVectors` vectors of it, and the block has as many rows at once as that leaves.
namespace plimsoll::cuda {

inline constexpr int kMostRowVectors = 4;

struct RowGroups {
  std::int64_t rows = 0;
  int columns = 0;
  int warps = 0;    ///< Of a row: 1, 2, 4 or 8; 0 if rows do not fit.
  int vectors = 0;  ///< Of a lane.

  int groups() const { return kTileWarps / warps; }
};

inline RowGroups GroupRows(std::int64_t rows, std::int64_t columns, int vector) {
  RowGroups result{.rows = rows, .columns = static_cast<int>(columns)};
  if (columns % vector != 0) return result;
  const std::int64_t needed = columns / vector;
  int warps = 1;
  while (warps < kTileWarps && warps * kWarp * kMostRowVectors < needed) warps *= 2;
  if (warps * kWarp * kMostRowVectors < needed) return result;
  result.warps = warps;
  result.vectors = static_cast<int>(CeilDiv(needed, warps * kWarp));
  return result;
}

/// Calls `body` with `vectors` as a constant. REQUIRES: it is 1 to kMostRowVectors.
template <typename Body>
void WithVectors(int vectors, const Body& body) {
  switch (vectors) {
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    default:
      return body(std::integral_constant<int, 4>{});
  }
}

/// Where a thread is: of which of the block's rows, and where in it.
struct RowPlace {
  __device__ explicit RowPlace(const RowGroups& groups)
      : warps(groups.warps),
        group(static_cast<int>(threadIdx.x) / (groups.warps * kWarp)),
        lane(static_cast<int>(threadIdx.x) % (groups.warps * kWarp)) {}

  int warps;
  int group;
  int lane;
};

/// Adds two numbers over the warps of a row; all its threads get the same bits. Every thread of the
/// block calls it. `shared` is of 2 * kTileWarps, and another one than in the call before.
__device__ __forceinline__ float2 RowSum(float2 value, const RowPlace& place, float2* shared) {
  value.x = WarpSum(value.x);
  value.y = WarpSum(value.y);
  if (place.warps == 1) return value;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) shared[warp] = value;
  __syncthreads();
  float2 sum{0, 0};
  for (int i = 0; i < place.warps; ++i) {
    const float2 other = shared[place.group * place.warps + i];
    sum.x += other.x;
    sum.y += other.y;
  }
  return sum;
}

/// The same over a whole block of kTileThreads.
__device__ __forceinline__ float2 BlockSum(float2 value, float2* shared) {
  value.x = WarpSum(value.x);
  value.y = WarpSum(value.y);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  float2 sum{0, 0};
#pragma unroll
  for (int i = 0; i < kTileWarps; ++i) {
    sum.x += shared[i].x;
    sum.y += shared[i].y;
  }
  return sum;
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/cuda/vectors.cuh"

/// Rows of channels, cut into tiles for blocks of threads. Threads lie along the channels, a vector
/// each, and then along the rows; a block goes down its chunk of rows, always at the same channels:
///
///      tile 0 (16 vectors)       tile 1
///     +------------------------+------------------------+
///     | y = 0: x = 0, 1, .. 15 |                        |
///     | y = 1: x = 0, 1, .. 15 |                        |  chunk 0
///     | ...                    |                        |
///     +------------------------+------------------------+
///     |                        |                        |  chunk 1
///
/// A cut depends on the shape alone, not on the card: sums are the same on all.
namespace plimsoll::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kTileWarps = kTileThreads / kWarp;
/// Of an H200; a constant, so that results do not depend on the card.
inline constexpr int kProcessors = 132;

struct Tiling {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::int64_t chunk = 0;  ///< Rows of a block.
  int lanes_log2 = 0;      ///< Vectors of a tile: at most a warp's.
  unsigned tiles = 0;
  unsigned chunks = 0;

  dim3 grid() const { return {tiles, chunks}; }
};

/// How many channels a thread takes at once: what fills 16 bytes if it divides them.
template <typename T>
int VectorOf(std::int64_t channels) {
  if (channels % kFullVector<T> == 0) return kFullVector<T>;
  return channels % 4 == 0 ? 4 : 1;
}

/// Calls `body` with that as a constant.
template <typename T, typename Body>
void WithVector(std::int64_t channels, const Body& body) {
  const int vector = VectorOf<T>(channels);
  if (vector == kFullVector<T>) {
    body(std::integral_constant<int, kFullVector<T>>{});
  } else if (vector == 4) {
    body(std::integral_constant<int, 4>{});
  } else {
    body(std::integral_constant<int, 1>{});
  }
}

/// Cuts for about `blocks` blocks, unless a thread would then have less than `least` rows.
inline Tiling Tile(std::int64_t rows, std::int64_t channels, int vector, std::int64_t blocks,
                   std::int64_t least = 4) {
  const std::int64_t vectors = CeilDiv(channels, vector);
  // As wide as leaves the fewest threads idle, but 8 lanes, or 128 bytes, where there are as many.
  const auto padded = [&](int log2) { return CeilDiv(vectors, 1LL << log2) << log2; };
  int lanes_log2 = 5;
  for (const int log2 : {4, 3}) {
    if (padded(log2) < padded(lanes_log2)) lanes_log2 = log2;
  }
  while (lanes_log2 > 0 && (1LL << (lanes_log2 - 1)) >= vectors) --lanes_log2;
  const std::int64_t tiles = CeilDiv(vectors, 1LL << lanes_log2);
  const std::int64_t step = kTileThreads >> lanes_log2;
  const std::int64_t wanted = std::clamp<std::int64_t>(blocks / tiles, 1, 32768);
  const std::int64_t steps = std::max<std::int64_t>(CeilDiv(CeilDiv(rows, wanted), step), least);
  return {.rows = rows,
          .channels = channels,
          .chunk = steps * step,
          .lanes_log2 = lanes_log2,
          .tiles = static_cast<unsigned>(tiles),
          .chunks = static_cast<unsigned>(CeilDiv(rows, steps * step))};
}

/// Where a thread is in its tile.
template <int kVector>
struct Place {
  __device__ Place(const Tiling& tiling, unsigned tile)
      : x(static_cast<int>(threadIdx.x) & ((1 << tiling.lanes_log2) - 1)),
        y(static_cast<int>(threadIdx.x) >> tiling.lanes_log2),
        step(kTileThreads >> tiling.lanes_log2),
        channel(((static_cast<std::int64_t>(tile) << tiling.lanes_log2) + x) * kVector),
        active(channel < tiling.channels) {}

  int x;
  int y;
  int step;  ///< Rows from one y of the block's to the same of its next round.
  std::int64_t channel;
  bool active;
};

/// Adds what the threads of a block have for each channel of their tile, and calls
/// `take(sum, channel, value)` for each on some thread. Every thread of the block calls it, once.
template <int kSums, int kVector, typename Take>
__device__ void ForTileSums(float (&sums)[kSums][kVector], const Tiling& tiling, unsigned tile,
                            const Take& take) {
  __shared__ float shared[kSums * kVector * kTileWarps * kWarp];
  const int lanes = 1 << tiling.lanes_log2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int sum = 0; sum < kSums; ++sum) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      float value = sums[sum][i];
      // Lanes that are `lanes` apart have the same channels.
      for (int offset = kWarp / 2; offset >= lanes; offset /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, offset);
      }
      if (lane < lanes) shared[((sum * kVector + i) * kTileWarps + warp) * lanes + lane] = value;
    }
  }
  __syncthreads();
  const int outputs = kSums * kVector * lanes;
  for (int output = static_cast<int>(threadIdx.x); output < outputs; output += kTileThreads) {
    const int x = output & (lanes - 1);
    const int which = output >> tiling.lanes_log2;
    float value = 0;
#pragma unroll
    for (int i = 0; i < kTileWarps; ++i) value += shared[(which * kTileWarps + i) * lanes + x];
    const std::int64_t channel =
        ((static_cast<std::int64_t>(tile) << tiling.lanes_log2) + x) * kVector + which % kVector;
    if (channel < tiling.channels) take(which / kVector, channel, value);
  }
}

/// The same, to `to[sum * channels + channel]`.
template <int kSums, int kVector>
__device__ void StoreTileSums(float (&sums)[kSums][kVector], const Tiling& tiling, unsigned tile,
                              float* to) {
  ForTileSums(sums, tiling, tile, [&](int sum, std::int64_t channel, float value) {
    to[sum * tiling.channels + channel] = value;
  });
}

/// What partial sums are added up with: a block of kWarp * kWarp threads has kWarp channels.
inline constexpr int kFinishThreads = kWarp * kWarp;
inline unsigned FinishBlocks(std::int64_t channels) {
  return static_cast<unsigned>(CeilDiv(channels, kWarp));
}
/// The channel that a warp of such a block gets the sums of.
__device__ __forceinline__ std::int64_t FinishChannel() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x / kWarp;
}

struct TwoSums {
  double first;
  double second;
};

/// Adds partial sums, `parts` times two rows of channels. All lanes of a warp get those of its
/// channel. Every thread of the block calls it, once.
__device__ inline TwoSums AddPartials(const float* partials, unsigned parts,
                                      std::int64_t channels) {
  __shared__ double shared[2][kWarp][kWarp + 1];
  const int x = static_cast<int>(threadIdx.x) % kWarp;
  const int y = static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * kWarp + x;
  double first = 0;
  double second = 0;
  if (channel < channels) {
#pragma unroll 4
    for (unsigned part = y; part < parts; part += kWarp) {
      const float* row = partials + 2 * static_cast<std::int64_t>(part) * channels + channel;
      first += static_cast<double>(row[0]);
      second += static_cast<double>(row[channels]);
    }
  }
  shared[0][y][x] = first;
  shared[1][y][x] = second;
  __syncthreads();
  return {WarpSum(shared[0][x][y]), WarpSum(shared[1][x][y])};
}

}  // namespace plimsoll::cuda

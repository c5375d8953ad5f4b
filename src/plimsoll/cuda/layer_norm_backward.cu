// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/layer_norm.cuh"

/// Layer norm backward. With n the normalized x and g = dy gamma:
///
///     dx = inv_std (g - mean of g - n mean of g n), dgamma = sum of dy n, dbeta = sum of dy
///
/// the means over a row, the sums over all rows. Rows that fit in registers are read once: a block
/// goes from row to row and adds up its part of dgamma and dbeta on the way.
namespace plimsoll::cuda {
namespace {

/// Two to a processor: each leaves partial sums, and has many registers.
constexpr std::int64_t kMostBlocks = kProcessors * 2;

template <typename T>
struct Backward {
  const T* x;
  const T* dy;
  const float* gamma;
  const float* mean;
  const float* inv_std;
  T* dx;
  float* partials;  ///< Of each block: a row for dgamma, one for dbeta.
};

template <typename T, int kVectors>
__global__ void __launch_bounds__(kTileThreads, 2) SpreadRows(Backward<T> b, RowGroups groups) {
  constexpr int kVector = kFullVector<T>;
  __shared__ float2 shared[2][kTileWarps];
  extern __shared__ float sums[];  // A row of dgamma, one of dbeta; if a block has several rows.
  const RowPlace place(groups);
  const int at_once = kTileWarps / groups.warps;
  const auto column = [&](int i) { return (place.lane + i * place.warps * kWarp) * kVector; };
  float dgamma[kVectors][kVector] = {};
  float dbeta[kVectors][kVector] = {};
  int turn = 0;
  for (std::int64_t base = static_cast<std::int64_t>(blockIdx.x) * at_once; base < groups.rows;
       base += static_cast<std::int64_t>(gridDim.x) * at_once, turn ^= 1) {
    const std::int64_t row = base + place.group;
    const bool valid = row < groups.rows;
    const std::int64_t offset = row * groups.columns;
    Raw<T, kVector> xs[kVectors] = {};
    Raw<T, kVector> dys[kVectors] = {};
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (!valid || column(i) >= groups.columns) continue;
      xs[i] = LoadRaw<kVector>(b.x + offset + column(i));
      dys[i] = LoadRaw<kVector>(b.dy + offset + column(i));
    }
    const float mean = valid ? b.mean[row] : 0;
    const float inv_std = valid ? b.inv_std[row] : 0;
    float2 means{0, 0};
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (!valid || column(i) >= groups.columns) continue;
      float values[kVector];
      float slopes[kVector];
      float gamma[kVector];
      Unpack<T, kVector>(xs[i], values);
      Unpack<T, kVector>(dys[i], slopes);
      LoadFloats(b.gamma + column(i), gamma);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const float normal = (values[k] - mean) * inv_std;
        dgamma[i][k] += slopes[k] * normal;
        dbeta[i][k] += slopes[k];
        means.x += slopes[k] * gamma[k];
        means.y += slopes[k] * gamma[k] * normal;
      }
    }
    means = RowSum(means, place, shared[turn]);
    means.x /= static_cast<float>(groups.columns);
    means.y /= static_cast<float>(groups.columns);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (!valid || column(i) >= groups.columns) continue;
      float values[kVector];
      float slopes[kVector];
      float gamma[kVector];
      Unpack<T, kVector>(xs[i], values);
      Unpack<T, kVector>(dys[i], slopes);
      LoadFloats(b.gamma + column(i), gamma);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const float normal = (values[k] - mean) * inv_std;
        values[k] = inv_std * (slopes[k] * gamma[k] - means.x - normal * means.y);
      }
      Store(b.dx + offset + column(i), values);
    }
  }
  // Groups add to the block's sums one after the other; the last writes them.
  float* partials = b.partials + 2 * static_cast<std::int64_t>(blockIdx.x) * groups.columns;
  for (int group = 0; group < at_once; ++group) {
    if (group > 0) __syncthreads();
    if (place.group != group) continue;
    const bool last = group == at_once - 1;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (column(i) >= groups.columns) continue;
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const int at = column(i) + k;
        const float first = dgamma[i][k] + (group > 0 ? sums[at] : 0);
        const float second = dbeta[i][k] + (group > 0 ? sums[groups.columns + at] : 0);
        float* to = last ? partials : sums;
        to[at] = first;
        to[groups.columns + at] = second;
      }
    }
  }
}

/// Any row: a block reads it twice.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) SpreadAnyRow(Backward<T> b, std::int64_t columns) {
  __shared__ float2 shared[kTileWarps];
  const std::int64_t offset = blockIdx.x * columns;
  const float mean = b.mean[blockIdx.x];
  const float inv_std = b.inv_std[blockIdx.x];
  float2 means{0, 0};
  for (std::int64_t i = threadIdx.x; i < columns; i += kTileThreads) {
    const float slope = LoadOne(b.dy + offset + i) * b.gamma[i];
    means.x += slope;
    means.y += slope * ((LoadOne(b.x + offset + i) - mean) * inv_std);
  }
  means = BlockSum(means, shared);
  means.x /= static_cast<float>(columns);
  means.y /= static_cast<float>(columns);
  for (std::int64_t i = threadIdx.x; i < columns; i += kTileThreads) {
    const float normal = (LoadOne(b.x + offset + i) - mean) * inv_std;
    const float slope = LoadOne(b.dy + offset + i) * b.gamma[i];
    StoreOne(b.dx + offset + i, inv_std * (slope - means.x - normal * means.y));
  }
}

/// The partial sums for any rows, before dx is written over dy.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) SumAnyRows(Backward<T> b, Tiling tiling) {
  const Place<1> place(tiling, blockIdx.x);
  float sums[2][1] = {};
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  for (std::int64_t row = begin + place.y; row < end && place.active; row += place.step) {
    const std::int64_t at = row * tiling.channels + place.channel;
    const float slope = LoadOne(b.dy + at);
    sums[0][0] += slope * ((LoadOne(b.x + at) - b.mean[row]) * b.inv_std[row]);
    sums[1][0] += slope;
  }
  StoreTileSums(sums, tiling, blockIdx.x, b.partials + 2 * blockIdx.y * tiling.channels);
}

__global__ void __launch_bounds__(kFinishThreads)
    FinishRows(const float* partials, unsigned parts, std::int64_t columns, float* dgamma,
               float* dbeta) {
  const TwoSums sums = AddPartials(partials, parts, columns);
  const std::int64_t column = FinishChannel();
  if (threadIdx.x % kWarp != 0 || column >= columns) return;
  dgamma[column] = static_cast<float>(sums.first);
  dbeta[column] = static_cast<float>(sums.second);
}

/// How the sums over rows are cut: the parts that are left to add.
struct Cut {
  RowGroups groups;
  Tiling tiling;  ///< If rows do not fit in registers.
  unsigned parts = 0;
};

Cut CutOf(std::int64_t rows, std::int64_t columns, int vector) {
  Cut cut{.groups = GroupRows(rows, columns, vector)};
  if (cut.groups.warps > 0) {
    cut.parts = static_cast<unsigned>(std::min(CeilDiv(rows, cut.groups.groups()), kMostBlocks));
  } else {
    cut.tiling = Tile(rows, columns, 1, kProcessors * 8);
    cut.parts = cut.tiling.chunks;
  }
  return cut;
}

template <typename T>
void Launch(const Backward<T>& b, const Cut& cut, cudaStream_t stream) {
  const RowGroups& groups = cut.groups;
  if (groups.warps == 0) {
    SumAnyRows<T><<<cut.tiling.grid(), kTileThreads, 0, stream>>>(b, cut.tiling);
    CheckLaunch("layer_norm_backward: sums");
    SpreadAnyRow<T>
        <<<static_cast<unsigned>(groups.rows), kTileThreads, 0, stream>>>(b, cut.tiling.channels);
  } else {
    const std::size_t bytes = groups.groups() > 1 ? groups.columns * 2 * sizeof(float) : 0;
    WithVectors(groups.vectors, [&](auto vectors) {
      SpreadRows<T, vectors()><<<cut.parts, kTileThreads, bytes, stream>>>(b, groups);
    });
  }
  CheckLaunch("layer_norm_backward: gradient");
}

}  // namespace

nn::Kernel PrepareLayerNormBackward(const nn::OpSpec& spec) {
  nn::RequireOperands(spec, 5, 3);
  const std::int64_t rows = nn::Rows(spec, spec.reads[0]);
  const std::int64_t columns = nn::Columns(spec, spec.reads[0]);
  const nn::ElementType type =
      ActivationType(spec, {&spec.reads[0], &spec.reads[1], &spec.writes[0]});
  nn::RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  nn::RequireShape(spec, spec.reads[1], spec.reads[0].shape);
  RequireFloats(spec, spec.reads[2], columns);
  for (std::size_t i = 3; i < 5; ++i) RequireFloats(spec, spec.reads[i], rows);
  for (std::size_t i = 1; i < 3; ++i) RequireFloats(spec, spec.writes[i], columns);
  const int vector = type == nn::ElementType::kFloat ? kFullVector<float> : kFullVector<Bfloat16>;
  const Cut cut = CutOf(rows, columns, vector);
  return {.workspace_bytes = cut.parts * (2 * columns * 4),
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            auto* partials = Out<float>(launch, 3);
            WithType(type, [&](auto element) {
              using T = decltype(element);
              Launch<T>({.x = In<T>(launch, 0),
                         .dy = In<T>(launch, 1),
                         .gamma = In<float>(launch, 2),
                         .mean = In<float>(launch, 3),
                         .inv_std = In<float>(launch, 4),
                         .dx = Out<T>(launch, 0),
                         .partials = partials},
                        cut, StreamOf(launch));
            });
            FinishRows<<<FinishBlocks(columns), kFinishThreads, 0, StreamOf(launch)>>>(
                partials, cut.parts, columns, Out<float>(launch, 1), Out<float>(launch, 2));
            CheckLaunch("layer_norm_backward: parameters");
          }};
}

}  // namespace plimsoll::cuda

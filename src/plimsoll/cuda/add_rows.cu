// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/cuda/add_rows.cuh"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/tiles.cuh"

namespace plimsoll::cuda {
namespace {

/// Rows of the tiling are those that are added; a block of grid.z has some of the sequences.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    AddRows(const T* x, const float* rows, T* y, std::int64_t sequences, Tiling tiling) {
  constexpr int kUnroll = 4;
  const Place<kVector> place(tiling, blockIdx.x);
  if (!place.active) return;
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  const std::int64_t stride = tiling.rows * tiling.channels;  // Of sequences.
  for (std::int64_t row = begin + place.y; row < end; row += place.step) {
    const std::int64_t first = row * tiling.channels + place.channel;
    float added[kVector];
    LoadFloats(rows + first, added);
    for (std::int64_t base = blockIdx.z * kUnroll; base < sequences; base += gridDim.z * kUnroll) {
      Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (base + i < sequences) raws[i] = LoadRaw<kVector>(x + first + (base + i) * stride);
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (base + i >= sequences) continue;
        float values[kVector];
        Unpack<T, kVector>(raws[i], values);
#pragma unroll
        for (int k = 0; k < kVector; ++k) values[k] += added[k];
        Store(y + first + (base + i) * stride, values);
      }
    }
  }
}

/// Adds sequences in their order; rows of the tiling beyond `length` become 0.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    SumSequences(const T* dy, float* drows, std::int64_t sequences, std::int64_t length,
                 Tiling tiling) {
  constexpr int kUnroll = 8;
  const Place<kVector> place(tiling, blockIdx.x);
  if (!place.active) return;
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  const std::int64_t stride = length * tiling.channels;
  for (std::int64_t row = begin + place.y; row < end; row += place.step) {
    const std::int64_t first = row * tiling.channels + place.channel;
    float sums[kVector] = {};
    for (std::int64_t base = 0; base < sequences && row < length; base += kUnroll) {
      Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (base + i < sequences) raws[i] = LoadRaw<kVector>(dy + first + (base + i) * stride);
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        if (base + i >= sequences) continue;
        float values[kVector];
        Unpack<T, kVector>(raws[i], values);
#pragma unroll
        for (int k = 0; k < kVector; ++k) sums[k] += values[k];
      }
    }
    Store(drows + first, sums);
  }
}

}  // namespace

nn::Kernel PrepareAddRows(const nn::OpSpec& spec) {
  const bool forward = spec.kind == nn::OpKind::kAddRowsForward;
  nn::RequireOperands(spec, forward ? 2 : 1, 1);
  const nn::Tensor& x = spec.reads[0];
  const nn::Tensor& rows = forward ? spec.reads[1] : spec.writes[0];
  nn::RequireRank(spec, x, 3);
  nn::RequireRank(spec, rows, 2);
  nn::RequireType(spec, rows, nn::ElementType::kFloat);
  const std::int64_t sequences = x.shape[0];
  const std::int64_t length = x.shape[1];
  const std::int64_t width = x.shape[2];
  const std::int64_t all = rows.shape[0];
  if (all < length || rows.shape[1] != width) {
    nn::Refuse(spec, "there should be as many rows as a sequence is long, of its width");
  }
  if (forward) nn::RequireShape(spec, spec.writes[0], x.shape);
  const nn::ElementType type = ActivationType(spec, {&x, forward ? &spec.writes[0] : &x});
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    const cudaStream_t stream = StreamOf(launch);
    WithType(type, [&](auto element) {
      using T = decltype(element);
      WithVector<T>(width, [&](auto v) {
        const Tiling tiling = Tile(forward ? length : all, width, v(), kProcessors * 16, 1);
        dim3 grid = tiling.grid();
        if (forward) {
          const std::int64_t wanted = CeilDiv(kProcessors * 16, grid.x * grid.y);
          grid.z =
              static_cast<unsigned>(std::clamp<std::int64_t>(CeilDiv(sequences, 4), 1, wanted));
          AddRows<T, v()><<<grid, kTileThreads, 0, stream>>>(In<T>(launch, 0), In<float>(launch, 1),
                                                             Out<T>(launch, 0), sequences, tiling);
          CheckLaunch("add_rows_forward");
        } else {
          SumSequences<T, v()><<<grid, kTileThreads, 0, stream>>>(
              In<T>(launch, 0), Out<float>(launch, 0), sequences, length, tiling);
          CheckLaunch("add_rows_backward");
        }
      });
    });
  }};
}

}  // namespace plimsoll::cuda

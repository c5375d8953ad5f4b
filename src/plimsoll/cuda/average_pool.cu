// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/windows.cuh"

namespace plimsoll::cuda {
namespace {

/// What one pixel of a window counts.
__device__ __forceinline__ float Share(Span rows, Span columns) {
  return 1 / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads) Average(const T* x, T* y, Windows w) {
  const auto out_row = static_cast<int>(blockIdx.x % static_cast<unsigned>(w.rows.out));
  const std::int64_t image = blockIdx.x / static_cast<unsigned>(w.rows.out);
  const Span rows = w.rows.PixelsOf(out_row);
  const std::int64_t row_size = static_cast<std::int64_t>(w.columns.extent) * w.channels;
  x += image * w.rows.extent * row_size;
  ForRowVectors<kVector>(w.columns.out, w.channels, [&](int column, int channel) {
    const Span columns = w.columns.PixelsOf(column);
    float sums[kVector] = {};
    for (int row = rows.begin; row < rows.end; ++row) {
#pragma unroll 3
      for (int at = columns.begin; at < columns.end; ++at) {
        float values[kVector];
        Load(x + row * row_size + at * w.channels + channel, values);
#pragma unroll
        for (int k = 0; k < kVector; ++k) sums[k] += values[k];
      }
    }
    const float share = Share(rows, columns);
#pragma unroll
    for (int k = 0; k < kVector; ++k) sums[k] *= share;
    Store(
        y + (static_cast<std::int64_t>(blockIdx.x) * w.columns.out + column) * w.channels + channel,
        sums);
  });
}

/// Each pixel adds its share of the windows that it is in.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads) AverageBackward(const T* dy, T* dx, Windows w) {
  const auto row = static_cast<int>(blockIdx.x % static_cast<unsigned>(w.rows.extent));
  const std::int64_t image = blockIdx.x / static_cast<unsigned>(w.rows.extent);
  const Span out_rows = w.rows.WindowsOf(row);
  ForRowVectors<kVector>(w.columns.extent, w.channels, [&](int column, int channel) {
    const Span out_columns = w.columns.WindowsOf(column);
    float sums[kVector] = {};
    for (int out_row = out_rows.begin; out_row < out_rows.end; ++out_row) {
      const Span rows = w.rows.PixelsOf(out_row);
#pragma unroll 2
      for (int at = out_columns.begin; at < out_columns.end; ++at) {
        const float share = Share(rows, w.columns.PixelsOf(at));
        float slopes[kVector];
        Load(dy + ((image * w.rows.out + out_row) * w.columns.out + at) * w.channels + channel,
             slopes);
#pragma unroll
        for (int k = 0; k < kVector; ++k) sums[k] += slopes[k] * share;
      }
    }
    Store(dx + (static_cast<std::int64_t>(blockIdx.x) * w.columns.extent + column) * w.channels +
              channel,
          sums);
  });
}

/// One image and tile a block: tiling.rows are the image's pixels.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads) GlobalAverage(const T* x, T* y, Tiling tiling) {
  constexpr int kUnroll = 4;
  const unsigned tile = blockIdx.x % tiling.tiles;
  const std::int64_t image = blockIdx.x / tiling.tiles;
  const Place<kVector> place(tiling, tile);
  float sums[1][kVector] = {};
  const T* from = x + image * tiling.rows * tiling.channels + place.channel;
  for (std::int64_t row = place.y; row < tiling.rows && place.active; row += kUnroll * place.step) {
    Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::int64_t at = row + i * place.step;
      if (at < tiling.rows) raws[i] = LoadRaw<kVector>(from + at * tiling.channels);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {  // Zeros beyond the last.
      float values[kVector];
      Unpack<T, kVector>(raws[i], values);
#pragma unroll
      for (int k = 0; k < kVector; ++k) sums[0][k] += values[k];
    }
  }
  const float share = 1 / static_cast<float>(tiling.rows);
  ForTileSums(sums, tiling, tile, [&](int, std::int64_t channel, float sum) {
    StoreOne(y + image * tiling.channels + channel, sum * share);
  });
}

template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    GlobalAverageBackward(const T* dy, T* dx, Tiling tiling) {
  const unsigned tile = blockIdx.x % tiling.tiles;
  const std::int64_t image = blockIdx.x / tiling.tiles;
  const Place<kVector> place(tiling, tile);
  if (!place.active) return;
  const float share = 1 / static_cast<float>(tiling.rows);
  float values[kVector];
  Load(dy + image * tiling.channels + place.channel, values);
#pragma unroll
  for (int k = 0; k < kVector; ++k) values[k] *= share;
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  for (std::int64_t row = begin + place.y; row < end; row += place.step) {
    Store(dx + (image * tiling.rows + row) * tiling.channels + place.channel, values);
  }
}

nn::Kernel PrepareWindows(const nn::OpSpec& spec, nn::ElementType type) {
  const bool forward = spec.kind == nn::OpKind::kAveragePoolForward;
  const Windows windows = forward ? WindowsFrom(spec, spec.reads[0], spec.writes[0])
                                  : WindowsFrom(spec, spec.writes[0], spec.reads[0]);
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      WithVector<T>(windows.channels, [&](auto v) {
        const Axis& rows = windows.rows;
        const Axis& columns = windows.columns;
        const std::int64_t vectors = windows.channels / v();
        const RowBlocks blocks(windows.images * (forward ? rows.out : rows.extent),
                               vectors * (forward ? columns.out : columns.extent));
        const auto kernel = forward ? Average<T, v()> : AverageBackward<T, v()>;
        kernel<<<blocks.grid, blocks.threads, 0, StreamOf(launch)>>>(In<T>(launch, 0),
                                                                     Out<T>(launch, 0), windows);
        CheckLaunch("average_pool");
      });
    });
  }};
}

nn::Kernel PrepareGlobal(const nn::OpSpec& spec, nn::ElementType type) {
  const bool forward = spec.kind == nn::OpKind::kGlobalPoolForward;
  const nn::Tensor& x = forward ? spec.reads[0] : spec.writes[0];
  nn::RequireRank(spec, x, 4);
  const std::int64_t images = x.shape[0];
  const std::int64_t pixels = x.shape[1] * x.shape[2];
  const std::int64_t channels = x.shape[3];
  nn::RequireCount(spec, forward ? spec.writes[0] : spec.reads[0], images * channels);
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      WithVector<T>(channels, [&](auto v) {
        // Forward, an image is one chunk.
        const std::int64_t blocks =
            forward ? 1 : std::max<std::int64_t>(kProcessors * 16 / images, 1);
        const Tiling tiling = Tile(pixels, channels, v(), blocks);
        const dim3 grid(static_cast<unsigned>(images) * tiling.tiles, tiling.chunks);
        const auto kernel = forward ? GlobalAverage<T, v()> : GlobalAverageBackward<T, v()>;
        kernel<<<grid, kTileThreads, 0, StreamOf(launch)>>>(In<T>(launch, 0), Out<T>(launch, 0),
                                                            tiling);
        CheckLaunch("global_pool");
      });
    });
  }};
}

}  // namespace

nn::Kernel PrepareAveragePool(const nn::OpSpec& spec) {
  nn::RequireOperands(spec, 1, 1);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  const bool windows =
      spec.kind == nn::OpKind::kAveragePoolForward || spec.kind == nn::OpKind::kAveragePoolBackward;
  return windows ? PrepareWindows(spec, type) : PrepareGlobal(spec, type);
}

}  // namespace plimsoll::cuda

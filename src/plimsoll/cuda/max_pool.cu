// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/windows.cuh"

namespace plimsoll::cuda {
namespace {

/// A byte for each element of a vector.
template <int kVector>
struct alignas(kVector) Positions {
  std::uint8_t at[kVector];
};

/// The largest of each window, the first of equals.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    Largest(const T* x, T* y, std::uint8_t* index, Windows w) {
  const auto out_row = static_cast<int>(blockIdx.x % static_cast<unsigned>(w.rows.out));
  const std::int64_t image = blockIdx.x / static_cast<unsigned>(w.rows.out);
  const Span rows = w.rows.PixelsOf(out_row);
  const std::int64_t row_size = static_cast<std::int64_t>(w.columns.extent) * w.channels;
  x += image * w.rows.extent * row_size;
  ForRowVectors<kVector>(w.columns.out, w.channels, [&](int column, int channel) {
    const Span columns = w.columns.PixelsOf(column);
    const auto position = [&](int row, int at) {
      return (row - w.rows.Start(out_row)) * w.columns.kernel + at - w.columns.Start(column);
    };
    float best[kVector];
    int found[kVector];
    // The first pixel is as good as any to begin with.
    Load(x + rows.begin * row_size + columns.begin * w.channels + channel, best);
#pragma unroll
    for (int k = 0; k < kVector; ++k) found[k] = position(rows.begin, columns.begin);
    for (int row = rows.begin; row < rows.end; ++row) {
#pragma unroll 3
      for (int at = columns.begin; at < columns.end; ++at) {
        float values[kVector];
        Load(x + row * row_size + at * w.channels + channel, values);
#pragma unroll
        for (int k = 0; k < kVector; ++k) {
          const bool larger = values[k] > best[k];
          best[k] = larger ? values[k] : best[k];
          found[k] = larger ? position(row, at) : found[k];
        }
      }
    }
    const std::int64_t to =
        (static_cast<std::int64_t>(blockIdx.x) * w.columns.out + column) * w.channels + channel;
    Store(y + to, best);
    if (index == nullptr) return;
    Positions<kVector> positions;
#pragma unroll
    for (int k = 0; k < kVector; ++k) positions.at[k] = static_cast<std::uint8_t>(found[k]);
    *reinterpret_cast<Positions<kVector>*>(index + to) = positions;
  });
}

/// Each pixel adds what it gets from the windows that it is in, in their order.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads)
    Gather(const T* dy, const std::uint8_t* index, T* dx, Windows w) {
  const auto row = static_cast<int>(blockIdx.x % static_cast<unsigned>(w.rows.extent));
  const std::int64_t image = blockIdx.x / static_cast<unsigned>(w.rows.extent);
  const Span out_rows = w.rows.WindowsOf(row);
  ForRowVectors<kVector>(w.columns.extent, w.channels, [&](int column, int channel) {
    const Span out_columns = w.columns.WindowsOf(column);
    float sums[kVector] = {};
    for (int out_row = out_rows.begin; out_row < out_rows.end; ++out_row) {
#pragma unroll 2
      for (int at = out_columns.begin; at < out_columns.end; ++at) {
        const std::int64_t from =
            ((image * w.rows.out + out_row) * w.columns.out + at) * w.channels + channel;
        const int position =
            (row - w.rows.Start(out_row)) * w.columns.kernel + column - w.columns.Start(at);
        const auto found = *reinterpret_cast<const Positions<kVector>*>(index + from);
        float slopes[kVector];
        Load(dy + from, slopes);
#pragma unroll
        for (int k = 0; k < kVector; ++k) sums[k] += found.at[k] == position ? slopes[k] : 0.0F;
      }
    }
    const std::int64_t to =
        (static_cast<std::int64_t>(blockIdx.x) * w.columns.extent + column) * w.channels + channel;
    Store(dx + to, sums);
  });
}

}  // namespace

nn::Kernel PrepareMaxPool(const nn::OpSpec& spec) {
  const bool forward = spec.kind == nn::OpKind::kMaxPoolForward;
  nn::RequireOperands(spec, forward ? 1 : 2, 1, forward ? 2 : 1);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  const Windows windows = forward ? WindowsFrom(spec, spec.reads[0], spec.writes[0])
                                  : WindowsFrom(spec, spec.writes[0], spec.reads[0]);
  if (spec.attributes.kernel[0] * spec.attributes.kernel[1] > 256) {
    nn::Refuse(spec, "a window has at most 256 positions, as many as a byte tells apart");
  }
  const bool indexed = !forward || spec.writes.size() == 2;
  if (indexed) {
    const nn::Tensor& index = forward ? spec.writes[1] : spec.reads[1];
    nn::RequireType(spec, index, nn::ElementType::kByte);
    nn::RequireCount(spec, index, forward ? spec.writes[0].count() : spec.reads[0].count());
  }
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    const cudaStream_t stream = StreamOf(launch);
    WithType(type, [&](auto element) {
      using T = decltype(element);
      WithVector<T>(windows.channels, [&](auto v) {
        const int vectors = windows.channels / v();
        if (forward) {
          const RowBlocks blocks(windows.images * windows.rows.out,
                                 static_cast<std::int64_t>(windows.columns.out) * vectors);
          Largest<T, v()><<<blocks.grid, blocks.threads, 0, stream>>>(
              In<T>(launch, 0), Out<T>(launch, 0), indexed ? Out<std::uint8_t>(launch, 1) : nullptr,
              windows);
          CheckLaunch("max_pool_forward");
        } else {
          const RowBlocks blocks(windows.images * windows.rows.extent,
                                 static_cast<std::int64_t>(windows.columns.extent) * vectors);
          Gather<T, v()><<<blocks.grid, blocks.threads, 0, stream>>>(
              In<T>(launch, 0), In<std::uint8_t>(launch, 1), Out<T>(launch, 0), windows);
          CheckLaunch("max_pool_backward");
        }
      });
    });
  }};
}

}  // namespace plimsoll::cuda

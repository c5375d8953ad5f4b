// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/windows.h"

namespace plimsoll::nn::onednn {
namespace {

/// Channels that are looked at together: what is largest so far stays in registers or nearby.
constexpr std::int64_t kLanes = 64;

/// One row of windows: the image that they are over, and what they lead to.
struct WindowRow {
  const Windows* windows;
  Span rows;
  std::int64_t image;  ///< Offset of the image.
  std::int64_t out;    ///< Offset of the first window's pixel.
};

/// The largest of a window, the first of equals, for `count` channels that `image` and `best` point
/// at, at most kLanes.
[[gnu::always_inline]] inline void PoolLanes(const Windows& windows, const Span& rows,
                                             const Span& columns, const float* image, float* best,
                                             std::int32_t* positions, std::int64_t count) {
  // The first pixel is as good as any to begin with.
  const float* first = image + (rows.begin * windows.width + columns.begin) * windows.channels;
  const auto start = static_cast<std::int32_t>((rows.begin - rows.start) * windows.kernel_width() +
                                               columns.begin - columns.start);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    best[i] = first[i];
    positions[i] = start;
  }
  for (std::int64_t h = rows.begin; h < rows.end; ++h) {
    for (std::int64_t w = columns.begin; w < columns.end; ++w) {
      const float* pixel = image + (h * windows.width + w) * windows.channels;
      const auto position =
          static_cast<std::int32_t>((h - rows.start) * windows.kernel_width() + w - columns.start);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) {
        const bool larger = pixel[i] > best[i];
        best[i] = larger ? pixel[i] : best[i];
        positions[i] = larger ? position : positions[i];
      }
    }
  }
}

/// The largest of each window of a row. `index` may be null.
PLIMSOLL_VECTORIZED void PoolRow(const WindowRow& row, const float* x, float* y,
                                 std::uint8_t* index) {
  const Windows& windows = *row.windows;
  const std::int64_t channels = windows.channels;
  alignas(64) std::int32_t positions[kLanes];
  for (std::int64_t column = 0; column < windows.out_width; ++column) {
    const Span columns = windows.Columns(column);
    for (std::int64_t lane = 0; lane < channels; lane += kLanes) {
      const std::int64_t count = channels - lane < kLanes ? channels - lane : kLanes;
      const std::int64_t out = row.out + column * channels + lane;
      PoolLanes(windows, row.rows, columns, x + row.image + lane, y + out, positions, count);
      if (index == nullptr) continue;
#pragma omp simd simdlen(16)
      for (std::int64_t i = 0; i < count; ++i) {
        index[out + i] = static_cast<std::uint8_t>(positions[i]);
      }
    }
  }
}

/// dx += dy where each window's largest was.
PLIMSOLL_VECTORIZED void SpreadRow(const WindowRow& row, const float* dy, const std::uint8_t* index,
                                   float* dx) {
  const Windows& windows = *row.windows;
  const std::int64_t channels = windows.channels;
  for (std::int64_t column = 0; column < windows.out_width; ++column) {
    const Span span = windows.Columns(column);
    const float* slope = dy + row.out + column * channels;
    const std::uint8_t* found = index + row.out + column * channels;
    for (std::int64_t h = row.rows.begin; h < row.rows.end; ++h) {
      for (std::int64_t w = span.begin; w < span.end; ++w) {
        float* pixel = dx + row.image + (h * windows.width + w) * channels;
        const auto position = static_cast<std::int32_t>(
            (h - row.rows.start) * windows.kernel_width() + w - span.start);
        // As many at a time as there are floats in a vector, not bytes: channels may be few.
#pragma omp simd simdlen(16)
        for (std::int64_t i = 0; i < channels; ++i) {
          const std::int32_t at = found[i];
          pixel[i] += at == position ? slope[i] : 0.0F;
        }
      }
    }
  }
}

/// Calls `body(row)` for rows of windows `begin` to `end`, counted over all images.
template <typename Body>
void ForRows(const Windows& windows, std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t at = begin; at < end; ++at) {
    body(WindowRow{&windows, windows.Rows(at % windows.out_height),
                   at / windows.out_height * windows.image_floats(),
                   at * windows.out_width * windows.channels});
  }
}

Kernel PrepareForward(const OpSpec& spec, const Windows& windows) {
  const bool indexed = spec.writes.size() == 2;
  const Partition partition = Cut(windows.images * windows.out_height,
                                  kLeastFloats / (windows.width * windows.channels) + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    auto* index = indexed ? reinterpret_cast<std::uint8_t*>(launch.writes[1]) : nullptr;
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      ForRows(windows, begin, end, [&](const WindowRow& row) {
        PoolRow(row, Read(launch, 0), Write(launch, 0), index);
      });
    });
  }};
}

/// Whole images go to one thread, as windows may overlap.
Kernel PrepareBackward(const Windows& windows) {
  const Partition partition = Cut(windows.images, kLeastFloats / windows.image_floats() + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    const auto* index = reinterpret_cast<const std::uint8_t*>(launch.reads[1]);
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      float* dx = Write(launch, 0);
      for (std::int64_t image = begin; image < end; ++image) {
        std::fill_n(dx + image * windows.image_floats(), windows.image_floats(), 0.0F);
        ForRows(windows, image * windows.out_height, (image + 1) * windows.out_height,
                [&](const WindowRow& row) { SpreadRow(row, Read(launch, 0), index, dx); });
      }
    });
  }};
}

}  // namespace

Kernel PrepareMaxPool(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kMaxPoolForward;
  RequireOperands(spec, forward ? 1 : 2, 1, forward ? 2 : 1);
  const Windows windows = forward ? WindowsOf(spec, spec.reads[0], spec.writes[0])
                                  : WindowsOf(spec, spec.writes[0], spec.reads[0]);
  if (spec.attributes.kernel[0] * spec.attributes.kernel[1] > 256) {
    Refuse(spec, "a window has at most 256 positions, as many as a byte tells apart");
  }
  if (!forward || spec.writes.size() == 2) {
    const Tensor& index = forward ? spec.writes[1] : spec.reads[1];
    RequireType(spec, index, ElementType::kByte);
    RequireCount(spec, index, windows.images * windows.out_floats());
  }
  return forward ? PrepareForward(spec, windows) : PrepareBackward(windows);
}

}  // namespace plimsoll::nn::onednn

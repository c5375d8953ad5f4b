// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/windows.h"

namespace plimsoll::nn::onednn {
namespace {

/// Channels that are looked at together: what is largest so far stays in registers or nearby.
constexpr std::int64_t kLanes = 64;

/// Takes x where it is larger, the first of equals.
PLIMSOLL_VECTORIZED void TakeLarger(const float* x, std::int32_t position, float* best,
                                    std::int32_t* best_position, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const bool larger = x[i] > best[i];
    best[i] = larger ? x[i] : best[i];
    best_position[i] = larger ? position : best_position[i];
  }
}

PLIMSOLL_VECTORIZED void TakeLarger(const float* x, float* best, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) best[i] = x[i] > best[i] ? x[i] : best[i];
}

PLIMSOLL_VECTORIZED void Narrow(const std::int32_t* positions, std::uint8_t* index,
                                std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) index[i] = static_cast<std::uint8_t>(positions[i]);
}

/// dx += dy where the window's largest was at `position`.
PLIMSOLL_VECTORIZED void AddWhere(const float* dy, const std::uint8_t* index, std::int32_t position,
                                  float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t found = index[i];
    dx[i] += found == position ? dy[i] : 0.0F;
  }
}

/// The largest of a window; `index` may be null.
void PoolWindow(const Windows& windows, const Span& rows, const Span& columns, const float* image,
                float* y, std::uint8_t* index) {
  const std::int64_t channels = windows.channels;
  for (std::int64_t lane = 0; lane < channels; lane += kLanes) {
    const std::int64_t count = std::min(kLanes, channels - lane);
    alignas(64) std::int32_t positions[kLanes];
    // The first pixel is as good as any to begin with, and passes on what is not a number.
    const float* first = image + (rows.begin * windows.width + columns.begin) * channels + lane;
    const std::int64_t first_position =
        (rows.begin - rows.start) * windows.attributes.kernel[1] + columns.begin - columns.start;
    std::copy_n(first, count, y + lane);
    std::fill_n(positions, count, static_cast<std::int32_t>(first_position));
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        const float* x = image + (row * windows.width + column) * channels + lane;
        const std::int64_t position =
            (row - rows.start) * windows.attributes.kernel[1] + column - columns.start;
        if (index == nullptr) {
          TakeLarger(x, y + lane, count);
        } else {
          TakeLarger(x, static_cast<std::int32_t>(position), y + lane, positions, count);
        }
      }
    }
    if (index != nullptr) Narrow(positions, index + lane, count);
  }
}

Kernel PrepareForward(const OpSpec& spec, const Windows& windows) {
  const bool indexed = spec.writes.size() == 2;
  const Partition partition = Cut(windows.images * windows.out_height,
                                  kLeastFloats / (windows.width * windows.channels) + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    auto* index = indexed ? reinterpret_cast<std::uint8_t*>(launch.writes[1]) : nullptr;
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      ForWindows(windows, begin, end,
                 [&](const Span& rows, const Span& columns, std::int64_t x, std::int64_t y) {
                   PoolWindow(windows, rows, columns, Read(launch, 0) + x, Write(launch, 0) + y,
                              indexed ? index + y : nullptr);
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
        ForWindows(
            windows, image * windows.out_height, (image + 1) * windows.out_height,
            [&](const Span& rows, const Span& columns, std::int64_t x, std::int64_t y) {
              for (std::int64_t row = rows.begin; row < rows.end; ++row) {
                for (std::int64_t column = columns.begin; column < columns.end; ++column) {
                  const std::int64_t position =
                      (row - rows.start) * windows.attributes.kernel[1] + column - columns.start;
                  AddWhere(Read(launch, 0) + y, index + y, static_cast<std::int32_t>(position),
                           dx + x + (row * windows.width + column) * windows.channels,
                           windows.channels);
                }
              }
            });
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

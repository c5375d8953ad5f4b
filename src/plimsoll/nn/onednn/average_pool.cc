// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/windows.h"

namespace plimsoll::nn::onednn {
namespace {

PLIMSOLL_VECTORIZED void AddTo(const float* x, float factor, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i] * factor;
}

PLIMSOLL_VECTORIZED void Multiply(float factor, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] *= factor;
}

float Share(const Span& rows, const Span& columns) {
  return 1 / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

/// Calls `body(offset)` for each pixel of a window, with its offset in the image.
template <typename Body>
void ForPixels(const Windows& windows, const Span& rows, const Span& columns, const Body& body) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      body((row * windows.width + column) * windows.channels);
    }
  }
}

Kernel PrepareForward(const Windows& windows) {
  const Partition partition = Cut(windows.images * windows.out_height,
                                  kLeastFloats / (windows.width * windows.channels) + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      ForWindows(windows, begin, end,
                 [&](const Span& rows, const Span& columns, std::int64_t x, std::int64_t y) {
                   float* sums = Write(launch, 0) + y;
                   std::fill_n(sums, windows.channels, 0.0F);
                   ForPixels(windows, rows, columns, [&](std::int64_t offset) {
                     AddTo(Read(launch, 0) + x + offset, 1, sums, windows.channels);
                   });
                   Multiply(Share(rows, columns), sums, windows.channels);
                 });
    });
  }};
}

/// Whole images go to one thread, as windows may overlap.
Kernel PrepareBackward(const Windows& windows) {
  const Partition partition = Cut(windows.images, kLeastFloats / windows.image_floats() + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      float* dx = Write(launch, 0);
      std::fill_n(dx + begin * windows.image_floats(), (end - begin) * windows.image_floats(),
                  0.0F);
      ForWindows(windows, begin * windows.out_height, end * windows.out_height,
                 [&](const Span& rows, const Span& columns, std::int64_t x, std::int64_t y) {
                   const float share = Share(rows, columns);
                   ForPixels(windows, rows, columns, [&](std::int64_t offset) {
                     AddTo(Read(launch, 0) + y, share, dx + x + offset, windows.channels);
                   });
                 });
    });
  }};
}

/// The windows of global pooling: one to an image.
Windows WholeImages(const OpSpec& spec, const Tensor& x, const Tensor& y) {
  RequireRank(spec, x, 4);
  RequireCount(spec, y, x.shape[0] * x.shape[3]);
  Windows windows{.images = x.shape[0],
                  .channels = x.shape[3],
                  .height = x.shape[1],
                  .width = x.shape[2],
                  .out_height = 1,
                  .out_width = 1,
                  .attributes = {}};
  windows.attributes.kernel[0] = windows.height;
  windows.attributes.kernel[1] = windows.width;
  return windows;
}

}  // namespace

Kernel PrepareAveragePool(const OpSpec& spec) {
  RequireOperands(spec, 1, 1);
  switch (spec.kind) {
    case OpKind::kAveragePoolForward:
      return PrepareForward(WindowsOf(spec, spec.reads[0], spec.writes[0]));
    case OpKind::kAveragePoolBackward:
      return PrepareBackward(WindowsOf(spec, spec.writes[0], spec.reads[0]));
    case OpKind::kGlobalPoolForward:
      return PrepareForward(WholeImages(spec, spec.reads[0], spec.writes[0]));
    default:
      return PrepareBackward(WholeImages(spec, spec.writes[0], spec.reads[0]));
  }
}

}  // namespace plimsoll::nn::onednn

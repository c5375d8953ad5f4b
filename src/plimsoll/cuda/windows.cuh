// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "plimsoll/cuda/tiles.cuh"

/// Windows that slide over images, for pooling. A block of threads has a row of pixels, of one side
/// or the other: each thread some channels of a pixel.
namespace plimsoll::cuda {

/// From its first to its last but one.
struct Span {
  int begin;
  int end;
};

/// One direction.
struct Axis {
  int extent;  ///< Of x.
  int out;     ///< Of y.
  int kernel;
  int stride;
  int padding;

  __device__ int Start(int window) const { return window * stride - padding; }
  /// The pixels that a window has.
  __device__ Span PixelsOf(int window) const {
    const int start = Start(window);
    return {max(start, 0), min(start + kernel, extent)};
  }
  /// The windows that have a pixel: from the first that does not end before it.
  __device__ Span WindowsOf(int pixel) const {
    const int reach = pixel + padding - kernel;
    return {reach < 0 ? 0 : reach / stride + 1, min((pixel + padding) / stride + 1, out)};
  }
};

struct Windows {
  std::int64_t images;
  int channels;
  Axis rows;
  Axis columns;
};

/// Checks that windows lead from x to y. The last window of a row or column may reach beyond the
/// padding, or not be there ("ceil mode" or not), but each sees something of the image.
inline Windows WindowsFrom(const nn::OpSpec& spec, const nn::Tensor& x, const nn::Tensor& y) {
  nn::RequireRank(spec, x, 4);
  nn::RequireRank(spec, y, 4);
  const nn::Attributes& a = spec.attributes;
  Axis axes[2];
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (a.kernel[axis] < 1 || a.stride[axis] < 1 || a.padding[axis] < 0 ||
        a.padding[axis] >= a.kernel[axis]) {
      nn::Refuse(spec, "kernel and stride must be positive, padding smaller than the kernel");
    }
    const std::int64_t extent = x.shape[axis + 1];
    const std::int64_t out = y.shape[axis + 1];
    const std::int64_t room = extent + 2 * a.padding[axis] - a.kernel[axis];
    const std::int64_t least = room / a.stride[axis] + 1;
    const std::int64_t last = (out - 1) * a.stride[axis] - a.padding[axis];
    if (room < 0 || out < least || out > least + 1 || last >= extent) {
      nn::Refuse(spec, "the windows do not lead from one image to the other");
    }
    if (extent + 2 * a.kernel[axis] + a.stride[axis] > std::numeric_limits<int>::max()) {
      nn::Refuse(spec, "the images are too large");
    }
    axes[axis] = {.extent = static_cast<int>(extent),
                  .out = static_cast<int>(out),
                  .kernel = static_cast<int>(a.kernel[axis]),
                  .stride = static_cast<int>(a.stride[axis]),
                  .padding = static_cast<int>(a.padding[axis])};
  }
  if (x.shape[0] != y.shape[0] || x.shape[3] != y.shape[3]) {
    nn::Refuse(spec, "both should have as many images and channels");
  }
  if (x.shape[2] * x.shape[3] > std::numeric_limits<int>::max()) {
    nn::Refuse(spec, "a row of an image is too large");
  }
  return {.images = x.shape[0],
          .channels = static_cast<int>(x.shape[3]),
          .rows = axes[0],
          .columns = axes[1]};
}

/// Blocks for `rows` rows of all images, of `items` vectors each.
struct RowBlocks {
  RowBlocks(std::int64_t rows, std::int64_t items)
      : threads(static_cast<unsigned>(
            std::clamp<std::int64_t>(CeilDiv(items, kWarp) * kWarp, kWarp, kTileThreads))),
        grid(static_cast<unsigned>(rows),
             static_cast<unsigned>(std::min<std::int64_t>(CeilDiv(items, threads), 65535))) {}

  unsigned threads;
  dim3 grid;
};

/// Calls `body(column, channel)` for this thread's vectors of the block's row.
template <int kVector, typename Body>
__device__ __forceinline__ void ForRowVectors(int columns, int channels, const Body& body) {
  const unsigned vectors = static_cast<unsigned>(channels) / kVector;
  const unsigned items = static_cast<unsigned>(columns) * vectors;
  for (unsigned item = blockIdx.y * blockDim.x + threadIdx.x; item < items;
       item += gridDim.y * blockDim.x) {
    body(static_cast<int>(item / vectors), static_cast<int>(item % vectors) * kVector);
  }
}

}  // namespace plimsoll::cuda

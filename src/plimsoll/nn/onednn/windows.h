// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

/// Windows that slide over images, for pooling.
namespace plimsoll::nn::onednn {

/// The rows or columns of an image that a window has, from its first to its last but one.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t start = 0;  ///< Of the window, padding included: at most `begin`.
};

struct Windows {
  std::int64_t images = 0;
  std::int64_t channels = 0;
  std::int64_t height = 0, width = 0;          ///< Of x.
  std::int64_t out_height = 0, out_width = 0;  ///< Of y.
  Attributes attributes;

  Span Rows(std::int64_t out_row) const { return Along(0, out_row, height); }
  Span Columns(std::int64_t out_column) const { return Along(1, out_column, width); }
  std::int64_t kernel_width() const { return attributes.kernel[1]; }
  std::int64_t image_floats() const { return height * width * channels; }
  std::int64_t out_floats() const { return out_height * out_width * channels; }

 private:
  Span Along(int axis, std::int64_t at, std::int64_t extent) const {
    const std::int64_t start = at * attributes.stride[axis] - attributes.padding[axis];
    return {std::max<std::int64_t>(start, 0), std::min(start + attributes.kernel[axis], extent),
            start};
  }
};

/// Checks that windows lead from x to y. The last window of a row or column may reach beyond the
/// padding, or not be there ("ceil mode" or not), but each sees something of the image.
inline Windows WindowsOf(const OpSpec& spec, const Tensor& x, const Tensor& y) {
  RequireRank(spec, x, 4);
  RequireRank(spec, y, 4);
  const Attributes& a = spec.attributes;
  for (int axis = 0; axis < 2; ++axis) {
    if (a.kernel[axis] < 1 || a.stride[axis] < 1 || a.padding[axis] < 0 ||
        a.padding[axis] >= a.kernel[axis]) {
      Refuse(spec, "kernel and stride must be positive, padding smaller than the kernel");
    }
    const std::size_t dimension = static_cast<std::size_t>(axis) + 1;
    const std::int64_t room = x.shape[dimension] + 2 * a.padding[axis] - a.kernel[axis];
    const std::int64_t least = room / a.stride[axis] + 1;
    const std::int64_t last = (y.shape[dimension] - 1) * a.stride[axis] - a.padding[axis];
    if (room < 0 || y.shape[dimension] < least || y.shape[dimension] > least + 1 ||
        last >= x.shape[dimension]) {
      Refuse(spec, "the windows do not lead from one image to the other");
    }
  }
  if (x.shape[0] != y.shape[0] || x.shape[3] != y.shape[3]) {
    Refuse(spec, "both should have as many images and channels");
  }
  return {.images = x.shape[0],
          .channels = x.shape[3],
          .height = x.shape[1],
          .width = x.shape[2],
          .out_height = y.shape[1],
          .out_width = y.shape[2],
          .attributes = a};
}

/// Calls `body(rows, columns, x, y)` for each window of output rows `begin` to `end`, counted over
/// all images: `x` is the offset of the image, `y` of the pixel that the window leads to.
template <typename Body>
void ForWindows(const Windows& windows, std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t image = at / windows.out_height * windows.image_floats();
    const Span rows = windows.Rows(at % windows.out_height);
    for (std::int64_t column = 0; column < windows.out_width; ++column) {
      body(rows, windows.Columns(column), image,
           (at * windows.out_width + column) * windows.channels);
    }
  }
}

}  // namespace plimsoll::nn::onednn

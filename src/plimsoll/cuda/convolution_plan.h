// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "plimsoll/base/bytes.h"

/// One convolution, ready to run: what cuDNN was chosen to do for it, or a plain kernel of our own
/// where cuDNN does nothing.
namespace plimsoll::cuda {

class Handles;

enum class ConvolutionPass : std::uint8_t {
  kForward,          ///< x, w -> y
  kBackwardData,     ///< y, w -> x
  kBackwardWeights,  ///< x, y -> w, in floats whatever the type
};

/// Images x [n, h, w, c] and y [n, h, w, k], weights [k, h, w, c / groups].
struct ConvolutionShape {
  ConvolutionPass pass = ConvolutionPass::kForward;
  bool bfloat16 = false;  ///< Of images and of weights that are read; floats otherwise.
  std::int64_t images = 1;
  std::int64_t x[3] = {1, 1, 1};  ///< Height, width, channels.
  std::int64_t y[3] = {1, 1, 1};
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t groups = 1;

  std::int64_t x_count() const { return images * x[0] * x[1] * x[2]; }
  std::int64_t y_count() const { return images * y[0] * y[1] * y[2]; }
  std::int64_t weight_count() const { return y[2] * kernel[0] * kernel[1] * (x[2] / groups); }
  std::int64_t element_bytes() const { return bfloat16 ? 2 : 4; }

  friend auto operator<=>(const ConvolutionShape&, const ConvolutionShape&) = default;
};

/// Where operands are; the pass says which of them is written.
struct ConvolutionOperands {
  void* x = nullptr;
  void* weights = nullptr;
  void* y = nullptr;
};

class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual Bytes workspace_bytes() const = 0;
  virtual void Run(Handles& handles, const ConvolutionOperands& operands, std::byte* workspace,
                   void* stream) const = 0;
  Nanoseconds expected_ns = 0;  ///< 0 if it was not measured.
};

/// Chooses, once for each shape.
std::shared_ptr<const ConvolutionPlan> PlanConvolution(const ConvolutionShape& shape,
                                                       Handles& handles);

/// A plain kernel, slow and always there.
std::shared_ptr<ConvolutionPlan> MakePlainConvolution(const ConvolutionShape& shape);

}  // namespace plimsoll::cuda

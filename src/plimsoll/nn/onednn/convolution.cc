// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "plimsoll/nn/onednn/compat.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/staged.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

constexpr auto kFloats = dnnl::memory::data_type::f32;
constexpr auto kAny = dnnl::memory::format_tag::any;

/// What a convolution is, whichever of its three ops is asked for.
struct Geometry {
  Shape x;        ///< N, H, W, C.
  Shape y;        ///< N, H, W, C.
  Shape weights;  ///< O, H, W, I of one group.
  bool transposed = false;
  const Attributes* attributes = nullptr;

  std::int64_t groups() const { return attributes->groups; }
  Dims strides() const { return {attributes->stride[0], attributes->stride[1]}; }
  Dims padding() const { return {attributes->padding[0], attributes->padding[1]}; }

  /// Images, whose dimensions oneDNN calls N, C, H, W whatever their layout.
  static Desc Image(const Shape& s) {
    return {Dims{s[0], s[3], s[1], s[2]}, kFloats, Dims{s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]}};
  }
  Dims WeightDims() const {
    const Shape& w = weights;
    if (groups() == 1) return {w[0], w[3], w[1], w[2]};
    return {groups(), w[0] / groups(), w[3], w[1], w[2]};
  }
  Desc PlainWeights() const {
    const Shape& w = weights;
    const std::int64_t row = w[1] * w[2] * w[3];
    if (groups() == 1) return {WeightDims(), kFloats, Dims{row, 1, w[2] * w[3], w[3]}};
    return {WeightDims(), kFloats, Dims{w[0] / groups() * row, row, 1, w[2] * w[3], w[3]}};
  }
  Desc AnyWeights() const { return {WeightDims(), kFloats, kAny}; }
  Desc Bias() const { return {Dims{weights[0]}, kFloats, Dims{1}}; }
};

void CheckGeometry(const OpSpec& spec, const Geometry& geometry) {
  const Attributes& a = spec.attributes;
  if (geometry.groups() < 1) Refuse(spec, "there must be a group");
  // A transposed convolution goes from small images to large ones as the backward pass of a
  // convolution does.
  const Shape& large = geometry.transposed ? geometry.y : geometry.x;
  const Shape& small = geometry.transposed ? geometry.x : geometry.y;
  for (int axis = 0; axis < 2; ++axis) {
    if (a.kernel[axis] < 1 || a.stride[axis] < 1 || a.padding[axis] < 0) {
      Refuse(spec, "kernel and stride must be positive, padding not negative");
    }
    const std::int64_t room = large[axis + 1] + 2 * a.padding[axis] - a.kernel[axis];
    const std::int64_t extent = room / a.stride[axis] + 1;
    const bool fits = room >= 0 && extent == small[axis + 1];
    if (!fits) {
      Refuse(spec, fmt::format("kernel {}x{}, stride {}x{} and padding {}x{} do not lead from one"
                               " image to the other",
                               a.kernel[0], a.kernel[1], a.stride[0], a.stride[1], a.padding[0],
                               a.padding[1]));
    }
  }
  const std::int64_t groups = geometry.groups();
  if (geometry.x[3] % groups != 0 || geometry.y[3] % groups != 0) {
    Refuse(spec, fmt::format("channels are no multiple of {} groups", groups));
  }
  if (geometry.x[0] != geometry.y[0] ||
      geometry.weights != Shape{geometry.y[3], a.kernel[0], a.kernel[1], geometry.x[3] / groups}) {
    Refuse(spec, fmt::format("weights should be [{},{},{},{}]", geometry.y[3], a.kernel[0],
                             a.kernel[1], geometry.x[3] / groups));
  }
}

Geometry GeometryOf(const OpSpec& spec, const Tensor& x, const Tensor& weights, const Tensor& y) {
  for (const Tensor* tensor : {&x, &weights, &y}) RequireRank(spec, *tensor, 4);
  using enum OpKind;
  Geometry geometry{.x = x.shape,
                    .y = y.shape,
                    .weights = weights.shape,
                    .transposed = spec.kind == kTransposedConvForward ||
                                  spec.kind == kTransposedConvBackwardWeights ||
                                  spec.kind == kTransposedConvBackwardData,
                    .attributes = &spec.attributes};
  CheckGeometry(spec, geometry);
  return geometry;
}

/// Takes another kernel than the one that oneDNN prefers where images have few columns: that one
/// goes through an image row by row.
struct TakeFaster {
  const Geometry* geometry;

  template <typename Description>
  bool operator()(Description& description) const {
    constexpr std::int64_t kFewColumns = 7;
    const auto is = [&](std::string_view kind) {
      return std::string_view(description.impl_info_str()).starts_with(kind);
    };
    if (geometry->y[2] > kFewColumns || geometry->attributes->kernel[0] == 1) return true;
    if (!is("brgconv:")) return true;
    return description.next_impl() && is("jit:");
  }
};

template <typename Forward>
typename Forward::primitive_desc DescribeConvolution(const Geometry& geometry, bool bias) {
  constexpr auto kDirect = std::is_same_v<Forward, dnnl::convolution_forward>
                               ? algorithm::convolution_direct
                               : algorithm::deconvolution_direct;
  const Desc x = Geometry::Image(geometry.x);
  const Desc y = Geometry::Image(geometry.y);
  if (bias) {
    return DescribeForward<Forward>(Engine(), UserScratchpad(), TakeFaster{&geometry},
                                    prop_kind::forward_training, kDirect, x, geometry.AnyWeights(),
                                    geometry.Bias(), y, geometry.strides(), geometry.padding(),
                                    geometry.padding());
  }
  return DescribeForward<Forward>(Engine(), UserScratchpad(), TakeFaster{&geometry},
                                  prop_kind::forward_training, kDirect, x, geometry.AnyWeights(), y,
                                  geometry.strides(), geometry.padding(), geometry.padding());
}

Kernel AsKernel(StagedPrimitive primitive) {
  auto shared = std::make_shared<StagedPrimitive>(std::move(primitive));
  return {.workspace_bytes = shared->workspace_bytes(),
          .run = [shared](const exec::Launch& launch, const StepScalars&) { shared->Run(launch); }};
}

template <typename Forward>
Kernel PrepareForward(const OpSpec& spec) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, bias ? 3 : 2, 1);
  const Geometry geometry = GeometryOf(spec, spec.reads[0], spec.reads[1], spec.writes[0]);
  if (bias) RequireCount(spec, spec.reads[2], geometry.weights[0]);
  const auto description = DescribeConvolution<Forward>(geometry, bias);
  std::vector<StagedArgument> arguments = {
      {DNNL_ARG_SRC, false, 0, Geometry::Image(geometry.x), description.src_desc()},
      {DNNL_ARG_WEIGHTS, false, 1, geometry.PlainWeights(), description.weights_desc()},
      {DNNL_ARG_DST, true, 0, Geometry::Image(geometry.y), description.dst_desc()}};
  if (bias) {
    arguments.push_back({DNNL_ARG_BIAS, false, 2, geometry.Bias(), description.bias_desc()});
  }
  return AsKernel({Forward(description), description.scratchpad_desc(), arguments, 1});
}

template <typename Forward, typename Backward>
Kernel PrepareBackwardData(const OpSpec& spec) {
  RequireOperands(spec, 2, 1);
  const Geometry geometry = GeometryOf(spec, spec.writes[0], spec.reads[1], spec.reads[0]);
  constexpr auto kDirect = std::is_same_v<Forward, dnnl::convolution_forward>
                               ? algorithm::convolution_direct
                               : algorithm::deconvolution_direct;
  const Desc dx = Geometry::Image(geometry.x);
  const Desc dy = Geometry::Image(geometry.y);
  const auto forward = DescribeConvolution<Forward>(geometry, false);
  const auto description = DescribeBackward<Backward>(
      Engine(), UserScratchpad(), TakeFaster{&geometry}, forward, kDirect, dx,
      geometry.AnyWeights(), dy, geometry.strides(), geometry.padding(), geometry.padding());
  return AsKernel(
      {Backward(description),
       description.scratchpad_desc(),
       {{DNNL_ARG_DIFF_DST, false, 0, dy, description.diff_dst_desc()},
        {DNNL_ARG_WEIGHTS, false, 1, geometry.PlainWeights(), description.weights_desc()},
        {DNNL_ARG_DIFF_SRC, true, 0, dx, description.diff_src_desc()}},
       1});
}

template <typename Forward, typename Backward>
Kernel PrepareBackwardWeights(const OpSpec& spec) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, 2, bias ? 2 : 1);
  const Geometry geometry = GeometryOf(spec, spec.reads[0], spec.writes[0], spec.reads[1]);
  if (bias) RequireCount(spec, spec.writes[1], geometry.weights[0]);
  constexpr auto kDirect = std::is_same_v<Forward, dnnl::convolution_forward>
                               ? algorithm::convolution_direct
                               : algorithm::deconvolution_direct;
  const Desc x = Geometry::Image(geometry.x);
  const Desc dy = Geometry::Image(geometry.y);
  const auto forward = DescribeConvolution<Forward>(geometry, bias);
  const Desc weights = geometry.AnyWeights();
  const auto description =
      bias ? DescribeBackward<Backward>(Engine(), UserScratchpad(), TakeFirst{}, forward, kDirect,
                                        x, weights, geometry.Bias(), dy, geometry.strides(),
                                        geometry.padding(), geometry.padding())
           : DescribeBackward<Backward>(Engine(), UserScratchpad(), TakeFirst{}, forward, kDirect,
                                        x, weights, dy, geometry.strides(), geometry.padding(),
                                        geometry.padding());
  std::vector<StagedArgument> arguments = {
      {DNNL_ARG_SRC, false, 0, x, description.src_desc()},
      {DNNL_ARG_DIFF_DST, false, 1, dy, description.diff_dst_desc()},
      {DNNL_ARG_DIFF_WEIGHTS, true, 0, geometry.PlainWeights(), description.diff_weights_desc()}};
  if (bias) {
    arguments.push_back(
        {DNNL_ARG_DIFF_BIAS, true, 1, geometry.Bias(), description.diff_bias_desc()});
  }
  return AsKernel(
      {Backward(description), description.scratchpad_desc(), arguments, spec.writes.size()});
}

}  // namespace

Kernel PrepareConvolution(const OpSpec& spec) {
  using enum OpKind;
  switch (spec.kind) {
    case kConvForward:
      return PrepareForward<dnnl::convolution_forward>(spec);
    case kConvBackwardWeights:
      return PrepareBackwardWeights<dnnl::convolution_forward, dnnl::convolution_backward_weights>(
          spec);
    case kConvBackwardData:
      return PrepareBackwardData<dnnl::convolution_forward, dnnl::convolution_backward_data>(spec);
    case kTransposedConvForward:
      return PrepareForward<dnnl::deconvolution_forward>(spec);
    case kTransposedConvBackwardWeights:
      return PrepareBackwardWeights<dnnl::deconvolution_forward,
                                    dnnl::deconvolution_backward_weights>(spec);
    default:
      return PrepareBackwardData<dnnl::deconvolution_forward, dnnl::deconvolution_backward_data>(
          spec);
  }
}

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
//
// What NetworkBuilder does with images, and shapes of the same content.
#include <fmt/format.h>

#include <array>

#include "plimsoll/nn/builder.h"

namespace plimsoll::nn {
namespace {

void Set(std::int64_t (&to)[2], const Extent& from) {
  to[0] = from.height;
  to[1] = from.width;
}

std::string Describe(const Extent& extent) {
  return fmt::format("{}x{}", extent.height, extent.width);
}

/// Windows beyond this are typing errors; products of a few of them still fit.
constexpr std::int64_t kMaxWindow = 1 << 16;
constexpr std::int64_t kMaxChannels = 1 << 24;

bool IsWithin(const Extent& extent, std::int64_t from) {
  return extent.height >= from && extent.width >= from && extent.height <= kMaxWindow &&
         extent.width <= kMaxWindow;
}

}  // namespace

LayerIndex NetworkBuilder::Conv(LayerIndex x, std::int64_t channels, const ConvOptions& options,
                                std::string_view name) {
  return Convolve(LayerKind::kConv, x, channels, options, name);
}

LayerIndex NetworkBuilder::TransposedConv(LayerIndex x, std::int64_t channels,
                                          const ConvOptions& options, std::string_view name) {
  return Convolve(LayerKind::kTransposedConv, x, channels, options, name);
}

LayerIndex NetworkBuilder::Convolve(LayerKind kind, LayerIndex x, std::int64_t channels,
                                    const ConvOptions& options, std::string_view name) {
  const LayerIndex layer = AppendOne(kind, x, name);
  const Shape in = at(x).shape;
  Require(layer, in.size() == 3, "an image of height, width and channels");
  Require(layer,
          channels > 0 && channels <= kMaxChannels && options.groups > 0 &&
              IsWithin(options.kernel, 1) && IsWithin(options.stride, 1) &&
              IsWithin(options.padding, 0),
          "channels, kernel and stride above zero, padding from zero");
  if (in[2] % options.groups != 0 || channels % options.groups != 0) {
    Fail(layer, fmt::format("{} groups do not divide {} channels in and {} out", options.groups,
                            in[2], channels));
  }
  Attributes& attributes = at(layer).attributes;
  Set(attributes.kernel, options.kernel);
  Set(attributes.stride, options.stride);
  Set(attributes.padding, options.padding);
  attributes.groups = options.groups;
  attributes.bias = options.bias;
  std::array<std::int64_t, 2> out{};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t kernel = attributes.kernel[d];
    const std::int64_t padded = in[d] + 2 * attributes.padding[d];
    out[d] = kind == LayerKind::kConv
                 ? (padded < kernel ? 0 : (padded - kernel) / attributes.stride[d] + 1)
                 : (in[d] - 1) * attributes.stride[d] + kernel - 2 * attributes.padding[d];
  }
  if (out[0] <= 0 || out[1] <= 0) {
    Fail(layer, fmt::format("a kernel of {} with padding {} leaves nothing of it",
                            Describe(options.kernel), Describe(options.padding)));
  }
  at(layer).shape = {out[0], out[1], channels};
  const std::int64_t area = options.kernel.height * options.kernel.width;
  const std::int64_t fan_out = area * channels / options.groups;
  AddParameter(layer, "weight",
               {channels, options.kernel.height, options.kernel.width, in[2] / options.groups},
               options.initializer.value_or(Kaiming(fan_out)));
  if (options.bias) AddParameter(layer, "bias", {channels}, Constant(0));
  return layer;
}

LayerIndex NetworkBuilder::MaxPool(LayerIndex x, const PoolOptions& options,
                                   std::string_view name) {
  return Pool(LayerKind::kMaxPool, x, options, name);
}

LayerIndex NetworkBuilder::AveragePool(LayerIndex x, const PoolOptions& options,
                                       std::string_view name) {
  return Pool(LayerKind::kAveragePool, x, options, name);
}

LayerIndex NetworkBuilder::Pool(LayerKind kind, LayerIndex x, const PoolOptions& options,
                                std::string_view name) {
  const LayerIndex layer = AppendOne(kind, x, name);
  const Shape in = at(x).shape;
  const Extent stride = options.stride.value_or(options.kernel);
  Require(layer, in.size() == 3, "an image of height, width and channels");
  Require(layer, IsWithin(options.kernel, 1) && IsWithin(stride, 1) && IsWithin(options.padding, 0),
          "kernel and stride above zero, padding from zero");
  Require(layer, options.kernel.height * options.kernel.width <= 256 || kind != LayerKind::kMaxPool,
          "a window of at most 256 elements");
  Attributes& attributes = at(layer).attributes;
  Set(attributes.kernel, options.kernel);
  Set(attributes.stride, stride);
  Set(attributes.padding, options.padding);
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t kernel = attributes.kernel[d];
    const std::int64_t padded = in[d] + 2 * attributes.padding[d];
    Require(layer, attributes.padding[d] >= 0 && 2 * attributes.padding[d] <= kernel,
            "padding of at most half the window");
    if (padded < kernel) {
      Fail(layer, fmt::format("a window of {} with padding {} leaves nothing of it",
                              Describe(options.kernel), Describe(options.padding)));
    }
    at(layer).shape[d] = (padded - kernel) / attributes.stride[d] + 1;
  }
  return layer;
}

LayerIndex NetworkBuilder::GlobalPool(LayerIndex x, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kGlobalPool, x, name);
  Require(layer, at(x).shape.size() == 3, "an image of height, width and channels");
  at(layer).shape = {at(x).shape[2]};
  return layer;
}

LayerIndex NetworkBuilder::Reshape(LayerIndex x, Shape shape, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kReshape, x, name);
  if (!IsReasonable(shape) || Count(shape) != Count(at(x).shape)) {
    Fail(layer, fmt::format("cannot become {}: another number of elements", FormatShape(shape)));
  }
  at(layer).shape = std::move(shape);
  return layer;
}

LayerIndex NetworkBuilder::Flatten(LayerIndex x, std::string_view name) {
  return Reshape(x, {Count(shape_of(x))}, name);
}

LayerIndex NetworkBuilder::FoldTime(LayerIndex x, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kReshape, x, name);
  Require(layer, at(x).shape.size() >= 2, "a first dimension to fold");
  at(layer).rows *= at(x).shape[0];
  at(layer).shape.erase(at(layer).shape.begin());
  return layer;
}

LayerIndex NetworkBuilder::UnfoldTime(LayerIndex x, std::int64_t length, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kReshape, x, name);
  Require(layer, length > 0 && at(x).rows % length == 0, "rows that were folded");
  at(layer).rows /= length;
  at(layer).shape.insert(at(layer).shape.begin(), length);
  return layer;
}

}  // namespace plimsoll::nn

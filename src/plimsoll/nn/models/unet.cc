// SPDX-License-Identifier: Apache-2.0
//
// UNet (Ronneberger et al., 2015) with padding and batch norm: a class for each pixel.
#include <fmt/format.h>

#include <vector>

#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

LayerIndex Twice(NetworkBuilder* net, LayerIndex x, std::int64_t channels,
                 const std::string& name) {
  const ConvOptions conv{.kernel = 3, .padding = 1};
  return ConvNorm(net, ConvNorm(net, x, channels, conv, name + ".1"), channels, conv, name + ".2");
}

Network Build(const ModelOptions& options) {
  constexpr int kLevels = 4;
  NetworkBuilder net("unet");
  const std::int64_t size = OrElse(options.image_size, 256);
  LayerIndex x = Twice(&net, net.Image(size, size, 3), Narrow(64, options), "down0");
  std::vector<LayerIndex> past;
  for (int level = 1; level <= kLevels; ++level) {
    past.push_back(x);
    x = net.MaxPool(x, {.kernel = 2}, fmt::format("pool{}", level));
    x = Twice(&net, x, Narrow(64 << level, options), fmt::format("down{}", level));
  }
  for (int level = kLevels - 1; level >= 0; --level) {
    const std::int64_t channels = Narrow(64 << level, options);
    x = net.TransposedConv(x, channels, {.kernel = 2, .stride = 2}, fmt::format("widen{}", level));
    x = net.Concat({past[static_cast<std::size_t>(level)], x}, fmt::format("concat{}", level));
    x = Twice(&net, x, channels, fmt::format("up{}", level));
  }
  x = net.Conv(x, OrElse(options.classes, 2), {.kernel = 1}, "classes");
  net.SoftmaxLoss(x, "loss");
  return net.Finish();
}

std::optional<Model> Find(std::string_view name) {
  if (name != "unet") return std::nullopt;
  return Model{"unet", "UNet, 256 pixels, a class for each", DataKind::kPixels, 8, Build};
}

}  // namespace

const Family& UnetFamily() {
  static const Family family{{"unet"}, Find};
  return family;
}

}  // namespace plimsoll::nn

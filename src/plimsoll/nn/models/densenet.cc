// SPDX-License-Identifier: Apache-2.0
//
// DenseNet-BC (Huang et al., 2017), as torchvision has it. A layer's input is the concatenation of
// all before it in its block, made by adding to the one before.
#include <fmt/format.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

std::optional<std::array<std::int64_t, 4>> BlocksOf(std::int64_t depth) {
  switch (depth) {
    case 121:
      return std::array<std::int64_t, 4>{6, 12, 24, 16};
    case 169:
      return std::array<std::int64_t, 4>{6, 12, 32, 32};
    case 201:
      return std::array<std::int64_t, 4>{6, 12, 48, 32};
    default:
      return std::nullopt;
  }
}

Network Build(const std::string& name, std::int64_t depth, const ModelOptions& options) {
  NetworkBuilder net(name);
  const std::int64_t size = OrElse(options.image_size, 224);
  const std::int64_t growth = Narrow(32, options);
  const auto activate = [&](LayerIndex in, const std::string& layer) {
    return net.Relu(net.BatchNorm(in, layer + ".norm"), layer + ".relu");
  };
  LayerIndex x = net.Image(size, size, 3);
  x = ConvNorm(&net, x, 2 * growth, {.kernel = 7, .stride = 2, .padding = 3}, "stem");
  x = net.MaxPool(x, {.kernel = 3, .stride = 2, .padding = 1}, "stem.pool");
  const std::array<std::int64_t, 4> blocks = *BlocksOf(depth);
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (std::int64_t i = 0; i < Shorten(blocks[block], options); ++i) {
      const std::string layer = fmt::format("block{}.{}", block + 1, i);
      LayerIndex y = activate(x, layer + ".1");
      y = net.Conv(y, 4 * growth, {.kernel = 1, .bias = false}, layer + ".1.conv");
      y = activate(y, layer + ".2");
      y = net.Conv(y, growth, {.kernel = 3, .padding = 1, .bias = false}, layer + ".2.conv");
      x = net.Concat({x, y}, layer + ".concat");
    }
    if (block + 1 == blocks.size()) break;
    const std::string layer = fmt::format("transition{}", block + 1);
    const std::int64_t half = net.shape_of(x).back() / 2;
    x = net.Conv(activate(x, layer), half, {.kernel = 1, .bias = false}, layer + ".conv");
    x = net.AveragePool(x, {.kernel = 2}, layer + ".pool");
  }
  x = net.GlobalPool(activate(x, "final"), "pool");
  net.SoftmaxLoss(net.Linear(x, OrElse(options.classes, 1000), {}, "fc"), "loss");
  return net.Finish();
}

std::optional<Model> Find(std::string_view name) {
  const std::optional<std::int64_t> depth = NumberBehind("densenet", name);
  if (!depth) return std::nullopt;
  if (!BlocksOf(*depth)) {
    throw Error(fmt::format(
        "no DenseNet has {} layers; there are densenet121, densenet169 and densenet201", *depth));
  }
  return Model{std::string(name), fmt::format("DenseNet with {} layers, 224 pixels", *depth),
               DataKind::kImages, 32,
               [name = std::string(name), depth = *depth](const ModelOptions& options) {
                 return Build(name, depth, options);
               }};
}

}  // namespace

const Family& DensenetFamily() {
  static const Family family{{"densenet121", "densenet169", "densenet201"}, Find};
  return family;
}

}  // namespace plimsoll::nn

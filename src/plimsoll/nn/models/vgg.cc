// SPDX-License-Identifier: Apache-2.0
//
// VGG (Simonyan and Zisserman, 2015): for 224 pixels as torchvision has it, without batch norm; for
// CIFAR with batch norm and one linear layer.
#include <fmt/format.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

/// Convolutions in each of the five stages.
std::optional<std::array<int, 5>> StagesOf(std::int64_t depth) {
  switch (depth) {
    case 11:
      return std::array{1, 1, 2, 2, 2};
    case 13:
      return std::array{2, 2, 2, 2, 2};
    case 16:
      return std::array{2, 2, 3, 3, 3};
    case 19:
      return std::array{2, 2, 4, 4, 4};
    default:
      return std::nullopt;
  }
}

Network Build(const std::string& name, std::int64_t depth, bool cifar,
              const ModelOptions& options) {
  constexpr std::array<std::int64_t, 5> kChannels = {64, 128, 256, 512, 512};
  NetworkBuilder net(name);
  const std::int64_t size = OrElse(options.image_size, cifar ? 32 : 224);
  const std::array<int, 5> stages = *StagesOf(depth);
  LayerIndex x = net.Image(size, size, 3);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::int64_t channels = Narrow(kChannels[stage], options);
    for (int i = 0; i < stages[stage]; ++i) {
      const std::string layer = fmt::format("conv{}_{}", stage + 1, i + 1);
      const ConvOptions conv{.kernel = 3, .padding = 1};
      x = cifar ? ConvNorm(&net, x, channels, conv, layer)
                : net.Relu(net.Conv(x, channels, conv, layer), "relu_" + layer);
    }
    x = net.MaxPool(x, {.kernel = 2}, fmt::format("pool{}", stage + 1));
  }
  x = net.Flatten(x);
  if (!cifar) {
    for (const char* layer : {"6", "7"}) {
      x = net.Linear(x, Narrow(4096, options), {}, std::string("fc") + layer);
      x = net.Dropout(net.Relu(x, std::string("relu") + layer), 0.5F, std::string("drop") + layer);
    }
  }
  net.SoftmaxLoss(net.Linear(x, OrElse(options.classes, cifar ? 10 : 1000), {}, "fc8"), "loss");
  return net.Finish();
}

std::optional<Model> Find(std::string_view name) {
  std::string_view base = name;
  const bool cifar = TakeSuffix(&base, "-cifar");
  const std::optional<std::int64_t> depth = NumberBehind("vgg", base);
  if (!depth) return std::nullopt;
  if (!StagesOf(*depth)) {
    throw Error(
        fmt::format("no VGG has {} layers; there are vgg11, vgg13, vgg16, vgg19 and, for "
                    "CIFAR, vgg11-cifar and so on",
                    *depth));
  }
  return Model{
      std::string(name),
      fmt::format("VGG with {} layers, {}", *depth, cifar ? "batch norm, for CIFAR" : "224 pixels"),
      DataKind::kImages, cifar ? 100 : 64,
      [name = std::string(name), depth = *depth, cifar](const ModelOptions& options) {
        return Build(name, depth, cifar, options);
      }};
}

}  // namespace

const Family& VggFamily() {
  static const Family family{{"vgg11", "vgg13", "vgg16", "vgg19", "vgg11-cifar", "vgg13-cifar",
                              "vgg16-cifar", "vgg19-cifar"},
                             Find};
  return family;
}

}  // namespace plimsoll::nn

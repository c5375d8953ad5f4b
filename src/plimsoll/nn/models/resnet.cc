// SPDX-License-Identifier: Apache-2.0
//
// ResNet (He et al., 2016) for 224 pixels, as torchvision has it, and of any depth as in paper 003:
// what is more than ResNet-152 goes to the third stage, of 14 x 14 pixels.
#include <fmt/format.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

struct Stages {
  bool bottleneck = true;
  std::array<std::int64_t, 4> blocks{};
};

/// Nothing if there is none of this depth.
std::optional<Stages> StagesOf(std::int64_t depth) {
  if (depth == 18) return Stages{false, {2, 2, 2, 2}};
  if (depth == 34) return Stages{false, {3, 4, 6, 3}};
  const std::int64_t blocks = (depth - 2) / 3;
  if (depth % 3 != 2 || blocks < 11) return std::nullopt;
  if (blocks < 50) return Stages{true, {3, 4, blocks - 10, 3}};
  return Stages{true, {3, 8, blocks - 14, 3}};
}

class Builder {
 public:
  Builder(const std::string& name, Stages stages, bool cifar, const ModelOptions& options)
      : net_(name), stages_(stages), cifar_(cifar), options_(options) {}

  Network Build() {
    const std::int64_t size = OrElse(options_.image_size, cifar_ ? 32 : 224);
    const std::int64_t classes = OrElse(options_.classes, cifar_ ? 10 : 1000);
    LayerIndex x = net_.Image(size, size, 3);
    if (cifar_) {
      x = ConvNorm(&net_, x, Narrow(64, options_), {.kernel = 3, .padding = 1}, "stem");
    } else {
      x = ConvNorm(&net_, x, Narrow(64, options_), {.kernel = 7, .stride = 2, .padding = 3},
                   "stem");
      x = net_.MaxPool(x, {.kernel = 3, .stride = 2, .padding = 1}, "stem.pool");
    }
    for (std::size_t stage = 0; stage < stages_.blocks.size(); ++stage) {
      const std::int64_t width = Narrow(64 << stage, options_);
      const std::int64_t blocks = Shorten(stages_.blocks[stage], options_);
      for (std::int64_t i = 0; i < blocks; ++i) {
        const std::string name = fmt::format("layer{}.{}", stage + 1, i);
        x = Block(x, width, stage > 0 && i == 0 ? 2 : 1, name);
      }
    }
    x = net_.GlobalPool(x, "pool");
    net_.SoftmaxLoss(net_.Linear(x, classes, {}, "fc"), "loss");
    return net_.Finish();
  }

 private:
  LayerIndex Block(LayerIndex x, std::int64_t width, std::int64_t stride, const std::string& name) {
    const std::int64_t out = stages_.bottleneck ? 4 * width : width;
    LayerIndex y = x;
    if (stages_.bottleneck) {
      y = ConvNorm(&net_, y, width, {.kernel = 1}, name + ".1");
      y = ConvNorm(&net_, y, width, {.kernel = 3, .stride = stride, .padding = 1}, name + ".2");
      y = ConvNorm(&net_, y, out, {.kernel = 1}, name + ".3", /*relu=*/false);
    } else {
      y = ConvNorm(&net_, y, width, {.kernel = 3, .stride = stride, .padding = 1}, name + ".1");
      y = ConvNorm(&net_, y, out, {.kernel = 3, .padding = 1}, name + ".2", /*relu=*/false);
    }
    LayerIndex past = x;
    if (stride != 1 || net_.shape_of(x).back() != out) {
      past = ConvNorm(&net_, x, out, {.kernel = 1, .stride = stride}, name + ".past", false);
    }
    return net_.Relu(net_.Add(y, past, name + ".add"), name + ".relu");
  }

  NetworkBuilder net_;
  Stages stages_;
  bool cifar_;
  const ModelOptions& options_;
};

/// Depths that the papers have for CIFAR only.
bool IsCifarDepth(std::int64_t depth) {
  for (const std::int64_t known : {20, 32, 44, 56, 110, 1202}) {
    if (depth == known) return true;
  }
  return false;
}

std::optional<Model> Find(std::string_view name) {
  std::string_view base = name;
  const bool cifar = TakeSuffix(&base, "-cifar");
  const std::optional<std::int64_t> depth = NumberBehind("resnet", base);
  if (!depth) return std::nullopt;
  const bool is_known =
      *depth == 18 || *depth == 34 || *depth == 50 || *depth == 101 || *depth == 152;
  if (cifar ? !is_known : IsCifarDepth(*depth)) return std::nullopt;
  const std::optional<Stages> stages = StagesOf(*depth);
  if (!stages || *depth > 1'000'000) {
    throw Error(
        fmt::format("no ResNet has {0} layers; there are 18, 34, any 3 n + 2 from 35 on "
                    "and, for CIFAR, any 6 n + 2 as resnet{0}-cifar",
                    *depth));
  }
  return Model{std::string(name),
               fmt::format("ResNet with {} layers, {}", *depth,
                           cifar ? "of the kind for 224 pixels, on 32" : "224 pixels"),
               DataKind::kImages, cifar ? 64 : 32,
               [name = std::string(name), stages = *stages, cifar](const ModelOptions& options) {
                 return Builder(name, stages, cifar, options).Build();
               }};
}

}  // namespace

const Family& ResnetFamily() {
  static const Family family{{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                              "resnet1001", "resnet1517", "resnet18-cifar"},
                             Find};
  return family;
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// GoogLeNet (Szegedy et al., 2015) with batch norm and Inception v3 (Szegedy et al., 2016), as
// torchvision has them, without auxiliary classifiers.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

constexpr float kEpsilon = 1e-3F;

class Builder {
 public:
  Builder(const std::string& name, const ModelOptions& options) : net_(name), options_(options) {}

  Network Googlenet() {
    Begin(224);
    const PoolOptions pool{.kernel = 3, .stride = 2, .padding = 1};
    Conv(64, {.kernel = 7, .stride = 2, .padding = 3});
    x_ = net_.MaxPool(x_, pool, "pool1");
    Conv(64, {.kernel = 1});
    Conv(192, {.kernel = 3, .padding = 1});
    x_ = net_.MaxPool(x_, pool, "pool2");
    Mix({64, 96, 128, 16, 32, 32});
    Mix({128, 128, 192, 32, 96, 64});
    x_ = net_.MaxPool(x_, pool, "pool3");
    Mix({192, 96, 208, 16, 48, 64});
    Mix({160, 112, 224, 24, 64, 64});
    Mix({128, 128, 256, 24, 64, 64});
    Mix({112, 144, 288, 32, 64, 64});
    Mix({256, 160, 320, 32, 128, 128});
    x_ = net_.MaxPool(x_, {.kernel = 2}, "pool4");
    Mix({256, 160, 320, 32, 128, 128});
    Mix({384, 192, 384, 48, 128, 128});
    return End(0.2F);
  }

  Network InceptionV3() {
    Begin(299);
    Conv(32, {.kernel = 3, .stride = 2});
    Conv(32, {.kernel = 3});
    Conv(64, {.kernel = 3, .padding = 1});
    x_ = net_.MaxPool(x_, {.kernel = 3, .stride = 2}, "pool1");
    Conv(80, {.kernel = 1});
    Conv(192, {.kernel = 3});
    x_ = net_.MaxPool(x_, {.kernel = 3, .stride = 2}, "pool2");
    for (const std::int64_t pooled : {32, 64, 64}) MixA(pooled);
    MixB();
    for (const std::int64_t width : {128, 160, 160, 192}) MixC(width);
    MixD();
    MixE();
    MixE();
    return End(0.5F);
  }

 private:
  void Begin(std::int64_t usual) {
    const std::int64_t size = OrElse(options_.image_size, usual);
    x_ = net_.Image(size, size, 3);
  }
  Network End(float rate) {
    x_ = net_.Dropout(net_.GlobalPool(x_, "pool"), rate, "drop");
    net_.SoftmaxLoss(net_.Linear(x_, OrElse(options_.classes, 1000), {}, "fc"), "loss");
    return net_.Finish();
  }

  LayerIndex Conv(LayerIndex x, std::int64_t channels, const ConvOptions& how) {
    return ConvNorm(&net_, x, Narrow(channels, options_), how, fmt::format("conv{}", ++convs_),
                    true, kEpsilon);
  }
  void Conv(std::int64_t channels, const ConvOptions& how) { x_ = Conv(x_, channels, how); }
  LayerIndex Average() { return net_.AveragePool(x_, {.kernel = 3, .stride = 1, .padding = 1}); }

  /// GoogLeNet's module: 1 x 1; 3 x 3 and its reduction; the same again; pooling.
  void Mix(const std::array<std::int64_t, 6>& channels) {
    const ConvOptions one{.kernel = 1};
    const ConvOptions three{.kernel = 3, .padding = 1};
    const LayerIndex a = Conv(x_, channels[0], one);
    const LayerIndex b = Conv(Conv(x_, channels[1], one), channels[2], three);
    const LayerIndex c = Conv(Conv(x_, channels[3], one), channels[4], three);
    const LayerIndex d =
        Conv(net_.MaxPool(x_, {.kernel = 3, .stride = 1, .padding = 1}), channels[5], one);
    x_ = net_.Concat({a, b, c, d});
  }

  void MixA(std::int64_t pooled) {
    const ConvOptions one{.kernel = 1};
    const ConvOptions three{.kernel = 3, .padding = 1};
    const LayerIndex a = Conv(x_, 64, one);
    const LayerIndex b = Conv(Conv(x_, 48, one), 64, {.kernel = 5, .padding = 2});
    const LayerIndex c = Conv(Conv(Conv(x_, 64, one), 96, three), 96, three);
    const LayerIndex d = Conv(Average(), pooled, one);
    x_ = net_.Concat({a, b, c, d});
  }

  void MixB() {
    const LayerIndex a = Conv(x_, 384, {.kernel = 3, .stride = 2});
    LayerIndex b = Conv(Conv(x_, 64, {.kernel = 1}), 96, {.kernel = 3, .padding = 1});
    b = Conv(b, 96, {.kernel = 3, .stride = 2});
    const LayerIndex c = net_.MaxPool(x_, {.kernel = 3, .stride = 2});
    x_ = net_.Concat({a, b, c});
  }

  LayerIndex Row(LayerIndex x, std::int64_t channels) {
    return Conv(x, channels, {.kernel = {1, 7}, .padding = {0, 3}});
  }
  LayerIndex Column(LayerIndex x, std::int64_t channels) {
    return Conv(x, channels, {.kernel = {7, 1}, .padding = {3, 0}});
  }

  void MixC(std::int64_t width) {
    const ConvOptions one{.kernel = 1};
    const LayerIndex a = Conv(x_, 192, one);
    const LayerIndex b = Column(Row(Conv(x_, width, one), width), 192);
    LayerIndex c = Column(Conv(x_, width, one), width);
    c = Row(Column(Row(c, width), width), 192);
    const LayerIndex d = Conv(Average(), 192, one);
    x_ = net_.Concat({a, b, c, d});
  }

  void MixD() {
    const ConvOptions one{.kernel = 1};
    const ConvOptions last{.kernel = 3, .stride = 2};
    const LayerIndex a = Conv(Conv(x_, 192, one), 320, last);
    const LayerIndex b = Conv(Column(Row(Conv(x_, 192, one), 192), 192), 192, last);
    const LayerIndex c = net_.MaxPool(x_, {.kernel = 3, .stride = 2});
    x_ = net_.Concat({a, b, c});
  }

  void MixE() {
    const ConvOptions one{.kernel = 1};
    const ConvOptions row{.kernel = {1, 3}, .padding = {0, 1}};
    const ConvOptions column{.kernel = {3, 1}, .padding = {1, 0}};
    const LayerIndex a = Conv(x_, 320, one);
    const LayerIndex b = Conv(x_, 384, one);
    const LayerIndex b1 = Conv(b, 384, row);
    const LayerIndex b2 = Conv(b, 384, column);
    const LayerIndex c = Conv(Conv(x_, 448, one), 384, {.kernel = 3, .padding = 1});
    const LayerIndex c1 = Conv(c, 384, row);
    const LayerIndex c2 = Conv(c, 384, column);
    const LayerIndex d = Conv(Average(), 192, one);
    x_ = net_.Concat({a, b1, b2, c1, c2, d});
  }

  NetworkBuilder net_;
  const ModelOptions& options_;
  LayerIndex x_ = -1;
  int convs_ = 0;
};

std::optional<Model> Find(std::string_view name) {
  if (name == "googlenet") {
    return Model{
        "googlenet", "GoogLeNet with batch norm, 224 pixels", DataKind::kImages, 128,
        [](const ModelOptions& options) { return Builder("googlenet", options).Googlenet(); }};
  }
  if (name == "inception-v3") {
    return Model{
        "inception-v3", "Inception v3, 299 pixels", DataKind::kImages, 32,
        [](const ModelOptions& options) { return Builder("inception-v3", options).InceptionV3(); }};
  }
  return std::nullopt;
}

}  // namespace

const Family& InceptionFamily() {
  static const Family family{{"googlenet", "inception-v3"}, Find};
  return family;
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// ResNets for 32 pixels: plain of depth 6 n + 2 (He et al., 2016), with pre-activation and
// bottlenecks of depth 9 n + 2 (He et al., 2016b), wide of depth 6 n + 4 (Zagoruyko and Komodakis,
// 2016), and with stochastic depth (Huang et al., 2016). Shortcuts that change shape are 1 x 1
// convolutions.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

enum class Kind : std::uint8_t { kPlain, kPreActivation, kWide, kStochastic };

struct Spec {
  Kind kind = Kind::kPlain;
  std::int64_t depth = 0;
  std::int64_t blocks = 0;  ///< In each of three stages.
  std::int64_t widen = 1;
};

class Builder {
 public:
  Builder(const std::string& name, Spec spec, const ModelOptions& options)
      : net_(name), spec_(spec), options_(options) {}

  Network Build() {
    const std::int64_t size = OrElse(options_.image_size, 32);
    const bool pre = spec_.kind == Kind::kPreActivation || spec_.kind == Kind::kWide;
    const ConvOptions stem{.kernel = 3, .padding = 1, .bias = false};
    blocks_ = Shorten(spec_.blocks, options_);
    LayerIndex x = net_.Image(size, size, 3);
    x = pre ? net_.Conv(x, Narrow(16, options_), stem, "stem.conv")
            : ConvNorm(&net_, x, Narrow(16, options_), stem, "stem");
    for (int stage = 0; stage < 3; ++stage) {
      const std::int64_t width = Narrow((std::int64_t{16} << stage) * spec_.widen, options_);
      for (std::int64_t i = 0; i < blocks_; ++i) {
        const std::string name = fmt::format("layer{}.{}", stage + 1, i);
        const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        x = pre ? PreActivationBlock(x, width, stride, name) : PlainBlock(x, width, stride, name);
      }
    }
    if (pre) x = net_.Relu(net_.BatchNorm(x, "norm"), "relu");
    x = net_.GlobalPool(x, "pool");
    net_.SoftmaxLoss(net_.Linear(x, OrElse(options_.classes, 10), {}, "fc"), "loss");
    return net_.Finish();
  }

 private:
  LayerIndex PlainBlock(LayerIndex x, std::int64_t width, std::int64_t stride,
                        const std::string& name) {
    const bool stochastic = spec_.kind == Kind::kStochastic;
    LayerIndex past = x;
    if (net_.shape_of(x).back() != width || stride != 1) {
      past = ConvNorm(&net_, x, width, {.kernel = 1, .stride = stride}, name + ".past", false);
    }
    // From always there, at the first block, down to half of the time at the last.
    if (stochastic) {
      ++block_;
      net_.BeginBranch(1 - 0.5F * static_cast<float>(block_) / static_cast<float>(3 * blocks_));
    }
    LayerIndex y =
        ConvNorm(&net_, x, width, {.kernel = 3, .stride = stride, .padding = 1}, name + ".1");
    y = ConvNorm(&net_, y, width, {.kernel = 3, .padding = 1}, name + ".2", /*relu=*/false);
    x = stochastic ? net_.JoinBranch(past, y, name + ".add") : net_.Add(y, past, name + ".add");
    return net_.Relu(x, name + ".relu");
  }

  /// Norm and ReLU come first; where the shape changes, the shortcut begins behind them.
  LayerIndex PreActivationBlock(LayerIndex x, std::int64_t width, std::int64_t stride,
                                const std::string& name) {
    const bool bottleneck = spec_.kind == Kind::kPreActivation;
    const std::int64_t out = bottleneck ? 4 * width : width;
    const auto conv = [&](LayerIndex in, std::int64_t channels, const ConvOptions& how,
                          int number) {
      return net_.Conv(in, channels, how, fmt::format("{}.conv{}", name, number));
    };
    const auto activate = [&](LayerIndex in, int number) {
      in = net_.BatchNorm(in, fmt::format("{}.norm{}", name, number));
      return net_.Relu(in, fmt::format("{}.relu{}", name, number));
    };
    const ConvOptions three{.kernel = 3, .stride = stride, .padding = 1, .bias = false};
    const ConvOptions last_three{.kernel = 3, .padding = 1, .bias = false};
    const ConvOptions one{.kernel = 1, .bias = false};
    const LayerIndex first = activate(x, 1);
    LayerIndex past = x;
    if (net_.shape_of(x).back() != out || stride != 1) {
      past = net_.Conv(first, out, {.kernel = 1, .stride = stride, .bias = false}, name + ".past");
    }
    LayerIndex y = first;
    if (bottleneck) {
      y = activate(conv(y, width, one, 1), 2);
      y = activate(conv(y, width, three, 2), 3);
      y = conv(y, out, one, 3);
    } else {
      y = activate(conv(y, width, three, 1), 2);
      y = conv(y, out, last_three, 2);
    }
    return net_.Add(y, past, name + ".add");
  }

  NetworkBuilder net_;
  Spec spec_;
  const ModelOptions& options_;
  std::int64_t blocks_ = 0;
  std::int64_t block_ = 0;
};

/// Depth = per_block * n * 3 + rest.
std::int64_t BlocksFor(std::string_view family, std::int64_t depth, std::int64_t per_stage,
                       std::int64_t rest) {
  if (depth <= rest || (depth - rest) % per_stage != 0 || depth > 1'000'000) {
    throw Error(fmt::format("no {} has {} layers; expected {} n + {}, such as {}", family, depth,
                            per_stage, rest, per_stage * 3 + rest));
  }
  return (depth - rest) / per_stage;
}

Model MakeModel(std::string_view name, const std::string& description, Spec spec) {
  return {std::string(name), description, DataKind::kImages, 128,
          [name = std::string(name), spec](const ModelOptions& options) {
            return Builder(name, spec, options).Build();
          }};
}

std::optional<Model> FindWide(std::string_view name) {
  // wrn28-10 or wrn-28-10.
  std::string_view rest = name.substr(3);
  if (rest.starts_with("-")) rest.remove_prefix(1);
  const std::size_t dash = rest.find('-');
  const auto depth = NumberBehind("", rest.substr(0, dash));
  const auto widen = NumberBehind("", dash == rest.npos ? "" : rest.substr(dash + 1));
  if (!depth || !widen || *widen > 100'000) return std::nullopt;
  // Paper 003 has WRN-8, one block a stage, and does not count the shortcuts.
  const std::int64_t blocks = *depth == 8 ? 1 : BlocksFor("WRN", *depth, 6, 4);
  const Spec spec{Kind::kWide, *depth, blocks, *widen};
  return MakeModel(
      name, fmt::format("wide ResNet of {} layers, {} times as wide, for CIFAR", *depth, *widen),
      spec);
}

std::optional<Model> Find(std::string_view name) {
  if (name.starts_with("wrn")) return FindWide(name);
  std::string_view base = name;
  TakeSuffix(&base, "-cifar");
  if (const auto depth = NumberBehind("preresnet", base)) {
    return MakeModel(
        name, fmt::format("pre-activation ResNet with {} layers, for CIFAR", *depth),
        {Kind::kPreActivation, *depth, BlocksFor("pre-activation ResNet", *depth, 9, 2)});
  }
  if (const auto depth = NumberBehind("sd-resnet", base)) {
    return MakeModel(name,
                     fmt::format("ResNet with {} layers and stochastic depth, for CIFAR", *depth),
                     {Kind::kStochastic, *depth, BlocksFor("CIFAR ResNet", *depth, 6, 2)});
  }
  if (const auto depth = NumberBehind("resnet", base)) {
    return MakeModel(name, fmt::format("ResNet with {} layers, for CIFAR", *depth),
                     {Kind::kPlain, *depth, BlocksFor("CIFAR ResNet", *depth, 6, 2)});
  }
  return std::nullopt;
}

}  // namespace

const Family& CifarResnetFamily() {
  static const Family family{
      {"resnet20", "resnet32", "resnet44", "resnet56", "resnet110", "preresnet164", "preresnet1001",
       "wrn16-4", "wrn28-10", "sd-resnet110"},
      Find};
  return family;
}

}  // namespace plimsoll::nn

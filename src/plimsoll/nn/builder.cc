// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/builder.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::nn {
namespace {

/// Extents beyond this are typing errors; products of a few of them still fit.
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;

}  // namespace

NetworkBuilder::NetworkBuilder(std::string name) { network_.name = std::move(name); }

void NetworkBuilder::Fail(LayerIndex layer, const std::string& reason) const {
  const Layer& failed = network_.layers[static_cast<std::size_t>(layer)];
  std::string inputs;
  for (const LayerIndex input : failed.inputs) {
    const Layer& from = network_.layers[static_cast<std::size_t>(input)];
    inputs +=
        fmt::format("{}{} ({})", inputs.empty() ? "" : ", ", from.name, FormatShape(from.shape));
  }
  throw Error(fmt::format("{}: layer {} ({}) on {}: {}", network_.name, failed.name,
                          Name(failed.kind), inputs.empty() ? "nothing" : inputs, reason));
}

void NetworkBuilder::CheckSize(LayerIndex layer) const {
  const Layer& of = network_.layers[static_cast<std::size_t>(layer)];
  if (!IsReasonable(of.shape, of.rows)) {
    Fail(layer, fmt::format("gives {}; expected extents above zero, and at most {} elements",
                            FormatShape(of.shape), kMaxElements));
  }
}

void NetworkBuilder::Require(LayerIndex layer, bool condition, std::string_view expected) const {
  if (!condition) Fail(layer, fmt::format("expected {}", expected));
}

LayerIndex NetworkBuilder::Append(LayerKind kind, std::span<const LayerIndex> inputs,
                                  std::string_view name) {
  const auto index = static_cast<LayerIndex>(network_.layers.size());
  Layer layer{.kind = kind, .name = std::string(name)};
  if (layer.name.empty()) layer.name = fmt::format("{}{}", Name(kind), index);
  if (network_.loss >= 0) {
    throw Error(fmt::format("{}: layer {} after the loss, which ends a network", network_.name,
                            layer.name));
  }
  if (!names_.insert(layer.name).second) {
    throw Error(fmt::format("{}: two layers are called {}", network_.name, layer.name));
  }
  if (inputs.empty() != (kind == LayerKind::kInput) || (index == 0) != inputs.empty()) {
    throw Error(fmt::format("{}: layer {}: a network begins with its one input", network_.name,
                            layer.name));
  }
  for (const LayerIndex input : inputs) {
    if (input < 0 || input >= index) {
      throw Error(fmt::format("{}: layer {} reads layer {}, which is not there yet", network_.name,
                              layer.name, input));
    }
    CheckSize(input);
    layer.inputs.push_back(input);
  }
  layer.branch = branch_;
  if (!inputs.empty()) {
    const Layer& first = network_.layers[static_cast<std::size_t>(inputs[0])];
    layer.shape = first.shape;
    layer.rows = first.rows;
  }
  network_.layers.push_back(std::move(layer));
  for (const LayerIndex input : inputs) {
    const bool ids = kind == LayerKind::kEmbedding;
    Require(index, (at(input).type == ElementType::kInt) == ids,
            ids ? "ids of tokens" : "numbers, not ids of tokens: an embedding comes first");
    Require(index, at(input).rows == at(index).rows, "inputs with as many rows");
  }
  return index;
}

LayerIndex NetworkBuilder::AppendOne(LayerKind kind, LayerIndex x, std::string_view name) {
  return Append(kind, std::array{x}, name);
}

void NetworkBuilder::AddParameter(LayerIndex layer, std::string_view role, Shape shape,
                                  Initializer initializer, bool trained) {
  if (!IsReasonable(shape)) {
    Fail(layer, fmt::format("needs a {} of {}, which is too large", role, FormatShape(shape)));
  }
  at(layer).parameters.push_back(static_cast<ParameterIndex>(network_.parameters.size()));
  network_.parameters.push_back(
      {fmt::format("{}.{}", at(layer).name, role), std::move(shape), initializer, trained});
}

LayerIndex NetworkBuilder::Input(Shape shape, ElementType type) {
  const LayerIndex layer = Append(LayerKind::kInput, {}, "input");
  at(layer).shape = std::move(shape);
  at(layer).type = type;
  CheckSize(layer);
  return layer;
}

LayerIndex NetworkBuilder::Image(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return Input({height, width, channels});
}

LayerIndex NetworkBuilder::Tokens(std::int64_t length) {
  return Input({length}, ElementType::kInt);
}

LayerIndex NetworkBuilder::Linear(LayerIndex x, std::int64_t features, const LinearOptions& options,
                                  std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kLinear, x, name);
  const Shape& in = at(x).shape;
  Require(layer, !in.empty(), "features");
  Require(layer, features > 0 && features < kMaxExtent, "at least one feature");
  const std::int64_t fan_in = in.back();
  at(layer).shape.back() = features;
  at(layer).attributes.bias = options.bias;
  const Shape weight{features, fan_in};
  const Initializer uniform = Uniform(1 / std::sqrt(static_cast<float>(fan_in)));
  if (options.shared_weight >= 0) {
    Require(layer, options.shared_weight < std::ssize(network_.parameters), "a weight to share");
    const Parameter& shared = network_.parameters[static_cast<std::size_t>(options.shared_weight)];
    if (shared.shape != weight) {
      Fail(layer, fmt::format("needs a weight of {}, shares {} of {}", FormatShape(weight),
                              shared.name, FormatShape(shared.shape)));
    }
    at(layer).parameters.push_back(options.shared_weight);
  } else {
    AddParameter(layer, "weight", weight, options.initializer.value_or(uniform));
  }
  if (options.bias) AddParameter(layer, "bias", {features}, uniform);
  return layer;
}

LayerIndex NetworkBuilder::BatchNorm(LayerIndex x, std::string_view name, float epsilon) {
  const LayerIndex layer = AppendOne(LayerKind::kBatchNorm, x, name);
  Require(layer, !at(x).shape.empty(), "channels");
  const Shape channels{at(x).shape.back()};
  at(layer).attributes.epsilon = epsilon;
  AddParameter(layer, "weight", channels, Constant(1));
  AddParameter(layer, "bias", channels, Constant(0));
  AddParameter(layer, "running_mean", channels, Constant(0), /*trained=*/false);
  AddParameter(layer, "running_var", channels, Constant(1), /*trained=*/false);
  return layer;
}

LayerIndex NetworkBuilder::LayerNorm(LayerIndex x, std::string_view name, float epsilon) {
  const LayerIndex layer = AppendOne(LayerKind::kLayerNorm, x, name);
  Require(layer, !at(x).shape.empty(), "features");
  const Shape features{at(x).shape.back()};
  at(layer).attributes.epsilon = epsilon;
  AddParameter(layer, "weight", features, Constant(1));
  AddParameter(layer, "bias", features, Constant(0));
  return layer;
}

LayerIndex NetworkBuilder::Lrn(LayerIndex x, const LrnOptions& options, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kLrn, x, name);
  Require(layer, at(x).shape.size() == 3, "an image");
  Require(layer, options.size > 0, "a size above zero");
  Attributes& attributes = at(layer).attributes;
  attributes.lrn_size = options.size;
  attributes.lrn_alpha = options.alpha;
  attributes.lrn_beta = options.beta;
  attributes.lrn_k = options.k;
  return layer;
}

LayerIndex NetworkBuilder::Relu(LayerIndex x, std::string_view name) {
  return AppendOne(LayerKind::kRelu, x, name);
}
LayerIndex NetworkBuilder::Gelu(LayerIndex x, std::string_view name) {
  return AppendOne(LayerKind::kGelu, x, name);
}
LayerIndex NetworkBuilder::Tanh(LayerIndex x, std::string_view name) {
  return AppendOne(LayerKind::kTanh, x, name);
}
LayerIndex NetworkBuilder::Sigmoid(LayerIndex x, std::string_view name) {
  return AppendOne(LayerKind::kSigmoid, x, name);
}

LayerIndex NetworkBuilder::Add(LayerIndex a, LayerIndex b, std::string_view name) {
  const LayerIndex layer = Append(LayerKind::kAdd, std::array{a, b}, name);
  Require(layer, at(a).shape == at(b).shape, "two inputs of one shape");
  return layer;
}

LayerIndex NetworkBuilder::Concat(std::span<const LayerIndex> inputs, std::string_view name) {
  if (inputs.empty()) throw Error(fmt::format("{}: a concat of nothing", network_.name));
  const LayerIndex layer = Append(LayerKind::kConcat, inputs, name);
  std::int64_t channels = 0;
  for (const LayerIndex input : inputs) {
    Shape shape = at(input).shape;
    Require(layer, !shape.empty() && shape.size() == at(layer).shape.size(), "like inputs");
    channels += shape.back();
    shape.back() = at(layer).shape.back();
    Require(layer, shape == at(layer).shape, "inputs that differ in the last dimension only");
  }
  at(layer).shape.back() = channels;
  return layer;
}

LayerIndex NetworkBuilder::Dropout(LayerIndex x, float rate, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kDropout, x, name);
  Require(layer, rate >= 0 && rate < 1, "a rate from 0 up to 1");
  at(layer).attributes.rate = rate;
  at(layer).attributes.stream = static_cast<std::uint64_t>(layer);
  return layer;
}

LayerIndex NetworkBuilder::Embedding(LayerIndex ids, std::int64_t vocabulary, std::int64_t features,
                                     std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kEmbedding, ids, name);
  Require(layer, vocabulary > 0 && features > 0 && vocabulary < kMaxExtent && features < kMaxExtent,
          "a vocabulary and features");
  at(layer).shape.push_back(features);
  AddParameter(layer, "weight", {vocabulary, features}, Normal(0.02F));
  return layer;
}

LayerIndex NetworkBuilder::AddPositions(LayerIndex x, std::int64_t max_length,
                                        std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kAddPositions, x, name);
  const Shape& in = at(x).shape;
  Require(layer, in.size() == 2, "a sequence");
  Require(layer, in[0] <= max_length, fmt::format("at most {} positions", max_length));
  AddParameter(layer, "weight", {max_length, in[1]}, Normal(0.02F));
  return layer;
}

LayerIndex NetworkBuilder::Attention(LayerIndex qkv, std::int64_t heads, bool causal,
                                     std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kAttention, qkv, name);
  const Shape& in = at(qkv).shape;
  Require(layer, in.size() == 2, "a sequence");
  Require(layer, heads > 0 && in[1] % 3 == 0 && in[1] / 3 % heads == 0,
          fmt::format("queries, keys and values that {} heads share evenly", heads));
  at(layer).shape = {in[0], in[1] / 3};
  at(layer).attributes.heads = heads;
  at(layer).attributes.causal = causal;
  return layer;
}

LayerIndex NetworkBuilder::Lstm(LayerIndex x, std::int64_t features, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kLstm, x, name);
  const Shape& in = at(x).shape;
  Require(layer, in.size() == 2, "a sequence");
  Require(layer, features > 0 && features < kMaxExtent, "at least one feature");
  const std::int64_t fan_in = in[1];
  at(layer).shape = {in[0], features};
  const Initializer uniform = Uniform(1 / std::sqrt(static_cast<float>(features)));
  AddParameter(layer, "weight_input", {4 * features, fan_in}, uniform);
  AddParameter(layer, "weight_hidden", {4 * features, features}, uniform);
  AddParameter(layer, "bias", {4 * features}, uniform);
  return layer;
}

LayerIndex NetworkBuilder::SoftmaxLoss(LayerIndex logits, std::string_view name) {
  const LayerIndex layer = AppendOne(LayerKind::kSoftmaxLoss, logits, name);
  Require(layer, !at(logits).shape.empty(), "a value for each class");
  Require(layer, branch_ < 0, "the loss outside of branches");
  network_.classes = at(logits).shape.back();
  at(layer).shape = {};
  network_.loss = layer;
  return layer;
}

BranchIndex NetworkBuilder::BeginBranch(float survival) {
  if (branch_ >= 0) throw Error(fmt::format("{}: a branch within a branch", network_.name));
  if (!(survival > 0 && survival <= 1)) {
    throw Error(fmt::format("{}: a branch that survives with {}; expected above 0, at most 1",
                            network_.name, survival));
  }
  branch_ = static_cast<BranchIndex>(network_.branches.size());
  network_.branches.push_back({survival});
  return branch_;
}

LayerIndex NetworkBuilder::JoinBranch(LayerIndex past, LayerIndex last, std::string_view name) {
  const BranchIndex branch = std::exchange(branch_, -1);
  const LayerIndex layer = Add(past, last, name);
  at(layer).joins = branch;
  Require(layer, branch >= 0 && at(last).branch == branch && at(past).branch < 0,
          "what goes past the branch, then its last layer");
  return layer;
}

const Shape& NetworkBuilder::shape_of(LayerIndex layer) const {
  return network_.layers.at(static_cast<std::size_t>(layer)).shape;
}

ParameterIndex NetworkBuilder::parameter_of(LayerIndex layer, std::size_t which) const {
  return network_.layers.at(static_cast<std::size_t>(layer)).parameters.at(which);
}

Network NetworkBuilder::Finish() {
  if (network_.loss < 0) {
    throw Error(fmt::format("{}: has no loss; end it with a softmax loss", network_.name));
  }
  for (const Layer& layer : network_.layers) {
    if (&layer != &network_.layers.back())
      CheckSize(static_cast<LayerIndex>(&layer - network_.layers.data()));
  }
  names_.clear();
  return std::exchange(network_, {});
}

}  // namespace plimsoll::nn

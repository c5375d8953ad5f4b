// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

namespace plimsoll::nn {
namespace {

constexpr std::array<std::string_view, kLayerKinds> kNames = {
    "input",        "conv",         "transposed_conv",
    "linear",       "batch_norm",   "layer_norm",
    "lrn",          "relu",         "gelu",
    "tanh",         "sigmoid",      "max_pool",
    "average_pool", "global_pool",  "add",
    "concat",       "dropout",      "embedding",
    "positions",    "attention",    "lstm",
    "reshape",      "softmax_loss",
};

}  // namespace

std::string_view Name(LayerKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Initializer Constant(float value) { return {Initializer::Kind::kConstant, value}; }
Initializer Normal(float deviation) { return {Initializer::Kind::kNormal, deviation}; }
Initializer Uniform(float bound) { return {Initializer::Kind::kUniform, bound}; }

Initializer Kaiming(std::int64_t fan) {
  return Normal(static_cast<float>(std::sqrt(2.0 / static_cast<double>(fan))));
}

Initializer Xavier(std::int64_t fan_in, std::int64_t fan_out) {
  return Uniform(static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))));
}

Tensor OutputTensor(const Layer& layer, std::int64_t batch) {
  Tensor tensor{{batch * layer.rows}, layer.type};
  tensor.shape.insert(tensor.shape.end(), layer.shape.begin(), layer.shape.end());
  return tensor;
}

Tensor Network::input_tensor() const { return {input().shape, input().type}; }

Tensor Network::label_tensor() const {
  const Layer& logits = layers.at(static_cast<std::size_t>(layers.at(loss).inputs.at(0)));
  Tensor labels{{}, ElementType::kInt};
  if (logits.rows != 1) labels.shape.push_back(logits.rows);
  labels.shape.insert(labels.shape.end(), logits.shape.begin(), logits.shape.end() - 1);
  return labels;
}

std::int64_t TrainedParameterCount(const Network& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.parameters) {
    if (parameter.trained) count += Count(parameter.shape);
  }
  return count;
}

bool IsReasonable(const Shape& shape, std::int64_t times) {
  std::int64_t room = times > 0 ? kMaxElements / times : 0;
  for (const std::int64_t extent : shape) {
    if (extent <= 0) return false;
    room /= extent;
  }
  return room > 0;
}

std::string FormatShape(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

}  // namespace plimsoll::nn

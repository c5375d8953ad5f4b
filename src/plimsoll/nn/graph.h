// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/nn/op.h"

/// A network as data: layers in an order in which they can run, each with the layers that it reads,
/// its attributes and its parameters. Nothing here knows of a batch, of a device or of gradients.
namespace plimsoll::nn {

enum class LayerKind : std::uint8_t {
  kInput,
  kConv,
  kTransposedConv,
  kLinear,
  kBatchNorm,
  kLayerNorm,
  kLrn,
  kRelu,
  kGelu,
  kTanh,
  kSigmoid,
  kMaxPool,
  kAveragePool,
  kGlobalPool,
  kAdd,
  kConcat,
  kDropout,
  kEmbedding,
  kAddPositions,
  kAttention,
  kLstm,
  kReshape,  ///< Another shape of the same content; no op.
  kSoftmaxLoss,
};
inline constexpr int kLayerKinds = static_cast<int>(LayerKind::kSoftmaxLoss) + 1;
std::string_view Name(LayerKind kind);  ///< "conv", "batch_norm" and so on.

using LayerIndex = std::int32_t;
using ParameterIndex = std::int32_t;
using BranchIndex = std::int32_t;

/// How a parameter begins.
struct Initializer {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  float value = 0;  ///< The constant, the standard deviation, or the bound on either side of zero.

  friend bool operator==(const Initializer&, const Initializer&) = default;
};
Initializer Constant(float value);
Initializer Normal(float deviation);
Initializer Uniform(float bound);
/// He et al., 2015, for layers before a ReLU.
Initializer Kaiming(std::int64_t fan);
/// Glorot and Bengio, 2010, uniform.
Initializer Xavier(std::int64_t fan_in, std::int64_t fan_out);

struct Parameter {
  std::string name;  ///< The layer's, a dot, and "weight", "bias" and so on; all are different.
  Shape shape;
  Initializer initializer{};
  bool trained = true;  ///< Running statistics are not.
};

struct Layer {
  LayerKind kind = LayerKind::kInput;
  std::string name;  ///< All are different.
  std::vector<LayerIndex> inputs{};
  Shape shape{};          ///< Of its output, for one row of the batch.
  std::int64_t rows = 1;  ///< Rows of the output for each sample: frames of a video, else 1.
  ElementType type = ElementType::kFloat;
  Attributes attributes{};
  std::vector<ParameterIndex> parameters{};  ///< In the order of the op's reads.
  BranchIndex branch = -1;                   ///< What it is part of, if that can be left out.
  BranchIndex joins = -1;  ///< Of an addition: the branch that its second input is.
};

/// A part of the network that a training step leaves out now and then (stochastic depth, Huang et
/// al., 2016): the addition that joins it then passes its first input on. In evaluation the branch
/// is always there, scaled by `survival`.
struct Branch {
  float survival = 1;  ///< The probability to be there.
};

struct Network {
  std::string name;
  std::vector<Layer> layers;  ///< Inputs before their users; layer 0 is the input.
  std::vector<Parameter> parameters;
  std::vector<Branch> branches;
  LayerIndex loss = -1;
  std::int64_t classes = 0;

  const Layer& input() const { return layers.front(); }
  /// Shape and type of what goes in, and of the labels, for one sample.
  Tensor input_tensor() const;
  Tensor label_tensor() const;
};

/// Returns the shape of a layer's output for a batch.
Tensor OutputTensor(const Layer& layer, std::int64_t batch);

std::int64_t TrainedParameterCount(const Network& network);

/// No tensor may have more elements than this (a batch counts): sums of their sizes then fit.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
/// Whether all extents are above zero, and all elements, `times` as many, at most kMaxElements.
bool IsReasonable(const Shape& shape, std::int64_t times = 1);

/// Writes a shape for people: "3x224x224".
std::string FormatShape(const Shape& shape);

}  // namespace plimsoll::nn

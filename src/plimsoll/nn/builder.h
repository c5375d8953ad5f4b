// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/nn/graph.h"

namespace plimsoll::nn {

/// Height and width.
struct Extent {
  std::int64_t height = 1;
  std::int64_t width = 1;

  Extent(std::int64_t both) : height(both), width(both) {}  // NOLINT: numbers are extents.
  Extent(std::int64_t h, std::int64_t w) : height(h), width(w) {}
};

struct ConvOptions {
  Extent kernel = 3;
  Extent stride = 1;
  Extent padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<Initializer> initializer{};  ///< Kaiming's, of the fan out, if it is not said.
};

struct LinearOptions {
  bool bias = true;
  std::optional<Initializer> initializer{};  ///< Uniform within 1 / sqrt(fan in).
  ParameterIndex shared_weight = -1;         ///< A weight that another layer has already.
};

struct PoolOptions {
  Extent kernel = 2;
  std::optional<Extent> stride{};  ///< The kernel's, if it is not said.
  Extent padding = 0;
};

struct LrnOptions {
  std::int64_t size = 5;
  float alpha = 1e-4F;
  float beta = 0.75F;
  float k = 1;
};

/// Builds a network layer by layer:
///
///     NetworkBuilder net("tiny");
///     LayerIndex x = net.Image(28, 28, 1);
///     x = net.Relu(net.Conv(x, 16, {.kernel = 5}));
///     net.SoftmaxLoss(net.Linear(net.Flatten(x), 10));
///     const Network network = net.Finish();
///
/// Shapes are inferred; what does not fit together throws Error with the layer and the shapes. A
/// layer that is given no name is called by its kind and a number.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string name);

  // The input comes first: one of these.
  LayerIndex Image(std::int64_t height, std::int64_t width, std::int64_t channels);
  LayerIndex Tokens(std::int64_t length);
  LayerIndex Input(Shape shape, ElementType type = ElementType::kFloat);

  LayerIndex Conv(LayerIndex x, std::int64_t channels, const ConvOptions& options = {},
                  std::string_view name = {});
  LayerIndex TransposedConv(LayerIndex x, std::int64_t channels, const ConvOptions& options = {},
                            std::string_view name = {});
  LayerIndex Linear(LayerIndex x, std::int64_t features, const LinearOptions& options = {},
                    std::string_view name = {});
  LayerIndex BatchNorm(LayerIndex x, std::string_view name = {}, float epsilon = 1e-5F);
  LayerIndex LayerNorm(LayerIndex x, std::string_view name = {}, float epsilon = 1e-5F);
  LayerIndex Lrn(LayerIndex x, const LrnOptions& options = {}, std::string_view name = {});
  LayerIndex Relu(LayerIndex x, std::string_view name = {});
  LayerIndex Gelu(LayerIndex x, std::string_view name = {});
  LayerIndex Tanh(LayerIndex x, std::string_view name = {});
  LayerIndex Sigmoid(LayerIndex x, std::string_view name = {});
  LayerIndex MaxPool(LayerIndex x, const PoolOptions& options, std::string_view name = {});
  LayerIndex AveragePool(LayerIndex x, const PoolOptions& options, std::string_view name = {});
  LayerIndex GlobalPool(LayerIndex x, std::string_view name = {});
  LayerIndex Add(LayerIndex a, LayerIndex b, std::string_view name = {});
  LayerIndex Concat(std::span<const LayerIndex> inputs, std::string_view name = {});
  LayerIndex Concat(std::initializer_list<LayerIndex> inputs, std::string_view name = {}) {
    return Concat(std::span(inputs.begin(), inputs.size()), name);
  }
  LayerIndex Dropout(LayerIndex x, float rate, std::string_view name = {});
  LayerIndex Embedding(LayerIndex ids, std::int64_t vocabulary, std::int64_t features,
                       std::string_view name = {});
  LayerIndex AddPositions(LayerIndex x, std::int64_t max_length, std::string_view name = {});
  LayerIndex Attention(LayerIndex qkv, std::int64_t heads, bool causal = true,
                       std::string_view name = {});
  LayerIndex Lstm(LayerIndex x, std::int64_t features, std::string_view name = {});
  LayerIndex Reshape(LayerIndex x, Shape shape, std::string_view name = {});
  LayerIndex Flatten(LayerIndex x, std::string_view name = {});
  /// Makes rows of the first dimension of each sample, so that a network of images sees frames of
  /// videos, and the way back.
  LayerIndex FoldTime(LayerIndex x, std::string_view name = {});
  LayerIndex UnfoldTime(LayerIndex x, std::int64_t length, std::string_view name = {});
  /// Ends the network: rows of the last dimension against labels.
  LayerIndex SoftmaxLoss(LayerIndex logits, std::string_view name = {});

  /// Layers in between belong to a branch that training may leave out; JoinBranch adds its last
  /// layer to what goes past it.
  BranchIndex BeginBranch(float survival);
  LayerIndex JoinBranch(LayerIndex past, LayerIndex last, std::string_view name = {});

  const Shape& shape_of(LayerIndex layer) const;
  /// Returns a parameter of a layer, as for LinearOptions::shared_weight.
  ParameterIndex parameter_of(LayerIndex layer, std::size_t which = 0) const;

  /// Returns the network. Throws Error if it has no loss. The builder is then empty.
  Network Finish();

 private:
  LayerIndex Append(LayerKind kind, std::span<const LayerIndex> inputs, std::string_view name);
  LayerIndex AppendOne(LayerKind kind, LayerIndex x, std::string_view name);
  void AddParameter(LayerIndex layer, std::string_view role, Shape shape, Initializer initializer,
                    bool trained = true);
  LayerIndex Convolve(LayerKind kind, LayerIndex x, std::int64_t channels,
                      const ConvOptions& options, std::string_view name);
  LayerIndex Pool(LayerKind kind, LayerIndex x, const PoolOptions& options, std::string_view name);
  Layer& at(LayerIndex layer) { return network_.layers[static_cast<std::size_t>(layer)]; }
  [[noreturn]] void Fail(LayerIndex layer, const std::string& reason) const;
  void Require(LayerIndex layer, bool condition, std::string_view expected) const;
  void CheckSize(LayerIndex layer) const;

  Network network_;
  std::set<std::string, std::less<>> names_;
  BranchIndex branch_ = -1;
};

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// GPT-2 (Radford et al., 2019). The output layer shares the weights of the embedding.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

struct Size {
  const char* name;
  std::int64_t layers;
  std::int64_t features;
  std::int64_t heads;
  std::int64_t positions;
  std::int64_t vocabulary;
};

constexpr Size kSizes[] = {
    {"gpt2-tiny", 2, 64, 2, 64, 256},           {"gpt2-small", 12, 768, 12, 1024, 50257},
    {"gpt2-medium", 24, 1024, 16, 1024, 50257}, {"gpt2-large", 36, 1280, 20, 1024, 50257},
    {"gpt2-xl", 48, 1600, 25, 1024, 50257},
};

Network Build(const Size& size, const ModelOptions& options) {
  constexpr float kDropout = 0.1F;
  NetworkBuilder net(size.name);
  const std::int64_t layers = Shorten(size.layers, options);
  const std::int64_t length = OrElse(options.sequence_length, size.positions);
  // The features of a head stay; there are fewer heads.
  const std::int64_t heads = Narrow(size.heads, options);
  const std::int64_t features = size.features / size.heads * heads;
  const std::int64_t vocabulary = OrElse(options.classes, size.vocabulary);
  const LinearOptions inner{.initializer = Normal(0.02F)};
  const LinearOptions residual{.initializer =
                                   Normal(0.02F / std::sqrt(2 * static_cast<float>(layers)))};
  const LayerIndex embedding = net.Embedding(net.Tokens(length), vocabulary, features, "tokens");
  LayerIndex x = net.AddPositions(embedding, std::max(length, size.positions), "positions");
  x = net.Dropout(x, kDropout, "drop");
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = fmt::format("block{}", i);
    LayerIndex y =
        net.Linear(net.LayerNorm(x, name + ".norm1"), 3 * features, inner, name + ".qkv");
    y = net.Attention(y, heads, /*causal=*/true, name + ".attention");
    y = net.Dropout(net.Linear(y, features, residual, name + ".project"), kDropout,
                    name + ".drop1");
    x = net.Add(x, y, name + ".add1");
    y = net.Linear(net.LayerNorm(x, name + ".norm2"), 4 * features, inner, name + ".up");
    y = net.Linear(net.Gelu(y, name + ".gelu"), features, residual, name + ".down");
    x = net.Add(x, net.Dropout(y, kDropout, name + ".drop2"), name + ".add2");
  }
  x = net.LayerNorm(x, "norm");
  net.SoftmaxLoss(net.Linear(x, vocabulary,
                             {.bias = false, .shared_weight = net.parameter_of(embedding)}, "out"),
                  "loss");
  return net.Finish();
}

std::optional<Model> Find(std::string_view name) {
  for (const Size& size : kSizes) {
    if (name != size.name) continue;
    return Model{size.name,
                 fmt::format("GPT-2: {} blocks, {} features", size.layers, size.features),
                 DataKind::kText, size.layers == 2 ? 8 : 4,
                 [&size](const ModelOptions& options) { return Build(size, options); }};
  }
  return std::nullopt;
}

}  // namespace

const Family& Gpt2Family() {
  static const Family family{{"gpt2-tiny", "gpt2-small", "gpt2-medium", "gpt2-large", "gpt2-xl"},
                             Find};
  return family;
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/nn/description_internal.h"

namespace plimsoll::nn {
namespace {

using Json = nlohmann::json;

std::optional<LayerKind> KindOf(std::string_view name) {
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    if (Name(static_cast<LayerKind>(kind)) == name) return static_cast<LayerKind>(kind);
  }
  return std::nullopt;
}

}  // namespace

void DescriptionBuilder::Input(const Json& input) {
  LayerFields fields(input, "input");
  if (fields.FindIfThere("image") != nullptr) {
    const Shape image = fields.ShapeOf("image");
    if (image.size() != 3) fields.Fail("\"image\" is not [height, width, channels]");
    last_ = net_.Input(image);
  } else if (fields.FindIfThere("tokens") != nullptr) {
    last_ = net_.Tokens(fields.Integer("tokens"));
  } else if (fields.FindIfThere("shape") != nullptr) {
    last_ = net_.Input(fields.ShapeOf("shape"));
  } else {
    fields.Fail("has none of \"image\", \"tokens\" and \"shape\"");
  }
  fields.RefuseOthers();
  layers_["input"] = last_;
}

void DescriptionBuilder::Layer(const Json& layer, std::size_t number) {
  LayerFields fields(layer, fmt::format("layer {}", number));
  const std::string kind_name = fields.Text("kind");
  const std::optional<LayerKind> kind = KindOf(kind_name);
  const bool is_flatten = kind_name == "flatten";
  if ((!kind && !is_flatten) || kind == LayerKind::kInput) {
    fields.Fail(fmt::format("no kind of layer is called {}", Quote(kind_name)));
  }
  const std::string name = fields.FindIfThere("name") != nullptr
                               ? fields.Text("name")
                               : kind_name + std::to_string(number);
  last_ = is_flatten ? net_.Flatten(InputOf(&fields), name) : Make(*kind, &fields, name);
  fields.RefuseOthers();
  layers_[name] = last_;
}

LayerIndex DescriptionBuilder::Named(LayerFields* fields, const Json& name) const {
  if (!name.is_string()) fields->Fail(fmt::format("{} is no name of a layer", Quote(name.dump())));
  const auto found = layers_.find(name.get<std::string>());
  if (found == layers_.end()) {
    fields->Fail(fmt::format("reads {}, and no layer before it is called that",
                             Quote(name.get<std::string>())));
  }
  return found->second;
}

LayerIndex DescriptionBuilder::InputOf(LayerFields* fields) {
  const Json* given = fields->FindIfThere("input");
  return given == nullptr ? last_ : Named(fields, *given);
}

std::optional<Initializer> DescriptionBuilder::InitializerOf(LayerFields* fields,
                                                             std::int64_t fan_in,
                                                             std::int64_t fan_out) const {
  const Json* given = fields->FindIfThere("initializer");
  if (given == nullptr) return std::nullopt;
  if (*given == "kaiming") return Kaiming(fan_in);
  if (*given == "xavier") return Xavier(fan_in, fan_out);
  if (given->is_object() && given->size() == 1 && given->begin()->is_number()) {
    const auto value = given->begin()->get<float>();
    if (given->begin().key() == "normal") return Normal(value);
    if (given->begin().key() == "uniform") return Uniform(value);
    if (given->begin().key() == "constant") return Constant(value);
  }
  fields->Fail(
      fmt::format("\"initializer\" is {}; expected \"kaiming\", \"xavier\", or "
                  "{{\"normal\": deviation}}, {{\"uniform\": bound}}, "
                  "{{\"constant\": value}}",
                  Quote(given->dump())));
}

LayerIndex DescriptionBuilder::MakeConv(LayerKind kind, LayerFields* fields,
                                        const std::string& name) {
  const LayerIndex x = InputOf(fields);
  const std::int64_t channels = fields->Integer("channels");
  ConvOptions options{.kernel = fields->ExtentOr("kernel", 3),
                      .stride = fields->ExtentOr("stride", 1),
                      .padding = fields->ExtentOr("padding", 0),
                      .groups = fields->IntegerOr("groups", 1),
                      .bias = fields->BoolOr("bias", true)};
  const std::int64_t area = options.kernel.height * options.kernel.width;
  const std::int64_t in = net_.shape_of(x).empty() ? 1 : net_.shape_of(x).back();
  const std::int64_t groups = std::max<std::int64_t>(1, options.groups);
  options.initializer = InitializerOf(fields, area * in / groups, area * channels / groups);
  return kind == LayerKind::kConv ? net_.Conv(x, channels, options, name)
                                  : net_.TransposedConv(x, channels, options, name);
}

LayerIndex DescriptionBuilder::MakeLinear(LayerFields* fields, const std::string& name) {
  const LayerIndex x = InputOf(fields);
  const std::int64_t features = fields->Integer("features");
  LinearOptions options{.bias = fields->BoolOr("bias", true)};
  const std::int64_t in = net_.shape_of(x).empty() ? 1 : net_.shape_of(x).back();
  options.initializer = InitializerOf(fields, in, features);
  if (const Json* shared = fields->FindIfThere("share_weight_of")) {
    options.shared_weight = net_.parameter_of(Named(fields, *shared));
  }
  return net_.Linear(x, features, options, name);
}

LayerIndex DescriptionBuilder::MakeOfSeveral(LayerKind kind, LayerFields* fields,
                                             const std::string& name) {
  const Json& given = fields->Find("inputs");
  if (!given.is_array()) fields->Fail("\"inputs\" is not a list of names");
  std::vector<LayerIndex> inputs;
  for (const Json& input : given) inputs.push_back(Named(fields, input));
  if (kind == LayerKind::kConcat) return net_.Concat(inputs, name);
  if (inputs.size() != 2) fields->Fail(fmt::format("adds {} inputs; expected 2", inputs.size()));
  return net_.Add(inputs[0], inputs[1], name);
}

LayerIndex DescriptionBuilder::Make(LayerKind kind, LayerFields* fields, const std::string& name) {
  const auto number = [fields](const char* key, double otherwise) {
    return static_cast<float>(fields->NumberOr(key, otherwise));
  };
  const auto pool = [fields] {
    return PoolOptions{fields->ExtentOr("kernel", 2), fields->ExtentIfThere("stride"),
                       fields->ExtentOr("padding", 0)};
  };
  switch (kind) {
    case LayerKind::kConv:
    case LayerKind::kTransposedConv:
      return MakeConv(kind, fields, name);
    case LayerKind::kLinear:
      return MakeLinear(fields, name);
    case LayerKind::kAdd:
    case LayerKind::kConcat:
      return MakeOfSeveral(kind, fields, name);
    case LayerKind::kBatchNorm:
      return net_.BatchNorm(InputOf(fields), name, number("epsilon", 1e-5));
    case LayerKind::kLayerNorm:
      return net_.LayerNorm(InputOf(fields), name, number("epsilon", 1e-5));
    case LayerKind::kLrn:
      return net_.Lrn(InputOf(fields),
                      {fields->IntegerOr("size", 5), number("alpha", 1e-4), number("beta", 0.75),
                       number("k", 1)},
                      name);
    case LayerKind::kRelu:
      return net_.Relu(InputOf(fields), name);
    case LayerKind::kGelu:
      return net_.Gelu(InputOf(fields), name);
    case LayerKind::kTanh:
      return net_.Tanh(InputOf(fields), name);
    case LayerKind::kSigmoid:
      return net_.Sigmoid(InputOf(fields), name);
    case LayerKind::kMaxPool:
      return net_.MaxPool(InputOf(fields), pool(), name);
    case LayerKind::kAveragePool:
      return net_.AveragePool(InputOf(fields), pool(), name);
    case LayerKind::kGlobalPool:
      return net_.GlobalPool(InputOf(fields), name);
    case LayerKind::kDropout:
      return net_.Dropout(InputOf(fields), number("rate", 0.5), name);
    case LayerKind::kEmbedding:
      return net_.Embedding(InputOf(fields), fields->Integer("vocabulary"),
                            fields->Integer("features"), name);
    case LayerKind::kAddPositions:
      return net_.AddPositions(InputOf(fields), fields->Integer("length"), name);
    case LayerKind::kAttention:
      return net_.Attention(InputOf(fields), fields->Integer("heads"),
                            fields->BoolOr("causal", true), name);
    case LayerKind::kLstm:
      return net_.Lstm(InputOf(fields), fields->Integer("features"), name);
    case LayerKind::kReshape:
      return net_.Reshape(InputOf(fields), fields->ShapeOf("shape"), name);
    case LayerKind::kSoftmaxLoss:
      return net_.SoftmaxLoss(InputOf(fields), name);
    case LayerKind::kInput:
      break;
  }
  fields->Fail("is an input; there is one, which comes first");
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "plimsoll/nn/builder.h"

namespace plimsoll::nn {

/// Takes fields out of one object, says what is wrong with them, and which nobody knows. What fails
/// throws Error.
class LayerFields {
 public:
  LayerFields(const nlohmann::json& object, std::string where);

  const nlohmann::json& Find(const char* key);
  const nlohmann::json* FindIfThere(const char* key);
  std::int64_t Integer(const char* key);
  std::int64_t IntegerOr(const char* key, std::int64_t otherwise);
  double NumberOr(const char* key, double otherwise);
  bool BoolOr(const char* key, bool otherwise);
  std::string Text(const char* key);
  /// A number, or a list of height and width.
  Extent ExtentOr(const char* key, Extent otherwise);
  std::optional<Extent> ExtentIfThere(const char* key);
  Shape ShapeOf(const char* key);
  void RefuseOthers() const;
  [[noreturn]] void Fail(const std::string& reason) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

/// Feeds a NetworkBuilder from JSON.
class DescriptionBuilder {
 public:
  explicit DescriptionBuilder(std::string name) : net_(std::move(name)) {}

  void Input(const nlohmann::json& input);
  void Layer(const nlohmann::json& layer, std::size_t number);
  Network Finish() { return net_.Finish(); }

 private:
  LayerIndex Make(LayerKind kind, LayerFields* fields, const std::string& name);
  LayerIndex MakeConv(LayerKind kind, LayerFields* fields, const std::string& name);
  LayerIndex MakeLinear(LayerFields* fields, const std::string& name);
  LayerIndex MakeOfSeveral(LayerKind kind, LayerFields* fields, const std::string& name);
  LayerIndex InputOf(LayerFields* fields);
  LayerIndex Named(LayerFields* fields, const nlohmann::json& name) const;
  std::optional<Initializer> InitializerOf(LayerFields* fields, std::int64_t fan_in,
                                           std::int64_t fan_out) const;

  NetworkBuilder net_;
  std::map<std::string, LayerIndex, std::less<>> layers_;
  LayerIndex last_ = -1;
};

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/nn/description_internal.h"

namespace plimsoll::nn {
namespace {

using Json = nlohmann::json;

/// Extents beyond this are typing errors; products of a few of them still fit.
constexpr std::int64_t kMaxInteger = std::int64_t{1} << 30;

}  // namespace

LayerFields::LayerFields(const Json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) Fail("is not an object");
}

void LayerFields::Fail(const std::string& reason) const {
  throw Error(fmt::format("{}: {}; see docs/formats.md", where_, reason));
}

const Json* LayerFields::FindIfThere(const char* key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json& LayerFields::Find(const char* key) {
  const Json* found = FindIfThere(key);
  if (found == nullptr) Fail(fmt::format("has no \"{}\"", key));
  return *found;
}

std::int64_t LayerFields::Integer(const char* key) {
  const Json& value = Find(key);
  if (!value.is_number_integer() || value < 0 || value > kMaxInteger) {
    Fail(fmt::format("\"{}\" is {}; expected a whole number from 0", key, Quote(value.dump())));
  }
  return value.get<std::int64_t>();
}

std::int64_t LayerFields::IntegerOr(const char* key, std::int64_t otherwise) {
  return FindIfThere(key) == nullptr ? otherwise : Integer(key);
}

double LayerFields::NumberOr(const char* key, double otherwise) {
  const Json* value = FindIfThere(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    Fail(fmt::format("\"{}\" is {}; expected a number", key, Quote(value->dump())));
  }
  return value->get<double>();
}

bool LayerFields::BoolOr(const char* key, bool otherwise) {
  const Json* value = FindIfThere(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    Fail(fmt::format("\"{}\" is {}; expected true or false", key, Quote(value->dump())));
  }
  return value->get<bool>();
}

std::string LayerFields::Text(const char* key) {
  const Json& value = Find(key);
  if (!value.is_string() || value.get<std::string>().empty()) {
    Fail(fmt::format("\"{}\" is {}; expected a text", key, Quote(value.dump())));
  }
  return value.get<std::string>();
}

std::optional<Extent> LayerFields::ExtentIfThere(const char* key) {
  const Json* value = FindIfThere(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return Extent(Integer(key));
  const Shape shape = ShapeOf(key);
  if (shape.size() != 2) Fail(fmt::format("\"{}\" is not [height, width]", key));
  return Extent(shape[0], shape[1]);
}

Extent LayerFields::ExtentOr(const char* key, Extent otherwise) {
  return ExtentIfThere(key).value_or(otherwise);
}

Shape LayerFields::ShapeOf(const char* key) {
  const Json& value = Find(key);
  Shape shape;
  if (!value.is_array()) Fail(fmt::format("\"{}\" is not a list of whole numbers", key));
  for (const Json& extent : value) {
    if (!extent.is_number_integer() || extent < 0 || extent > kMaxInteger) {
      Fail(fmt::format("\"{}\" has {}; expected whole numbers", key, Quote(extent.dump())));
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

void LayerFields::RefuseOthers() const {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key)) Fail(fmt::format("has {}, which it does not know", Quote(key)));
  }
}

}  // namespace plimsoll::nn

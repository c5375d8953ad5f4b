// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/chain/model.h"

namespace plimsoll::chain {
namespace {

using Json = nlohmann::json;

/// Takes fields out of one object and says what is wrong with them.
class Fields {
 public:
  Fields(const Json& object, std::string where, const std::string& source)
      : object_(object), where_(std::move(where)), source_(source) {
    if (!object.is_object()) Fail("is not an object");
  }

  Bytes Integer(const char* key) const {
    const Json& value = Find(key);
    if (!value.is_number_integer()) Fail(fmt::format("{} is not an integer", key));
    if (value.is_number_unsigned() && value.get<std::uint64_t>() >= std::uint64_t{kMaxBytes}) {
      Fail(fmt::format("{} is {}, which is absurd", key, value.dump()));
    }
    const auto number = value.get<std::int64_t>();
    if (number < 0) Fail(fmt::format("{} is negative: {}", key, number));
    return number;
  }
  Bytes IntegerOr(const char* key, Bytes otherwise) const {
    return object_.contains(key) ? Integer(key) : otherwise;
  }

  /// A time in milliseconds; at most a day, since a sum of such times must not overflow.
  Nanoseconds Milliseconds(const char* key) const {
    constexpr double kDay = 86'400'000;
    const double value = Number(key);
    if (value > kDay) Fail(fmt::format("{} is more than a day: {} ms", key, value));
    return static_cast<Nanoseconds>(std::llround(value * 1e6));
  }

  double Number(const char* key) const {
    const Json& value = Find(key);
    if (!value.is_number()) Fail(fmt::format("{} is not a number", key));
    const auto number = value.get<double>();
    if (!std::isfinite(number) || number < 0) {
      Fail(fmt::format("{} must not be negative: {}", key, value.dump()));
    }
    return number;
  }

  std::string Text(const char* key) const {
    const Json& value = Find(key);
    if (!value.is_string()) Fail(fmt::format("{} is not a text", key));
    return value.get<std::string>();
  }

  const Json& Find(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) Fail(fmt::format("has no \"{}\"", key));
    return *found;
  }

  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, 0, fmt::format("{}: {}; see docs/formats.md", where_, reason));
  }

 private:
  const Json& object_;
  std::string where_;
  const std::string& source_;
};

/// The link is optional: `--bandwidth` can stand for it. One of zero bandwidth is an error.
std::int64_t ReadBandwidth(const Json& root, const std::string& source) {
  if (!root.contains("host_link_GBps")) return 0;
  const Json& link = root["host_link_GBps"];
  const Fields fields(link, "host_link_GBps", source);
  const double gigabytes = fields.Number("one_way");
  if (gigabytes < 1e-9 || gigabytes > 1e9) {
    fields.Fail(fmt::format("one_way is {}: the link needs a bandwidth above zero", gigabytes));
  }
  return std::llround(gigabytes * 1e9);
}

Stage ReadStage(const Json& object, std::size_t index, const std::string& source) {
  const Fields fields(object, fmt::format("stage {}", index), source);
  Stage stage;
  stage.name = fields.Text("name");
  stage.forward_ns = fields.Milliseconds("forward_ms");
  stage.backward_ns = fields.Milliseconds("backward_ms");
  stage.kept_bytes = fields.Integer("kept_bytes");
  stage.forward_temp_bytes = fields.Integer("forward_temp_bytes");
  stage.backward_temp_bytes = fields.Integer("backward_temp_bytes");
  stage.input_gradient_bytes = fields.Integer("input_gradient_bytes");
  const std::int64_t output = fields.IntegerOr("output_bytes", stage.kept_bytes);
  if (output > stage.kept_bytes) {
    fields.Fail(fmt::format("output_bytes is {}, of kept_bytes {}", output, stage.kept_bytes));
  }
  stage.inside_bytes = stage.kept_bytes - output;
  return stage;
}

}  // namespace

Chain ParseChain(std::string_view text, const std::string& source) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::exception& error) {
    throw InputError(source, 0, fmt::format("is not JSON: {}", Quote(error.what())));
  }
  const Fields fields(root, "the chain", source);
  Chain chain;
  chain.name = fields.Text("model");
  chain.batch = fields.IntegerOr("batch", 0);
  chain.image = fields.IntegerOr("image", 0);
  chain.bandwidth_bytes_per_s = ReadBandwidth(root, source);
  chain.input_bytes = fields.Integer("input_bytes");
  chain.output_gradient_bytes = fields.IntegerOr("output_gradient_bytes", 0);
  const Json& stages = fields.Find("stages");
  if (!stages.is_array()) fields.Fail("stages is not an array");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    chain.stages.push_back(ReadStage(stages[i], i, source));
  }
  CheckWellFormed(chain, source);
  return chain;
}

Chain ReadChain(const std::string& path) {
  LineReader reader(path);
  std::string text;
  while (reader.Next()) {
    text += reader.line();
    text += '\n';
  }
  return ParseChain(text, path);
}

}  // namespace plimsoll::chain

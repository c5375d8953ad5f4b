// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/nn/description_internal.h"

namespace plimsoll::nn {
namespace {

using Json = nlohmann::json;

std::int64_t LineAt(std::string_view text, std::size_t position) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

/// Returns where the text that begins at `begin` ends: at its second quotation mark.
std::size_t EndOfText(std::string_view text, std::size_t begin) {
  while (text[begin] != '"') begin += text[begin] == '\\' ? 2 : 1;
  return begin;
}

/// Returns the lines in which the elements of the array "layers" begin. REQUIRES: valid JSON.
std::vector<std::int64_t> LinesOfLayers(std::string_view text) {
  std::vector<std::int64_t> lines;
  std::int64_t line = 1;
  int depth = 0;
  std::string_view last_text;  // At depth 1: a key, when a value follows.
  bool in_layers = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"') {
      const std::size_t begin = i + 1;
      i = EndOfText(text, begin);
      if (depth == 1) last_text = text.substr(begin, i - begin);
    } else if (c == '{' || c == '[') {
      if (depth == 1) in_layers = c == '[' && last_text == "layers";
      if (depth == 2 && in_layers) lines.push_back(line);
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return lines;
}

DataKind KindOf(const Network& network) {
  if (network.input().type == ElementType::kInt) return DataKind::kText;
  if (network.label_tensor().count() == 1) return DataKind::kImages;
  return network.input().shape.size() == 4 ? DataKind::kVideos : DataKind::kPixels;
}

}  // namespace

Description ParseDescription(std::string_view text, const std::string& source) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(source, LineAt(text, error.byte),
                     fmt::format("is not JSON: {}", Quote(error.what())));
  } catch (const Json::exception& error) {  // A number that no double holds.
    throw InputError(source, 0, fmt::format("is not JSON: {}", Quote(error.what())));
  }
  Description description;
  try {
    LayerFields fields(root, "the network");
    if (fields.Integer("version") != 1) {
      fields.Fail(fmt::format("version is {}; this reads 1", fields.Integer("version")));
    }
    DescriptionBuilder builder(fields.Text("name"));
    description.batch = fields.IntegerOr("batch", 32);
    builder.Input(fields.Find("input"));
    const Json& layers = fields.Find("layers");
    if (!layers.is_array() || layers.empty()) fields.Fail("\"layers\" is not a list of layers");
    fields.RefuseOthers();
    const std::vector<std::int64_t> lines = LinesOfLayers(text);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      try {
        builder.Layer(layers[i], i);
      } catch (const InputError&) {
        throw;
      } catch (const Error& error) {
        throw InputError(source, i < lines.size() ? lines[i] : 0, error.what());
      }
    }
    description.network = builder.Finish();
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    throw InputError(source, 0, error.what());
  }
  description.data = KindOf(description.network);
  return description;
}

Description ReadDescription(const std::string& path) {
  LineReader reader(path);
  std::string text;
  while (reader.Next()) {
    text += reader.line();
    text += '\n';
  }
  return ParseDescription(text, path);
}

Model OpenModel(const std::string& name_or_file) {
  if (!name_or_file.ends_with(".json")) return FindModel(name_or_file);
  const Description description = ReadDescription(name_or_file);
  return {description.network.name, "from " + name_or_file, description.data, description.batch,
          [network = description.network](const ModelOptions&) { return network; }};
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/models/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/nn/models/families_internal.h"

namespace plimsoll::nn {
namespace {

std::vector<const Family*> Families() {
  return {&ClassicFamily(), &VggFamily(),         &InceptionFamily(),
          &ResnetFamily(),  &CifarResnetFamily(), &DensenetFamily(),
          &UnetFamily(),    &RecurrentFamily(),   &Gpt2Family()};
}

/// How many characters must be put in, taken out or replaced (Levenshtein, 1966).
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view Name(DataKind kind) {
  static constexpr std::array<std::string_view, 4> kNames = {"images", "pixels", "text", "videos"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::optional<std::int64_t> NumberBehind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::optional<std::int64_t> number = ParseInteger(name.substr(prefix.size()));
  return number && *number > 0 ? number : std::nullopt;
}

bool TakeSuffix(std::string_view* name, std::string_view suffix) {
  if (!name->ends_with(suffix)) return false;
  name->remove_suffix(suffix.size());
  return true;
}

LayerIndex ConvNorm(NetworkBuilder* net, LayerIndex x, std::int64_t channels, ConvOptions options,
                    const std::string& name, bool relu, float epsilon) {
  options.bias = false;
  x = net->Conv(x, channels, options, name + ".conv");
  x = net->BatchNorm(x, name + ".norm", epsilon);
  return relu ? net->Relu(x, name + ".relu") : x;
}

Model FindModel(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const Family* family : Families()) {
    if (std::optional<Model> model = family->find(name)) return *std::move(model);
    for (const std::string& known : family->names)
      near.emplace_back(EditDistance(name, known), known);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < std::min<std::size_t>(near.size(), 5); ++i) {
    nearest.push_back(near[i].second);
  }
  throw Error(
      fmt::format("no model is called {}; near it are {}", Quote(name), fmt::join(nearest, ", ")));
}

std::vector<Model> ListModels() {
  std::vector<Model> models;
  for (const Family* family : Families()) {
    for (const std::string& name : family->names) models.push_back(*family->find(name));
  }
  return models;
}

}  // namespace plimsoll::nn

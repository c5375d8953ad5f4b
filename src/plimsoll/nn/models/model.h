// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/nn/graph.h"

/// Networks by name: `resnet50`, `vgg16-cifar`, `wrn28-10`, `gpt2-small`.
namespace plimsoll::nn {

/// What can be changed about a model; zero leaves it as it is. Small instances are for tests.
struct ModelOptions {
  std::int64_t image_size = 0;
  std::int64_t classes = 0;  ///< Of text: the vocabulary.
  std::int64_t sequence_length = 0;
  std::int64_t width_divisor = 1;  ///< Channels and features are divided by it.
  std::int64_t depth_divisor = 1;  ///< So are repeated blocks, where a model has them.
};

enum class DataKind : std::uint8_t {
  kImages,  ///< A label for each.
  kPixels,  ///< A label for each pixel.
  kText,    ///< Tokens; labels are the tokens that come next.
  kVideos,  ///< Frames, with a label for each.
};
std::string_view Name(DataKind kind);

/// A model that can be built.
struct Model {
  std::string name;
  std::string description;
  DataKind data = DataKind::kImages;
  std::int64_t batch = 32;  ///< By default.
  std::function<Network(const ModelOptions&)> build;
};

/// Returns the model of a name; depths and widths may be any that the family has. Throws Error that
/// lists near names, or what a depth must be.
Model FindModel(std::string_view name);

/// The models that have a name of their own, in order; families have more.
std::vector<Model> ListModels();

}  // namespace plimsoll::nn

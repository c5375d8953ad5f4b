// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/models/model.h"

/// A family gives the names that are worth listing, and finds those that it knows.
namespace plimsoll::nn {

struct Family {
  std::vector<std::string> names;
  /// Nothing if the name is not of this family. Throws Error if it is, but cannot be built.
  std::optional<Model> (*find)(std::string_view name);
};

const Family& ClassicFamily();  ///< LeNet, Cifar10-quick, AlexNet, CaffeNet.
const Family& VggFamily();
const Family& InceptionFamily();    ///< GoogLeNet, Inception v3.
const Family& ResnetFamily();       ///< With 224 pixels, of any depth.
const Family& CifarResnetFamily();  ///< Plain, pre-activation, wide, with stochastic depth.
const Family& DensenetFamily();
const Family& UnetFamily();
const Family& RecurrentFamily();  ///< char-lstm, cnn-lstm.
const Family& Gpt2Family();

inline std::int64_t OrElse(std::int64_t asked, std::int64_t otherwise) {
  return asked > 0 ? asked : otherwise;
}
inline std::int64_t Narrow(std::int64_t width, const ModelOptions& options) {
  return std::max<std::int64_t>(1, width / std::max<std::int64_t>(1, options.width_divisor));
}
inline std::int64_t Shorten(std::int64_t blocks, const ModelOptions& options) {
  return std::max<std::int64_t>(1, blocks / std::max<std::int64_t>(1, options.depth_divisor));
}

/// Reads the number behind a prefix: "resnet", "resnet50" -> 50. Nothing if there is anything else.
std::optional<std::int64_t> NumberBehind(std::string_view prefix, std::string_view name);
/// Takes a suffix off the end of a name; false if it is not there.
bool TakeSuffix(std::string_view* name, std::string_view suffix);

/// Convolution without bias, batch norm and, unless it is left out, ReLU.
LayerIndex ConvNorm(NetworkBuilder* net, LayerIndex x, std::int64_t channels, ConvOptions options,
                    const std::string& name, bool relu = true, float epsilon = 1e-5F);

}  // namespace plimsoll::nn

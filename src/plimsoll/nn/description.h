// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/nn/models/model.h"

/// Networks from files, so that a user brings one without compiling (docs/formats.md).
namespace plimsoll::nn {

/// A network and what is known of its data.
struct Description {
  Network network;
  DataKind data = DataKind::kImages;
  std::int64_t batch = 32;
};

/// Reads a network description. Throws InputError with the line, the layer and what is wrong.
Description ReadDescription(const std::string& path);
/// Does the same for a text; errors name `source` as their file.
Description ParseDescription(std::string_view text, const std::string& source);

/// Returns the model of a name, or the network of a file if the name ends in ".json". Options do
/// not change what comes from a file.
Model OpenModel(const std::string& name_or_file);

}  // namespace plimsoll::nn

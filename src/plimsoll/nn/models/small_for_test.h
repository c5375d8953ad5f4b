// SPDX-License-Identifier: Apache-2.0
//
// Small instances of all models. For tests only.
#pragma once

#include <string>

#include "plimsoll/nn/models/model.h"

namespace plimsoll::nn {

/// Options that make a model as small as it can be with everything in it.
inline ModelOptions SmallOptions(const Model& model) {
  ModelOptions options{.classes = 5, .width_divisor = 16, .depth_divisor = 2};
  const std::string& name = model.name;
  if (model.data == DataKind::kText)
    return {.classes = 17, .sequence_length = 12, .width_divisor = 16, .depth_divisor = 4};
  if (name == "lenet") {
    options.image_size = 20;
  } else if (name == "alexnet" || name == "caffenet" || name == "cnn-lstm") {
    options.image_size = 67;
    options.width_divisor = 32;
    options.sequence_length = 3;
  } else if (name == "inception-v3") {
    options.image_size = 75;
  } else if (model.data == DataKind::kPixels) {
    options.image_size = 16;
  } else if (name.starts_with("vgg")) {
    options.image_size = 32;
    options.width_divisor = 32;
  } else if (name == "resnet20" || name.starts_with("cifar10") || name.starts_with("wrn")) {
    options.width_divisor = 4;
    options.image_size = 16;
    if (name.starts_with("wrn")) options.width_divisor = 16;
  } else if (name.starts_with("densenet")) {
    options.image_size = 32;
    options.width_divisor = 8;
    options.depth_divisor = 8;
  } else {
    options.image_size = name.find("cifar") != name.npos ? 16 : 32;
    options.width_divisor = 8;
    // Deep ones become ones of a few blocks.
    if (name.size() > 8 || name == "resnet1001") options.depth_divisor = 100;
    if (name == "resnet101" || name == "resnet152" || name == "resnet110")
      options.depth_divisor = 9;
    if (name.find("110") != name.npos) options.depth_divisor = 9;
    if (name == "googlenet") options.image_size = 32;
  }
  return options;
}

}  // namespace plimsoll::nn

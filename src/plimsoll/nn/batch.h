// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::nn {

/// What goes into one step.
struct Batch {
  std::int64_t size = 0;               ///< Samples.
  std::vector<float> values{};         ///< Images, sample after sample: height, width, channel.
  std::vector<std::int32_t> tokens{};  ///< Or text; one of the two is empty.
  std::vector<std::int32_t> labels{};  ///< Negative ones do not count.
};

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/cuda/tiles.cuh"
#include "plimsoll/nn/op.h"

/// What the two files of batch norm share.
namespace plimsoll::cuda {

/// Blocks of passes that add up: few, as each leaves partial sums; 8 to a processor, in two waves.
inline constexpr std::int64_t kSumBlocks = kProcessors * 8;
/// Of passes that write.
inline constexpr std::int64_t kNormBlocks = kProcessors * 16;

nn::Kernel PrepareBatchNormBackward(const nn::OpSpec& spec);

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/cuda/rows.cuh"
#include "plimsoll/nn/op.h"

/// What the two files of layer norm share.
namespace plimsoll::cuda {

nn::Kernel PrepareLayerNormBackward(const nn::OpSpec& spec);

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/nn/op.h"

/// One function for each family of ops; each takes the kinds that its name says, checks the shapes
/// and returns a kernel. Throws Error if a shape is impossible.
namespace plimsoll::nn::onednn {

Kernel PrepareConvolution(const OpSpec& spec);  ///< And transposed ones.
Kernel PrepareLinear(const OpSpec& spec);
Kernel PrepareBatchNorm(const OpSpec& spec);
Kernel PrepareLayerNorm(const OpSpec& spec);
Kernel PrepareLrn(const OpSpec& spec);
Kernel PrepareRelu(const OpSpec& spec);
Kernel PrepareActivation(const OpSpec& spec);  ///< GELU, tanh, sigmoid.
Kernel PrepareMaxPool(const OpSpec& spec);
Kernel PrepareAveragePool(const OpSpec& spec);  ///< And the global one.
Kernel PrepareArithmetic(const OpSpec& spec);   ///< Add, scale, fill.
Kernel PrepareConcat(const OpSpec& spec);       ///< And slice.
Kernel PrepareDropout(const OpSpec& spec);
Kernel PrepareEmbedding(const OpSpec& spec);  ///< And rows that are added.
Kernel PrepareAttention(const OpSpec& spec);
Kernel PrepareLstm(const OpSpec& spec);
Kernel PrepareSoftmaxLoss(const OpSpec& spec);  ///< And the count of what is right.
Kernel PrepareUpdate(const OpSpec& spec);

}  // namespace plimsoll::nn::onednn

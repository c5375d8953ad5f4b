// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/nn/op.h"

/// One function for each family of ops; each takes the kinds that its name says, checks the shapes
/// and types and returns a kernel. Throws Error if a shape is impossible.
///
/// Kernels launch on Launch::native_stream, never wait for the device, allocate nothing, and need
/// nothing but their operands and their workspace: they can be captured in a graph. What changes
/// from step to step they read on the device, from Launch::constants (an nn::StepScalars), if that
/// is there.
namespace plimsoll::cuda {

class Handles;

nn::Kernel PrepareConvolution(const nn::OpSpec& spec, Handles* handles);  ///< And transposed ones.
nn::Kernel PrepareLinear(const nn::OpSpec& spec, Handles* handles);
nn::Kernel PrepareAttention(const nn::OpSpec& spec, Handles* handles);
nn::Kernel PrepareLstm(const nn::OpSpec& spec, Handles* handles);
/// Of all kinds below, which need no library of a vendor's.
nn::Kernel PrepareOwn(const nn::OpSpec& spec);
nn::Kernel PrepareBatchNorm(const nn::OpSpec& spec);  ///< With a ReLU behind it, too.
nn::Kernel PrepareLayerNorm(const nn::OpSpec& spec);
nn::Kernel PrepareLrn(const nn::OpSpec& spec);
nn::Kernel PrepareRelu(const nn::OpSpec& spec);
nn::Kernel PrepareActivation(const nn::OpSpec& spec);  ///< GELU, tanh, sigmoid.
nn::Kernel PrepareMaxPool(const nn::OpSpec& spec);
nn::Kernel PrepareAveragePool(const nn::OpSpec& spec);  ///< And the global one.
nn::Kernel PrepareArithmetic(const nn::OpSpec& spec);   ///< Add, scale, fill.
nn::Kernel PrepareConcat(const nn::OpSpec& spec);       ///< And slice.
nn::Kernel PrepareDropout(const nn::OpSpec& spec);
nn::Kernel PrepareEmbedding(const nn::OpSpec& spec);    ///< And rows that are added.
nn::Kernel PrepareSoftmaxLoss(const nn::OpSpec& spec);  ///< And the count of what is right.
nn::Kernel PrepareUpdate(const nn::OpSpec& spec);       ///< Of any number of parameters at once.

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::cuda {

nn::Kernel PrepareOwn(const nn::OpSpec& spec) {
  using enum nn::OpKind;
  switch (spec.kind) {
    case kBatchNormStatistics:
    case kBatchNormNormalize:
    case kBatchNormInference:
    case kBatchNormBackward:
    case kBatchNormReluForward:
    case kBatchNormReluBackward:
      return PrepareBatchNorm(spec);
    case kLayerNormForward:
    case kLayerNormBackward:
      return PrepareLayerNorm(spec);
    case kLrnForward:
    case kLrnBackward:
      return PrepareLrn(spec);
    case kReluForward:
    case kReluBackward:
      return PrepareRelu(spec);
    case kGeluForward:
    case kGeluBackward:
    case kTanhForward:
    case kTanhBackward:
    case kSigmoidForward:
    case kSigmoidBackward:
      return PrepareActivation(spec);
    case kMaxPoolForward:
    case kMaxPoolBackward:
      return PrepareMaxPool(spec);
    case kAveragePoolForward:
    case kAveragePoolBackward:
    case kGlobalPoolForward:
    case kGlobalPoolBackward:
      return PrepareAveragePool(spec);
    case kAdd:
    case kScale:
    case kFill:
      return PrepareArithmetic(spec);
    case kConcat:
    case kSlice:
      return PrepareConcat(spec);
    case kDropoutForward:
    case kDropoutBackward:
      return PrepareDropout(spec);
    case kEmbeddingForward:
    case kEmbeddingBackward:
    case kAddRowsForward:
    case kAddRowsBackward:
      return PrepareEmbedding(spec);
    case kSoftmaxLossForward:
    case kSoftmaxLossBackward:
    case kCountCorrect:
      return PrepareSoftmaxLoss(spec);
    case kSgdUpdate:
    case kAdamWUpdate:
      return PrepareUpdate(spec);
    default:
      nn::Refuse(spec, "there is no kernel of our own for it");
  }
}

}  // namespace plimsoll::cuda

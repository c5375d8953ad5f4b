// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/library.h"

#include <dnnl.hpp>
#include <string>
#include <unordered_map>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn {
namespace {

Kernel PrepareAnew(const OpSpec& spec) {
  using enum OpKind;
  switch (spec.kind) {
    case kConvForward:
    case kConvBackwardWeights:
    case kConvBackwardData:
    case kTransposedConvForward:
    case kTransposedConvBackwardWeights:
    case kTransposedConvBackwardData:
      return onednn::PrepareConvolution(spec);
    case kLinearForward:
    case kLinearBackwardWeights:
    case kLinearBackwardData:
      return onednn::PrepareLinear(spec);
    case kBatchNormForward:
    case kBatchNormInference:
    case kBatchNormBackward:
      return onednn::PrepareBatchNorm(spec);
    case kLayerNormForward:
    case kLayerNormBackward:
      return onednn::PrepareLayerNorm(spec);
    case kLrnForward:
    case kLrnBackward:
      return onednn::PrepareLrn(spec);
    case kReluForward:
    case kReluBackward:
      return onednn::PrepareRelu(spec);
    case kGeluForward:
    case kGeluBackward:
    case kTanhForward:
    case kTanhBackward:
    case kSigmoidForward:
    case kSigmoidBackward:
      return onednn::PrepareActivation(spec);
    case kMaxPoolForward:
    case kMaxPoolBackward:
      return onednn::PrepareMaxPool(spec);
    case kAveragePoolForward:
    case kAveragePoolBackward:
    case kGlobalPoolForward:
    case kGlobalPoolBackward:
      return onednn::PrepareAveragePool(spec);
    case kAdd:
    case kScale:
    case kFill:
      return onednn::PrepareArithmetic(spec);
    case kConcat:
    case kSlice:
      return onednn::PrepareConcat(spec);
    case kDropoutForward:
    case kDropoutBackward:
      return onednn::PrepareDropout(spec);
    case kEmbeddingForward:
    case kEmbeddingBackward:
    case kAddRowsForward:
    case kAddRowsBackward:
      return onednn::PrepareEmbedding(spec);
    case kAttentionForward:
    case kAttentionBackward:
      return onednn::PrepareAttention(spec);
    case kLstmForward:
    case kLstmBackward:
      return onednn::PrepareLstm(spec);
    case kSoftmaxLossForward:
    case kSoftmaxLossBackward:
    case kCountCorrect:
      return onednn::PrepareSoftmaxLoss(spec);
    case kSgdUpdate:
    case kAdamWUpdate:
      return onednn::PrepareUpdate(spec);
    case kBatchNormStatistics:
    case kBatchNormNormalize:
    case kBatchNormReluForward:
    case kBatchNormReluBackward:
      break;  // Not fused: fuses_batch_norm().
  }
  Refuse(spec, "there is no kernel for it");
}

class OneDnnLibrary final : public KernelLibrary {
 public:
  std::string_view name() const override { return "onednn"; }

  Kernel Prepare(const OpSpec& spec) override {
    for (const auto* list : {&spec.reads, &spec.writes}) {
      for (const Tensor& tensor : *list) {
        if (tensor.type == ElementType::kBfloat16) {
          Refuse(spec, "the host has no bfloat16 kernels; train there in fp32");
        }
      }
    }
    // Shapes tell most specs apart; the rest are compared.
    std::vector<Entry>& entries = kernels_[Describe(spec)];
    for (const Entry& entry : entries) {
      if (entry.spec == spec) return entry.kernel;
    }
    try {
      entries.push_back({spec, PrepareAnew(spec)});
    } catch (const dnnl::error& error) {
      Refuse(spec, std::string("oneDNN says: ") + error.what());
    }
    return entries.back().kernel;
  }

 private:
  struct Entry {
    OpSpec spec;
    Kernel kernel;
  };
  std::unordered_map<std::string, std::vector<Entry>> kernels_;
};

}  // namespace

std::unique_ptr<KernelLibrary> MakeOneDnnLibrary() { return std::make_unique<OneDnnLibrary>(); }

}  // namespace plimsoll::nn

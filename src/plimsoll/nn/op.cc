// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/op.h"

#include <array>

namespace plimsoll::nn {
namespace {

constexpr std::array<std::string_view, kOpKinds> kNames = {
    "conv_forward",
    "conv_backward_weights",
    "conv_backward_data",
    "transposed_conv_forward",
    "transposed_conv_backward_weights",
    "transposed_conv_backward_data",
    "linear_forward",
    "linear_backward_weights",
    "linear_backward_data",
    "batch_norm_forward",
    "batch_norm_inference",
    "batch_norm_backward",
    "batch_norm_statistics",
    "batch_norm_normalize",
    "batch_norm_relu_forward",
    "batch_norm_relu_backward",
    "layer_norm_forward",
    "layer_norm_backward",
    "lrn_forward",
    "lrn_backward",
    "relu_forward",
    "relu_backward",
    "gelu_forward",
    "gelu_backward",
    "tanh_forward",
    "tanh_backward",
    "sigmoid_forward",
    "sigmoid_backward",
    "max_pool_forward",
    "max_pool_backward",
    "average_pool_forward",
    "average_pool_backward",
    "global_pool_forward",
    "global_pool_backward",
    "add",
    "scale",
    "concat",
    "slice",
    "dropout_forward",
    "dropout_backward",
    "embedding_forward",
    "embedding_backward",
    "add_rows_forward",
    "add_rows_backward",
    "attention_forward",
    "attention_backward",
    "lstm_forward",
    "lstm_backward",
    "softmax_loss_forward",
    "softmax_loss_backward",
    "count_correct",
    "sgd_update",
    "adam_w_update",
    "fill",
};

}  // namespace

std::int64_t Count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Bytes Tensor::size_bytes() const {
  switch (type) {
    case ElementType::kBit:
      // Masks are read and written in words.
      return (count() + 63) / 64 * 8;
    case ElementType::kByte:
      return count();
    case ElementType::kBfloat16:
      return count() * 2;
    case ElementType::kFloat:
    case ElementType::kInt:
      break;
  }
  return count() * 4;
}

std::string_view Name(OpKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

trace::OpTraits TraitsOf(OpKind kind) {
  trace::OpTraits traits{.replayable = true};
  if (kind == OpKind::kDropoutForward) traits.random = true;
  // Running mean and running variance.
  if (kind == OpKind::kBatchNormForward) traits.state_reads = (1U << 3) | (1U << 4);
  if (kind == OpKind::kBatchNormStatistics) traits.state_reads = (1U << 1) | (1U << 2);
  return traits;
}

}  // namespace plimsoll::nn

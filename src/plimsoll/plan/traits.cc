// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch's ops allow. Left out, on purpose: whatever synchronises with the host
// (_local_scalar_dense, nonzero), adds or writes with atomics and so in any order (index_add_,
// scatter, embedding_dense_backward, gradients of upsampling), or hides state (_cudnn_rnn).
#include "plimsoll/plan/traits.h"

#include <algorithm>
#include <span>

namespace plimsoll::plan {
namespace {

// In the order of names, as many to a line as there is room for.
// clang-format off
constexpr std::string_view kPure[] = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d",
    "_adaptive_avg_pool3d_backward", "_addmm_activation", "_conv_depthwise2d", "_fused_rms_norm",
    "_log_softmax", "_log_softmax_backward_data", "_masked_softmax", "_prelu_kernel",
    "_prelu_kernel_backward", "_safe_softmax", "_softmax", "_softmax_backward_data",
    "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "_to_copy", "_transform_bias_rescale_qkv",
    "_unsafe_index", "_unsafe_view", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
    "_weight_norm_interface", "abs", "abs_", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "add_", "addbmm", "addcdiv", "addcmul",
    "addmm", "addmv", "addr", "all", "amax", "amin", "any", "arange", "argmax", "argmin",
    "as_strided_copy", "atan", "avg_pool1d", "avg_pool2d", "avg_pool2d_backward", "avg_pool3d",
    "avg_pool3d_backward", "baddbmm", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "cat", "ceil", "celu",
    "celu_", "channel_shuffle", "clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min",
    "clamp_min_", "clone", "col2im", "constant_pad_nd", "conv1d", "conv2d", "conv3d",
    "conv_depthwise3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "copy_", "cos", "cudnn_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_relu",
    "cudnn_convolution_transpose", "cumprod", "cumsum", "div", "div_", "dot", "elu", "elu_",
    "elu_backward", "embedding", "empty", "empty_like", "eq", "erf", "exp", "exp2", "exp_",
    "expand_copy", "expm1", "eye", "fill", "fill_", "flip", "floor", "floor_divide", "fmod", "full",
    "full_like", "gather", "ge", "gelu", "gelu_", "gelu_backward", "glu", "glu_backward",
    "grid_sampler_2d", "grid_sampler_3d", "group_norm", "gt", "hardshrink", "hardsigmoid",
    "hardsigmoid_", "hardsigmoid_backward", "hardswish", "hardswish_", "hardswish_backward",
    "hardtanh", "hardtanh_", "hardtanh_backward", "huber_loss", "im2col", "index", "index_select",
    "isfinite", "isinf", "isnan", "l1_loss", "layer_norm", "le", "leaky_relu", "leaky_relu_",
    "leaky_relu_backward", "lerp", "lift_fresh_copy", "linalg_vector_norm", "linear", "linspace",
    "log", "log10", "log1p", "log2", "log_sigmoid_backward", "log_sigmoid_forward", "log_softmax",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lt", "masked_fill",
    "masked_fill_", "matmul", "max", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "maximum", "mean", "min", "minimum", "mish", "mish_", "mish_backward", "mm", "mse_loss",
    "mse_loss_backward", "mul", "mul_", "mv", "nan_to_num", "native_dropout_backward",
    "native_group_norm", "native_layer_norm", "ne", "neg", "neg_", "new_empty", "new_full",
    "new_ones", "new_zeros", "nll_loss2d_forward", "nll_loss_forward", "norm", "ones", "ones_like",
    "permute_copy", "pixel_shuffle", "pixel_unshuffle", "pow", "pow_", "prelu", "prod",
    "reciprocal", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "relu", "relu_",
    "remainder", "repeat", "replication_pad1d", "replication_pad2d", "replication_pad3d",
    "rms_norm", "roll", "round", "rsqrt", "rsqrt_", "rsub", "scalar_tensor", "select_backward",
    "select_copy", "select_scatter", "selu", "selu_", "sgn", "sigmoid", "sigmoid_",
    "sigmoid_backward", "sign", "silu", "silu_", "silu_backward", "sin", "slice_backward",
    "slice_copy", "slice_scatter", "smooth_l1_loss", "softmax", "softplus", "softplus_backward",
    "softshrink", "split", "split_copy", "split_with_sizes_copy", "sqrt", "sqrt_", "square",
    "stack", "std", "std_mean", "sub", "sub_", "sum", "tan", "tanh", "tanh_", "tanh_backward",
    "threshold", "threshold_", "threshold_backward", "transpose_copy", "tril", "triu", "trunc",
    "upsample_bicubic2d", "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "upsample_trilinear3d", "var", "var_mean", "view",
    "view_copy", "where", "zero_", "zeros", "zeros_like",
};
constexpr std::string_view kRandom[] = {
    "_efficient_attention_forward", "_flash_attention_forward", "_fused_dropout",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "alpha_dropout", "bernoulli", "bernoulli_", "dropout",
    "exponential_", "multinomial", "native_dropout", "normal", "normal_", "normal_functional",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "rrelu_with_noise", "uniform", "uniform_",
};
/// They read input, weight, bias, running mean and running variance.
constexpr std::string_view kBatchNorms[] = {
    "_batch_norm_with_update", "_native_batch_norm_legit", "cudnn_batch_norm", "native_batch_norm",
};
// clang-format on

static_assert(std::ranges::is_sorted(kPure));
static_assert(std::ranges::is_sorted(kRandom));
static_assert(std::ranges::is_sorted(kBatchNorms));

bool IsIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::binary_search(names, name);
}

}  // namespace

OpTraits TraitsOf(std::string_view op_name) {
  // Stages of chains (chain/to_trace.h): what they do besides is no part of a chain.
  if (op_name.starts_with("forward:")) return {.replayable = true};
  if (IsIn(kPure, op_name)) return {.replayable = true};
  if (IsIn(kRandom, op_name)) return {.replayable = true, .random = true};
  if (IsIn(kBatchNorms, op_name)) return {.replayable = true, .state_reads = 0b11000};
  return {};
}

}  // namespace plimsoll::plan

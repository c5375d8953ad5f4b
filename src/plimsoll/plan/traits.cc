// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch's ops allow. Left out, on purpose: whatever synchronises with the host
// (_local_scalar_dense), adds with atomics and so in any order (index_add_,
// embedding_dense_backward), or hides state (_cudnn_rnn).
#include "plimsoll/plan/traits.h"

#include <algorithm>
#include <array>

namespace plimsoll::plan {
namespace {

constexpr OpTraits kPure = {.replayable = true};
constexpr OpTraits kRandom = {.replayable = true, .random = true};
/// Reads input, weight, bias, running mean and running variance.
constexpr OpTraits kBatchNorm = {.replayable = true, .state_reads = 0b11000};

struct NamedTraits {
  std::string_view name;
  OpTraits traits;
};

/// In the order of names.
constexpr auto kTable = std::to_array<NamedTraits>({
    {"_adaptive_avg_pool2d", kPure},
    {"_adaptive_avg_pool2d_backward", kPure},
    {"_log_softmax", kPure},
    {"_log_softmax_backward_data", kPure},
    {"_scaled_dot_product_cudnn_attention", kRandom},
    {"_scaled_dot_product_efficient_attention", kRandom},
    {"_scaled_dot_product_flash_attention", kRandom},
    {"_softmax", kPure},
    {"_softmax_backward_data", kPure},
    {"_to_copy", kPure},
    {"_unsafe_view", kPure},
    {"abs", kPure},
    {"add", kPure},
    {"add_", kPure},
    {"addcdiv", kPure},
    {"addcmul", kPure},
    {"addmm", kPure},
    {"arange", kPure},
    {"avg_pool2d", kPure},
    {"avg_pool2d_backward", kPure},
    {"baddbmm", kPure},
    {"bernoulli", kRandom},
    {"bernoulli_", kRandom},
    {"bmm", kPure},
    {"cat", kPure},
    {"clamp", kPure},
    {"clamp_min", kPure},
    {"clone", kPure},
    {"constant_pad_nd", kPure},
    {"conv2d", kPure},
    {"convolution", kPure},
    {"copy_", kPure},
    {"cudnn_batch_norm", kBatchNorm},
    {"cumsum", kPure},
    {"div", kPure},
    {"div_", kPure},
    {"elu", kPure},
    {"embedding", kPure},
    {"empty", kPure},
    {"empty_like", kPure},
    {"eq", kPure},
    {"erf", kPure},
    {"exp", kPure},
    {"fill_", kPure},
    {"full", kPure},
    {"full_like", kPure},
    {"gelu", kPure},
    {"gelu_backward", kPure},
    {"gt", kPure},
    {"hardsigmoid", kPure},
    {"hardsigmoid_backward", kPure},
    {"hardswish", kPure},
    {"hardswish_", kPure},
    {"hardswish_backward", kPure},
    {"leaky_relu", kPure},
    {"leaky_relu_", kPure},
    {"log", kPure},
    {"masked_fill", kPure},
    {"max_pool2d_with_indices", kPure},
    {"mean", kPure},
    {"mm", kPure},
    {"mul", kPure},
    {"mul_", kPure},
    {"native_batch_norm", kBatchNorm},
    {"native_dropout", kRandom},
    {"native_dropout_backward", kPure},
    {"native_group_norm", kPure},
    {"native_layer_norm", kPure},
    {"ne", kPure},
    {"neg", kPure},
    {"nll_loss2d_forward", kPure},
    {"nll_loss_forward", kPure},
    {"ones", kPure},
    {"ones_like", kPure},
    {"pow", kPure},
    {"rand", kRandom},
    {"rand_like", kRandom},
    {"randn", kRandom},
    {"relu", kPure},
    {"relu_", kPure},
    {"rsqrt", kPure},
    {"rsub", kPure},
    {"select_backward", kPure},
    {"sigmoid", kPure},
    {"sigmoid_backward", kPure},
    {"silu", kPure},
    {"silu_", kPure},
    {"slice_backward", kPure},
    {"split", kPure},
    {"sqrt", kPure},
    {"stack", kPure},
    {"sub", kPure},
    {"sub_", kPure},
    {"sum", kPure},
    {"tanh", kPure},
    {"tanh_backward", kPure},
    {"threshold_backward", kPure},
    {"upsample_bilinear2d", kPure},
    {"upsample_nearest2d", kPure},
    {"view", kPure},
    {"where", kPure},
    {"zeros", kPure},
    {"zeros_like", kPure},
});

constexpr bool Before(const NamedTraits& a, const NamedTraits& b) { return a.name < b.name; }
static_assert(std::is_sorted(kTable.begin(), kTable.end(), Before));

}  // namespace

OpTraits TraitsOf(std::string_view op_name) {
  // Stages of chains (chain/to_trace.h): what they do besides is no part of a chain.
  if (op_name.starts_with("forward:")) return kPure;
  const auto entry =
      std::lower_bound(kTable.begin(), kTable.end(), NamedTraits{op_name, {}}, Before);
  return entry != kTable.end() && entry->name == op_name ? entry->traits : OpTraits{};
}

}  // namespace plimsoll::plan

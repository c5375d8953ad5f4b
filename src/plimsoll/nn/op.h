// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/trace/traits.h"

/// The ops that networks are made of, as data: what a kernel library is asked to prepare, what a
/// cost model prices, and what is executed on a Device.
///
/// Content is 32-bit floats, but for labels and ids (32-bit integers) and masks (bits). In mixed
/// precision, activations and their gradients are bfloat16; parameters, their gradients, moments
/// and statistics are floats as ever. Images are laid out as N, H, W, C; sequences as N, T, C;
/// features as N, C. Weights of convolutions are O, H, W, I; of transposed convolutions likewise, O
/// being what comes out; of linear layers O, I.
namespace plimsoll::nn {

using Shape = std::vector<std::int64_t>;
std::int64_t Count(const Shape& shape);

enum class ElementType : std::uint8_t { kFloat, kInt, kBit, kByte, kBfloat16 };

/// Shape and type of an operand.
struct Tensor {
  Shape shape;
  ElementType type = ElementType::kFloat;

  std::int64_t count() const { return Count(shape); }
  Bytes size_bytes() const;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// Reads -> writes, in this order. In parentheses: there if the attribute says so, or, for what
/// only a backward pass needs, left out in evaluation. `=` marks a write that may share its block
/// with the read of that name: the program then gives one block in both lists. A kernel that asks
/// for a workspace gets it as one more write, the last.
enum class OpKind : std::uint8_t {
  kConvForward,                    ///< x, w, (bias) -> y
  kConvBackwardWeights,            ///< x, dy -> dw, (dbias)
  kConvBackwardData,               ///< dy, w -> dx
  kTransposedConvForward,          ///< x, w, (bias) -> y
  kTransposedConvBackwardWeights,  ///< x, dy -> dw, (dbias)
  kTransposedConvBackwardData,     ///< dy, w -> dx
  kLinearForward,                  ///< x, w, (bias) -> y; leading dimensions of x are rows
  kLinearBackwardWeights,          ///< x, dy -> dw, (dbias)
  kLinearBackwardData,             ///< dy, w -> dx
  kBatchNormForward,               ///< x, gamma, beta, running_mean, running_var
                                   ///< -> y, mean, inv_std, running_mean=, running_var=
  kBatchNormInference,             ///< x, gamma, beta, running_mean, running_var -> y=x
  kBatchNormBackward,              ///< x, dy, gamma, mean, inv_std -> dx=dy, dgamma, dbeta
  kBatchNormStatistics,            ///< x, running_mean, running_var
                                   ///< -> mean, inv_std, running_mean=, running_var=
  kBatchNormNormalize,             ///< x, gamma, beta, mean, inv_std -> y
  kBatchNormReluForward,           ///< x, gamma, beta, mean, inv_std, (residual)
                                   ///< -> y=residual, mask: bits; y = max(0, norm(x) + residual)
  kBatchNormReluBackward,          ///< x, dy, mask, gamma, mean, inv_std
                                   ///< -> dx, dgamma, dbeta, (dresidual=dy); without it, dx=dy
  kLayerNormForward,               ///< x, gamma, beta -> y, mean, inv_std; over the last dimension
  kLayerNormBackward,              ///< x, dy, gamma, mean, inv_std -> dx=dy, dgamma, dbeta
  kLrnForward,                     ///< x -> y; across channels
  kLrnBackward,                    ///< x, dy -> dx
  kReluForward,                    ///< x -> y=x, (mask: bits)
  kReluBackward,                   ///< dy, mask -> dx=dy
  kGeluForward,                    ///< x -> y; the tanh approximation of GPT-2
  kGeluBackward,                   ///< x, dy -> dx=dy
  kTanhForward,                    ///< x -> y=x
  kTanhBackward,                   ///< y, dy -> dx=dy
  kSigmoidForward,                 ///< x -> y=x
  kSigmoidBackward,                ///< y, dy -> dx=dy
  kMaxPoolForward,       ///< x -> y, (index: bytes, position within the window, h * width + w)
  kMaxPoolBackward,      ///< dy, index -> dx
  kAveragePoolForward,   ///< x -> y; padding does not count
  kAveragePoolBackward,  ///< dy -> dx
  kGlobalPoolForward,    ///< x [n,h,w,c] -> y [n,c]; the mean
  kGlobalPoolBackward,   ///< dy -> dx
  kAdd,                  ///< a, b -> y=a; y = a + scale * b
  kScale,                ///< x -> y=x; y = scale * x
  kConcat,               ///< x0, x1, ... -> y; along the last dimension
  kSlice,                ///< x -> y; `offset` onwards of the last dimension: the backward of concat
  kDropoutForward,       ///< x -> y=x, mask: bits; kept with 1 - rate, scaled by 1 / (1 - rate)
  kDropoutBackward,      ///< dy, mask -> dx=dy
  kEmbeddingForward,     ///< ids: ints [n,t], table [v,d] -> y [n,t,d]
  kEmbeddingBackward,    ///< ids, dy -> dtable, all of it
  kAddRowsForward,       ///< x [n,t,d], rows [T,d] -> y=x; adds rows[0..t) to each of n
  kAddRowsBackward,      ///< dy [n,t,d] -> drows [T,d], zero beyond t
  kAttentionForward,     ///< qkv [n,t,3d] -> y [n,t,d], (log_sum [n,heads,t])
  kAttentionBackward,    ///< qkv, y, dy, log_sum -> dqkv
  kLstmForward,          ///< x [n,t,i], w_input [4h,i], w_hidden [4h,h], bias [4h]
                 ///< -> y [n,t,h], (gates [n,t,4h], cells [n,t,h]); gates as PyTorch's: i f g o,
                 ///< from zero states
  kLstmBackward,         ///< x, w_input, w_hidden, y, gates, cells, dy
                         ///< -> dx, dw_input, dw_hidden, dbias
  kSoftmaxLossForward,   ///< logits [..., classes], labels: ints -> probabilities=logits, loss [1]:
                         ///< the mean over rows whose label is not negative
  kSoftmaxLossBackward,  ///< probabilities, labels -> dlogits=probabilities
  kCountCorrect,  ///< logits, labels -> correct [1]: how many rows are largest at their label
  kSgdUpdate,     ///< w, g, m -> w=, m=; m = momentum m + g + decay w; w -= rate m. Libraries that
                  ///< group updates take any number of such triples, one after the other
  kAdamWUpdate,   ///< w, g, m, v -> w=, m=, v=; likewise
  kFill,          ///< -> y; every element is `scale`
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::kFill) + 1;
std::string_view Name(OpKind kind);  ///< "conv_forward" and so on: the name in traces.
trace::OpTraits TraitsOf(OpKind kind);

/// Attributes of all kinds; each kind reads its own.
struct Attributes {
  // Convolutions and pooling. Height, width.
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};  ///< On both sides.
  std::int64_t groups = 1;
  bool bias = false;
  // Norms.
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< Of running statistics, as in PyTorch; of kSgdUpdate.
  // LRN: y = x / (k + alpha / size * sum x^2)^beta.
  std::int64_t lrn_size = 5;
  float lrn_alpha = 1e-4F;
  float lrn_beta = 0.75F;
  float lrn_k = 1;
  // Dropout.
  float rate = 0.5F;
  std::uint64_t stream = 0;  ///< Tells the random numbers of one op from another's.
  // Attention.
  std::int64_t heads = 1;
  bool causal = true;
  // kAdd, kScale, kFill; kSlice.
  float scale = 1;
  std::int64_t offset = 0;
  // Updates.
  float weight_decay = 0;
  float beta1 = 0.9F;
  float beta2 = 0.999F;

  friend bool operator==(const Attributes&, const Attributes&) = default;
};

/// An op with the shapes that it runs on.
struct OpSpec {
  OpKind kind = OpKind::kFill;
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;  ///< Without the workspace.
  Attributes attributes{};

  friend bool operator==(const OpSpec&, const OpSpec&) = default;
};

/// What changes from step to step. A function holds it by value, so a replay sees its own step's.
struct StepScalars {
  std::uint64_t seed = 0;  ///< Of the step; with Attributes::stream it seeds an op.
  float learning_rate = 0;
  std::int64_t step = 1;  ///< From 1; for AdamW's bias correction.
};

/// An op that is ready to run on a device of its library's kind.
struct Kernel {
  Bytes workspace_bytes = 0;
  /// Empty in a library that runs nothing. Stays valid as long as anybody holds a copy.
  std::function<void(const exec::Launch&, const StepScalars&)> run;
  Nanoseconds expected_ns = 0;  ///< 0 if unknown.
  bool is_measured = false;     ///< As in exec::OpInfo.
  bool steady = false;          ///< As in exec::OpInfo.
};

/// Prepares ops: one for each kind of backend (onednn/, and cuda/ beside this folder).
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  virtual std::string_view name() const = 0;
  /// Whether a batch norm in training is two ops, the second of which takes a ReLU with it:
  /// kBatchNormStatistics, and kBatchNormNormalize or kBatchNormReluForward, with
  /// kBatchNormReluBackward. What runs again is the second alone. Else it is kBatchNormForward.
  virtual bool fuses_batch_norm() const { return false; }
  /// How many parameters an update may take at once.
  virtual int update_group() const { return 1; }
  /// Where there is a choice, kernels that are prepared from here on take no more workspace than
  /// this, even if they are slower. Returns whether some that were prepared before take more:
  /// these are forgotten.
  virtual bool PreferWorkspaces(Bytes /*most_bytes*/) { return false; }
  /// Gives back memory of the device that preparing has taken.
  virtual void ReleaseScratch() {}
  /// Equal specs share what can be shared. Throws Error if a shape is impossible,
  /// naming the op and the shapes.
  virtual Kernel Prepare(const OpSpec& spec) = 0;
};

}  // namespace plimsoll::nn

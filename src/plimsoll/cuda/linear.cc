// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "plimsoll/cuda/bias.h"
#include "plimsoll/cuda/gemm.h"
#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/weights.h"
#include "plimsoll/nn/op_check.h"

/// Linear layers: one product of matrices each.
///
///     y [rows, O] = x [rows, I] * w [O, I]^T + bias
///
/// With activations of bfloat16, weights and biases are rounded into the workspace first; their
/// gradients are floats at once.
namespace plimsoll::cuda {
namespace {

using nn::ElementType;
using nn::OpKind;
using nn::OpSpec;
using nn::Tensor;

/// The three numbers of a linear layer, and its type.
struct Sizes {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bfloat16 = false;

  std::int64_t weights() const { return inputs * outputs; }
  Bytes rounded_bytes(std::int64_t count) const {
    return bfloat16 ? AlignUp(2 * count, kGemmAlignment) : 0;
  }
};

Sizes SizesOf(const OpSpec& spec, const Tensor& x, const Tensor& weights, const Tensor& y) {
  RequireRank(spec, weights, 2);
  const Sizes sizes{Rows(spec, x), weights.shape[1], weights.shape[0],
                    x.type == ElementType::kBfloat16};
  if (Columns(spec, x) != sizes.inputs || Columns(spec, y) != sizes.outputs ||
      Rows(spec, y) != sizes.rows) {
    Refuse(spec, "weights [O,I] should lead from rows of I to rows of O");
  }
  if (!sizes.bfloat16) RequireType(spec, x, ElementType::kFloat);
  RequireType(spec, y, x.type);
  RequireType(spec, weights, ElementType::kFloat);
  return sizes;
}

/// What a kernel holds; the plan goes before the handles.
struct Product {
  std::shared_ptr<Handles> handles;
  std::shared_ptr<const GemmPlan> plan;

  Product(const GemmShape& shape, Handles* of)
      : handles(of->shared_from_this()), plan(PlanGemm(shape, *of)) {}

  /// With room to align it.
  Bytes workspace_bytes() const {
    return plan->workspace_bytes() > 0 ? plan->workspace_bytes() + kGemmAlignment : 0;
  }
  void Run(const GemmOperands& operands, std::byte* workspace, void* stream) const {
    plan->Run(*handles, operands, AlignForGemm(workspace), stream);
  }
};

std::byte* Workspace(const exec::Launch& launch, std::size_t writes) {
  return launch.writes.size() > writes ? launch.writes[writes] : nullptr;
}

/// Returns parameters as the product takes them.
const void* Rounded(const Sizes& sizes, const std::byte* floats, std::int64_t count,
                    std::byte* workspace, void* stream) {
  if (!sizes.bfloat16) return floats;
  ToBfloat16(reinterpret_cast<const float*>(floats), workspace, count, stream);
  return workspace;
}

nn::Kernel PrepareForward(const OpSpec& spec, Handles* handles) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, bias ? 3 : 2, 1);
  const Sizes sizes = SizesOf(spec, spec.reads[0], spec.reads[1], spec.writes[0]);
  if (bias) {
    RequireCount(spec, spec.reads[2], sizes.outputs);
    RequireType(spec, spec.reads[2], ElementType::kFloat);
  }
  GemmShape shape{.rows = sizes.rows,
                  .columns = sizes.outputs,
                  .inner = sizes.inputs,
                  .left_stride = sizes.inputs,
                  .right_stride = sizes.inputs,
                  .result_stride = sizes.outputs,
                  .right_transposed = true,
                  .bfloat16 = sizes.bfloat16,
                  .result_bfloat16 = sizes.bfloat16,
                  .bias = bias};
  // Where cuBLAS adds no bias to such a product, it is added afterwards.
  const bool bias_apart = bias && PlanGemm(shape, *handles)->plain;
  if (bias_apart) shape.bias = false;
  const Product product(shape, handles);
  const Bytes weight_bytes = sizes.rounded_bytes(sizes.weights());
  const Bytes bias_bytes = shape.bias ? sizes.rounded_bytes(sizes.outputs) : 0;
  return {.workspace_bytes = weight_bytes + bias_bytes + product.workspace_bytes(),
          .run =
              [=](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, 1);
                void* stream = launch.native_stream;
                GemmOperands operands{.left = launch.reads[0], .result = launch.writes[0]};
                operands.right =
                    Rounded(sizes, launch.reads[1], sizes.weights(), workspace, stream);
                if (shape.bias) {
                  operands.bias = Rounded(sizes, launch.reads[2], sizes.outputs,
                                          workspace + weight_bytes, stream);
                }
                product.Run(operands, workspace + weight_bytes + bias_bytes, stream);
                if (bias_apart) {
                  AddBias(launch.writes[0], sizes.bfloat16,
                          reinterpret_cast<const float*>(launch.reads[2]), sizes.rows,
                          sizes.outputs, stream);
                }
              },
          .expected_ns = product.plan->expected_ns};
}

nn::Kernel PrepareBackwardData(const OpSpec& spec, Handles* handles) {
  RequireOperands(spec, 2, 1);
  const Sizes sizes = SizesOf(spec, spec.writes[0], spec.reads[1], spec.reads[0]);
  const Product product({.rows = sizes.rows,
                         .columns = sizes.inputs,
                         .inner = sizes.outputs,
                         .left_stride = sizes.outputs,
                         .right_stride = sizes.inputs,
                         .result_stride = sizes.inputs,
                         .bfloat16 = sizes.bfloat16,
                         .result_bfloat16 = sizes.bfloat16},
                        handles);
  const Bytes weight_bytes = sizes.rounded_bytes(sizes.weights());
  return {.workspace_bytes = weight_bytes + product.workspace_bytes(),
          .run =
              [=](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, 1);
                void* stream = launch.native_stream;
                const void* weights =
                    Rounded(sizes, launch.reads[1], sizes.weights(), workspace, stream);
                product.Run({.left = launch.reads[0], .right = weights, .result = launch.writes[0]},
                            workspace + weight_bytes, stream);
              },
          .expected_ns = product.plan->expected_ns};
}

nn::Kernel PrepareBackwardWeights(const OpSpec& spec, Handles* handles) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, 2, bias ? 2 : 1);
  const Sizes sizes = SizesOf(spec, spec.reads[0], spec.writes[0], spec.reads[1]);
  const Product product({.rows = sizes.outputs,
                         .columns = sizes.inputs,
                         .inner = sizes.rows,
                         .left_stride = sizes.outputs,
                         .right_stride = sizes.inputs,
                         .result_stride = sizes.inputs,
                         .left_transposed = true,
                         .bfloat16 = sizes.bfloat16},
                        handles);
  ColumnSums sums;
  if (bias) {
    RequireCount(spec, spec.writes[1], sizes.outputs);
    RequireType(spec, spec.writes[1], ElementType::kFloat);
    sums = ColumnSums(sizes.rows, sizes.outputs, sizes.bfloat16);
  }
  // One after the other, they use the same workspace.
  return {.workspace_bytes = std::max(product.workspace_bytes(), bias ? sums.workspace_bytes() : 0),
          .run =
              [=, writes = spec.writes.size()](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, writes);
                void* stream = launch.native_stream;
                product.Run(
                    {.left = launch.reads[1], .right = launch.reads[0], .result = launch.writes[0]},
                    workspace, stream);
                if (bias) {
                  sums.Run(launch.reads[1], reinterpret_cast<float*>(launch.writes[1]), workspace,
                           stream);
                }
              },
          .expected_ns = product.plan->expected_ns};
}

}  // namespace

nn::Kernel PrepareLinear(const OpSpec& spec, Handles* handles) {
  if (spec.kind == OpKind::kLinearForward) return PrepareForward(spec, handles);
  if (spec.kind == OpKind::kLinearBackwardData) return PrepareBackwardData(spec, handles);
  return PrepareBackwardWeights(spec, handles);
}

}  // namespace plimsoll::cuda

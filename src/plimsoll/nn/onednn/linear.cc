// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include "plimsoll/nn/onednn/columns.h"
#include "plimsoll/nn/onednn/compat.h"
#include "plimsoll/nn/onednn/gemm.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/staged.h"
#include "plimsoll/nn/op_check.h"

/// Linear layers: one product of matrices each.
///
///     y [rows, O] = x [rows, I] * w [O, I]^T + bias
namespace plimsoll::nn::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// A matrix that is stored row by row, or, transposed, column by column.
Desc Matrix(std::int64_t rows, std::int64_t columns, bool transposed = false) {
  return {Dims{rows, columns}, dnnl::memory::data_type::f32,
          transposed ? Dims{1, rows} : Dims{columns, 1}};
}

/// The three numbers of a linear layer.
struct Sizes {
  std::int64_t rows = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

Sizes SizesOf(const OpSpec& spec, const Tensor& x, const Tensor& weights, const Tensor& y) {
  RequireRank(spec, weights, 2);
  const Sizes sizes{Rows(spec, x), weights.shape[1], weights.shape[0]};
  if (Columns(spec, x) != sizes.inputs || Columns(spec, y) != sizes.outputs ||
      Rows(spec, y) != sizes.rows) {
    Refuse(spec, "weights [O,I] should lead from rows of I to rows of O");
  }
  return sizes;
}

/// left * right, reads and writes numbered as in the launch.
StagedPrimitive Product(std::size_t left_index, const Desc& left, std::size_t right_index,
                        const Desc& right, const Desc& result, const Desc* bias,
                        std::size_t workspace_index) {
  const auto description =
      bias != nullptr ? DescribeForward<dnnl::matmul>(Engine(), UserScratchpad(), TakeFirst{}, left,
                                                      right, *bias, result)
                      : DescribeForward<dnnl::matmul>(Engine(), UserScratchpad(), TakeFirst{}, left,
                                                      right, result);
  std::vector<StagedArgument> arguments = {
      {DNNL_ARG_SRC, false, left_index, left, description.src_desc()},
      {DNNL_ARG_WEIGHTS, false, right_index, right, description.weights_desc()},
      {DNNL_ARG_DST, true, 0, result, description.dst_desc()}};
  if (bias != nullptr) arguments.push_back({DNNL_ARG_BIAS, false, 2, *bias, *bias});
  return {dnnl::matmul(description), description.scratchpad_desc(), arguments, workspace_index};
}

Kernel AsKernel(StagedPrimitive primitive) {
  auto shared = std::make_shared<StagedPrimitive>(std::move(primitive));
  return {.workspace_bytes = shared->workspace_bytes(),
          .run = [shared](const exec::Launch& launch, const StepScalars&) { shared->Run(launch); }};
}

/// From so many rows of the result on, Gemm() is faster where the right matrix is stored row by
/// row: by a little, or twice where its rows are a power of two or nearly so.
constexpr std::int64_t kManyRows = 256;

Kernel PrepareForward(const OpSpec& spec) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, bias ? 3 : 2, 1);
  const Sizes sizes = SizesOf(spec, spec.reads[0], spec.reads[1], spec.writes[0]);
  if (bias) RequireCount(spec, spec.reads[2], sizes.outputs);
  const Desc bias_row = Matrix(1, sizes.outputs);
  return AsKernel(Product(0, Matrix(sizes.rows, sizes.inputs), 1,
                          Matrix(sizes.inputs, sizes.outputs, true),
                          Matrix(sizes.rows, sizes.outputs), bias ? &bias_row : nullptr, 1));
}

Kernel PrepareBackwardData(const OpSpec& spec) {
  RequireOperands(spec, 2, 1);
  const Sizes sizes = SizesOf(spec, spec.writes[0], spec.reads[1], spec.reads[0]);
  if (sizes.rows >= kManyRows) {
    return {.run = [=](const exec::Launch& launch, const StepScalars&) {
      Gemm(sizes.rows, sizes.inputs, sizes.outputs, 1, {Read(launch, 0), sizes.outputs},
           {Read(launch, 1), sizes.inputs}, false, Write(launch, 0), sizes.inputs);
    }};
  }
  return AsKernel(Product(0, Matrix(sizes.rows, sizes.outputs), 1,
                          Matrix(sizes.outputs, sizes.inputs), Matrix(sizes.rows, sizes.inputs),
                          nullptr, 1));
}

Kernel PrepareBackwardWeights(const OpSpec& spec) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, 2, bias ? 2 : 1);
  const Sizes sizes = SizesOf(spec, spec.reads[0], spec.writes[0], spec.reads[1]);
  if (bias) RequireCount(spec, spec.writes[1], sizes.outputs);
  Kernel kernel;
  if (sizes.outputs >= kManyRows && sizes.rows >= kManyRows) {
    kernel.run = [=](const exec::Launch& launch, const StepScalars&) {
      Gemm(sizes.outputs, sizes.inputs, sizes.rows, 1, {Read(launch, 1), sizes.outputs, true},
           {Read(launch, 0), sizes.inputs}, false, Write(launch, 0), sizes.inputs);
    };
  } else {
    kernel = AsKernel(Product(1, Matrix(sizes.outputs, sizes.rows, true), 0,
                              Matrix(sizes.rows, sizes.inputs), Matrix(sizes.outputs, sizes.inputs),
                              nullptr, spec.writes.size()));
  }
  if (!bias) return kernel;
  // One after the other, they use the same workspace.
  const ColumnSums sums(CutColumns(sizes.rows, sizes.outputs));
  return {.workspace_bytes = std::max(kernel.workspace_bytes, sums.workspace_bytes()),
          .run = [=, product = kernel.run](const exec::Launch& launch, const StepScalars& scalars) {
            product(launch, scalars);
            std::byte* workspace = launch.writes[2];
            sums.Sums(Read(launch, 1), workspace);
            for (std::int64_t i = 0; i < sums.matrix().columns; ++i) {
              Write(launch, 1)[i] = static_cast<float>(sums.first(workspace, i));
            }
          }};
}

}  // namespace

Kernel PrepareLinear(const OpSpec& spec) {
  if (spec.kind == OpKind::kLinearForward) return PrepareForward(spec);
  if (spec.kind == OpKind::kLinearBackwardData) return PrepareBackwardData(spec);
  return PrepareBackwardWeights(spec);
}

}  // namespace plimsoll::nn::onednn

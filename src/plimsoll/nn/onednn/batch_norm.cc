// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>

#include "plimsoll/nn/onednn/columns.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

/// Batch norm: the mean and variance of every channel over all rows (N, H and W).
namespace plimsoll::nn::onednn {
namespace {

/// Where things are in the workspace: the sums, then the rows of coefficients, then wide ones.
struct Layout {
  ColumnSums sums;
  std::int64_t columns;

  Bytes sums_bytes() const { return (sums.workspace_bytes() + 63) / 64 * 64; }
  Bytes workspace_bytes() const {
    return sums_bytes() + (4 * columns + 4 * sums.matrix().width) * 4;
  }
  float* Row(std::byte* workspace, int row) const {
    return reinterpret_cast<float*>(workspace + sums_bytes()) + row * columns;
  }
  float* Wide(std::byte* workspace) const { return Row(workspace, 4); }
};

Layout LayoutOf(const OpSpec& spec) {
  const std::int64_t columns = Columns(spec, spec.reads[0]);
  return {ColumnSums(CutColumns(Rows(spec, spec.reads[0]), columns)), columns};
}

void RunForward(const Layout& layout, const Attributes& attributes, const exec::Launch& launch) {
  std::byte* workspace = launch.writes[5];
  const float* x = Read(launch, 0);
  const float* gamma = Read(launch, 1);
  const float* beta = Read(launch, 2);
  const auto rows = static_cast<double>(layout.sums.matrix().rows);
  // The first row is as good as any to subtract: sums of squares are then about the variance.
  float* center = layout.Row(workspace, 2);
  std::copy_n(x, layout.columns, center);
  layout.sums.Moments(x, center, workspace);
  float* a = layout.Row(workspace, 0);
  float* b = layout.Row(workspace, 1);
  const auto momentum = static_cast<double>(attributes.momentum);
  for (std::int64_t i = 0; i < layout.columns; ++i) {
    const double shift = layout.sums.first(workspace, i) / rows;
    const double mean = static_cast<double>(center[i]) + shift;
    const double variance = std::max(0.0, layout.sums.second(workspace, i) / rows - shift * shift);
    const double inv_std = 1 / std::sqrt(variance + static_cast<double>(attributes.epsilon));
    const double unbiased = rows > 1 ? variance * rows / (rows - 1) : variance;
    a[i] = static_cast<float>(static_cast<double>(gamma[i]) * inv_std);
    b[i] = static_cast<float>(static_cast<double>(beta[i]) -
                              mean * static_cast<double>(gamma[i]) * inv_std);
    Write(launch, 1)[i] = static_cast<float>(mean);
    Write(launch, 2)[i] = static_cast<float>(inv_std);
    Write(launch, 3)[i] = static_cast<float>(
        (1 - momentum) * static_cast<double>(Read(launch, 3)[i]) + momentum * mean);
    Write(launch, 4)[i] = static_cast<float>(
        (1 - momentum) * static_cast<double>(Read(launch, 4)[i]) + momentum * unbiased);
  }
  ApplyColumns(layout.sums.matrix(), x, a, b, Write(launch, 0), layout.Wide(workspace));
}

void RunInference(const Layout& layout, const Attributes& attributes, const exec::Launch& launch) {
  std::byte* workspace = launch.writes[1];
  float* a = layout.Row(workspace, 0);
  float* b = layout.Row(workspace, 1);
  for (std::int64_t i = 0; i < layout.columns; ++i) {
    const float inv_std = 1 / std::sqrt(Read(launch, 4)[i] + attributes.epsilon);
    a[i] = Read(launch, 1)[i] * inv_std;
    b[i] = Read(launch, 2)[i] - Read(launch, 3)[i] * a[i];
  }
  ApplyColumns(layout.sums.matrix(), Read(launch, 0), a, b, Write(launch, 0),
               layout.Wide(workspace));
}

void RunBackward(const Layout& layout, const exec::Launch& launch) {
  std::byte* workspace = launch.writes[3];
  const float* x = Read(launch, 0);
  const float* dy = Read(launch, 1);
  const float* gamma = Read(launch, 2);
  const float* mean = Read(launch, 3);
  const float* inv_std = Read(launch, 4);
  const auto rows = static_cast<double>(layout.sums.matrix().rows);
  layout.sums.Products(dy, x, mean, workspace);
  float* a = layout.Row(workspace, 0);
  float* b = layout.Row(workspace, 1);
  float* c = layout.Row(workspace, 2);
  // dx = gamma inv_std (dy - dbeta / rows - (x - mean) inv_std dgamma / rows)
  for (std::int64_t i = 0; i < layout.columns; ++i) {
    const auto scale = static_cast<double>(inv_std[i]);
    const double dbeta = layout.sums.first(workspace, i);
    const double dgamma = layout.sums.second(workspace, i) * scale;
    const double slope = static_cast<double>(gamma[i]) * scale;
    a[i] = static_cast<float>(slope);
    b[i] = static_cast<float>(-slope * scale * dgamma / rows);
    c[i] = static_cast<float>(-slope * dbeta / rows);
    Write(launch, 1)[i] = static_cast<float>(dgamma);
    Write(launch, 2)[i] = static_cast<float>(dbeta);
  }
  ApplyColumns(layout.sums.matrix(), dy, x, mean, a, b, c, Write(launch, 0),
               layout.Wide(workspace));
}

}  // namespace

Kernel PrepareBatchNorm(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kBatchNormForward;
  const bool inference = spec.kind == OpKind::kBatchNormInference;
  RequireOperands(spec, 5, forward ? 5 : (inference ? 1 : 3));
  const Layout layout = LayoutOf(spec);
  RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  if (!forward && !inference) RequireShape(spec, spec.reads[1], spec.reads[0].shape);
  for (std::size_t i = forward || inference ? 1 : 2; i < 5; ++i) {
    RequireCount(spec, spec.reads[i], layout.columns);
  }
  for (std::size_t i = 1; i < spec.writes.size(); ++i) {
    RequireCount(spec, spec.writes[i], layout.columns);
  }
  return {.workspace_bytes = layout.workspace_bytes(),
          .run = [=, attributes = spec.attributes](const exec::Launch& launch, const StepScalars&) {
            if (forward) {
              RunForward(layout, attributes, launch);
            } else if (inference) {
              RunInference(layout, attributes, launch);
            } else {
              RunBackward(layout, launch);
            }
          }};
}

}  // namespace plimsoll::nn::onednn

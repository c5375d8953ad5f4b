// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "plimsoll/cuda/bias.h"
#include "plimsoll/cuda/convolution_plan.h"
#include "plimsoll/cuda/handles.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/weights.h"
#include "plimsoll/nn/op_check.h"

/// Convolutions and transposed ones. A transposed convolution is the backward pass of a convolution
/// that leads from its output to its input:
///
///     op               forward          backward data    backward weights
///     convolution      kForward         kBackwardData    kBackwardWeights
///     transposed       kBackwardData    kForward         kBackwardWeights, images exchanged
///
/// with weights whose channels are exchanged. Weights that cuDNN cannot take as they are go through
/// the workspace.
namespace plimsoll::cuda {
namespace {

using nn::ElementType;
using nn::OpKind;
using nn::OpSpec;
using nn::Refuse;
using nn::Shape;
using nn::Tensor;

/// The three tensors of a convolution or transposed one, whichever of its ops is asked for.
struct Geometry {
  const Tensor* x = nullptr;
  const Tensor* weights = nullptr;
  const Tensor* y = nullptr;
  bool transposed = false;

  const Shape& large() const { return transposed ? y->shape : x->shape; }
  const Shape& small() const { return transposed ? x->shape : y->shape; }
};

void CheckGeometry(const OpSpec& spec, const Geometry& geometry) {
  const nn::Attributes& a = spec.attributes;
  for (const Tensor* tensor : {geometry.x, geometry.weights, geometry.y}) {
    RequireRank(spec, *tensor, 4);
  }
  if (a.groups < 1) Refuse(spec, "there must be a group");
  for (int axis = 0; axis < 2; ++axis) {
    if (a.kernel[axis] < 1 || a.stride[axis] < 1 || a.padding[axis] < 0) {
      Refuse(spec, "kernel and stride must be positive, padding not negative");
    }
    const std::int64_t room = geometry.large()[axis + 1] + 2 * a.padding[axis] - a.kernel[axis];
    if (room < 0 || room / a.stride[axis] + 1 != geometry.small()[axis + 1]) {
      Refuse(spec, fmt::format("kernel {}x{}, stride {}x{} and padding {}x{} do not lead from one"
                               " image to the other",
                               a.kernel[0], a.kernel[1], a.stride[0], a.stride[1], a.padding[0],
                               a.padding[1]));
    }
  }
  const Shape& x = geometry.x->shape;
  const Shape& y = geometry.y->shape;
  if (x[3] % a.groups != 0 || y[3] % a.groups != 0) {
    Refuse(spec, fmt::format("channels are no multiple of {} groups", a.groups));
  }
  const Shape weights = {y[3], a.kernel[0], a.kernel[1], x[3] / a.groups};
  if (x[0] != y[0] || geometry.weights->shape != weights) {
    Refuse(spec, fmt::format("weights should be [{},{},{},{}]", weights[0], weights[1], weights[2],
                             weights[3]));
  }
  if (geometry.x->type != ElementType::kBfloat16)
    RequireType(spec, *geometry.x, ElementType::kFloat);
  RequireType(spec, *geometry.y, geometry.x->type);
  RequireType(spec, *geometry.weights, ElementType::kFloat);
}

ConvolutionShape ShapeOf(const OpSpec& spec, const Geometry& geometry, ConvolutionPass pass) {
  const nn::Attributes& a = spec.attributes;
  const Shape& x = geometry.large();
  const Shape& y = geometry.small();
  return {.pass = pass,
          .bfloat16 = geometry.x->type == ElementType::kBfloat16,
          .images = x[0],
          .x = {x[1], x[2], x[3]},
          .y = {y[1], y[2], y[3]},
          .kernel = {a.kernel[0], a.kernel[1]},
          .stride = {a.stride[0], a.stride[1]},
          .padding = {a.padding[0], a.padding[1]},
          .groups = a.groups};
}

/// Everything that a kernel needs when it runs.
struct Convolution {
  std::shared_ptr<Handles> handles;
  std::shared_ptr<const ConvolutionPlan> plan;
  bool bfloat16 = false;
  bool transposed = false;
  std::int64_t weight_count = 0;
  ExchangedChannels channels;  ///< From the op's weights to the plan's.

  /// Of weights that are not where the op has them: read as cast or exchanged, written before
  /// exchanged.
  Bytes staged_bytes(bool written) const {
    if (!transposed && (written || !bfloat16)) return 0;
    return AlignUp(weight_count * (written || !bfloat16 ? 4 : 2), kDefaultAlignment);
  }
  /// Returns where the plan finds the weights.
  void* StageWeights(std::byte* weights, std::byte* workspace, void* stream) const {
    const auto* floats = reinterpret_cast<const float*>(weights);
    if (transposed) {
      Exchange(channels, floats, workspace, bfloat16, stream);
    } else if (bfloat16) {
      ToBfloat16(floats, workspace, weight_count, stream);
    } else {
      return weights;
    }
    return workspace;
  }
};

Convolution Prepare(const OpSpec& spec, const Geometry& geometry, ConvolutionPass pass,
                    Handles* handles) {
  CheckGeometry(spec, geometry);
  const ConvolutionShape shape = ShapeOf(spec, geometry, pass);
  const Shape& w = geometry.weights->shape;
  const std::int64_t groups = spec.attributes.groups;
  return {
      .handles = handles->shared_from_this(),
      .plan = PlanConvolution(shape, *handles),
      .bfloat16 = shape.bfloat16,
      .transposed = geometry.transposed,
      .weight_count = shape.weight_count(),
      .channels = {.groups = groups, .outer = w[0] / groups, .window = w[1] * w[2], .inner = w[3]}};
}

/// The workspace, if the kernel asked for one: the last of the writes.
std::byte* Workspace(const exec::Launch& launch, std::size_t writes) {
  return launch.writes.size() > writes ? launch.writes[writes] : nullptr;
}

nn::Kernel PrepareForward(const OpSpec& spec, bool transposed, Handles* handles) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, bias ? 3 : 2, 1);
  const Geometry geometry{&spec.reads[0], &spec.reads[1], &spec.writes[0], transposed};
  const Convolution op =
      Prepare(spec, geometry,
              transposed ? ConvolutionPass::kBackwardData : ConvolutionPass::kForward, handles);
  const std::int64_t outputs = spec.writes[0].shape[3];
  const std::int64_t rows = spec.writes[0].count() / outputs;
  if (bias) {
    RequireCount(spec, spec.reads[2], outputs);
    RequireType(spec, spec.reads[2], ElementType::kFloat);
  }
  const Bytes staged = op.staged_bytes(false);
  return {.workspace_bytes = staged + op.plan->workspace_bytes(),
          .run =
              [=](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, 1);
                void* stream = launch.native_stream;
                void* weights = op.StageWeights(launch.reads[1], workspace, stream);
                std::byte* x = launch.reads[0];
                std::byte* y = launch.writes[0];
                op.plan->Run(*op.handles,
                             {.x = transposed ? y : x, .weights = weights, .y = transposed ? x : y},
                             workspace + staged, stream);
                if (bias) {
                  AddBias(y, op.bfloat16, reinterpret_cast<const float*>(launch.reads[2]), rows,
                          outputs, stream);
                }
              },
          .expected_ns = op.plan->expected_ns};
}

nn::Kernel PrepareBackwardData(const OpSpec& spec, bool transposed, Handles* handles) {
  RequireOperands(spec, 2, 1);
  const Geometry geometry{&spec.writes[0], &spec.reads[1], &spec.reads[0], transposed};
  const Convolution op =
      Prepare(spec, geometry,
              transposed ? ConvolutionPass::kForward : ConvolutionPass::kBackwardData, handles);
  const Bytes staged = op.staged_bytes(false);
  return {.workspace_bytes = staged + op.plan->workspace_bytes(),
          .run =
              [=](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, 1);
                void* stream = launch.native_stream;
                void* weights = op.StageWeights(launch.reads[1], workspace, stream);
                std::byte* dy = launch.reads[0];
                std::byte* dx = launch.writes[0];
                op.plan->Run(
                    *op.handles,
                    {.x = transposed ? dy : dx, .weights = weights, .y = transposed ? dx : dy},
                    workspace + staged, stream);
              },
          .expected_ns = op.plan->expected_ns};
}

nn::Kernel PrepareBackwardWeights(const OpSpec& spec, bool transposed, Handles* handles) {
  const bool bias = spec.attributes.bias;
  RequireOperands(spec, 2, bias ? 2 : 1);
  const Geometry geometry{&spec.reads[0], &spec.writes[0], &spec.reads[1], transposed};
  const Convolution op = Prepare(spec, geometry, ConvolutionPass::kBackwardWeights, handles);
  ColumnSums sums;
  if (bias) {
    const std::int64_t outputs = spec.reads[1].shape[3];
    RequireCount(spec, spec.writes[1], outputs);
    RequireType(spec, spec.writes[1], ElementType::kFloat);
    sums = ColumnSums(spec.reads[1].count() / outputs, outputs, op.bfloat16);
  }
  const Bytes staged = op.staged_bytes(true);
  // One after the other, they use the same workspace.
  const Bytes workspace_bytes =
      std::max(staged + op.plan->workspace_bytes(), bias ? sums.workspace_bytes() : 0);
  // Back from the plan's weights to the op's: outer and inner channels change places.
  const ExchangedChannels back{.groups = op.channels.groups,
                               .outer = op.channels.inner,
                               .window = op.channels.window,
                               .inner = op.channels.outer};
  return {.workspace_bytes = workspace_bytes,
          .run =
              [=, writes = spec.writes.size()](const exec::Launch& launch, const nn::StepScalars&) {
                std::byte* workspace = Workspace(launch, writes);
                void* stream = launch.native_stream;
                std::byte* x = launch.reads[0];
                std::byte* dy = launch.reads[1];
                std::byte* dw = transposed ? workspace : launch.writes[0];
                op.plan->Run(*op.handles,
                             {.x = transposed ? dy : x, .weights = dw, .y = transposed ? x : dy},
                             workspace + staged, stream);
                if (transposed) {
                  Exchange(back, reinterpret_cast<const float*>(dw), launch.writes[0], false,
                           stream);
                }
                if (bias) {
                  sums.Run(dy, reinterpret_cast<float*>(launch.writes[1]), workspace, stream);
                }
              },
          .expected_ns = op.plan->expected_ns};
}

}  // namespace

nn::Kernel PrepareConvolution(const OpSpec& spec, Handles* handles) {
  using enum OpKind;
  switch (spec.kind) {
    case kConvForward:
    case kTransposedConvForward:
      return PrepareForward(spec, spec.kind == kTransposedConvForward, handles);
    case kConvBackwardData:
    case kTransposedConvBackwardData:
      return PrepareBackwardData(spec, spec.kind == kTransposedConvBackwardData, handles);
    default:
      return PrepareBackwardWeights(spec, spec.kind == kTransposedConvBackwardWeights, handles);
  }
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "plimsoll/cuda/kernels.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::cuda {
namespace {

using nn::ElementType;
using nn::OpSpec;
using nn::Refuse;
using nn::Shape;

AttentionSizes SizesOf(const OpSpec& spec) {
  RequireRank(spec, spec.reads[0], 3);
  const Shape& shape = spec.reads[0].shape;
  const std::int64_t heads = spec.attributes.heads;
  if (heads < 1 || shape[2] % (3 * heads) != 0) {
    Refuse(spec, "the last dimension should be that of queries, keys and values of every head");
  }
  const std::int64_t width = shape[2] / (3 * heads);
  if (width > kWidestHead) {
    Refuse(spec, fmt::format("a head is {} wide, and can be {} at most", width, kWidestHead));
  }
  // Some kernels count heads of all sequences by the second dimension of a grid, some rows.
  if (shape[0] * heads > 65535 || shape[1] > 65535 * 64) {
    Refuse(spec, "there are too many sequences, or they are too long");
  }
  return {.sequences = static_cast<int>(shape[0]),
          .length = static_cast<int>(shape[1]),
          .heads = static_cast<int>(heads),
          .width = static_cast<int>(width),
          .causal = spec.attributes.causal,
          .bfloat16 = spec.reads[0].type == ElementType::kBfloat16,
          .scale = 1 / std::sqrt(static_cast<float>(width))};
}

nn::Kernel PrepareForward(const OpSpec& spec) {
  RequireOperands(spec, 1, 1, 2);
  const AttentionSizes sizes = SizesOf(spec);
  const Shape& qkv = spec.reads[0].shape;
  if (!sizes.bfloat16) RequireType(spec, spec.reads[0], ElementType::kFloat);
  RequireShape(spec, spec.writes[0], {qkv[0], qkv[1], qkv[2] / 3});
  RequireType(spec, spec.writes[0], spec.reads[0].type);
  const bool kept = spec.writes.size() == 2;
  if (kept) {
    RequireCount(spec, spec.writes[1], qkv[0] * qkv[1] * sizes.heads);
    RequireType(spec, spec.writes[1], ElementType::kFloat);
  }
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    const AttentionForward operands{
        .qkv = launch.reads[0],
        .y = launch.writes[0],
        .log_sum = kept ? reinterpret_cast<float*>(launch.writes[1]) : nullptr};
    if (CanRunFlash(sizes)) {
      RunFlashForward(sizes, operands, launch.native_stream);
    } else {
      RunPlainForward(sizes, operands, launch.native_stream);
    }
  }};
}

nn::Kernel PrepareBackward(const OpSpec& spec) {
  RequireOperands(spec, 4, 1);
  const AttentionSizes sizes = SizesOf(spec);
  const Shape& qkv = spec.reads[0].shape;
  const std::int64_t rows = qkv[0] * qkv[1] * sizes.heads;
  if (!sizes.bfloat16) RequireType(spec, spec.reads[0], ElementType::kFloat);
  for (const std::size_t i : {1, 2}) {
    RequireShape(spec, spec.reads[i], {qkv[0], qkv[1], qkv[2] / 3});
    RequireType(spec, spec.reads[i], spec.reads[0].type);
  }
  RequireCount(spec, spec.reads[3], rows);
  RequireType(spec, spec.reads[3], ElementType::kFloat);
  RequireShape(spec, spec.writes[0], qkv);
  RequireType(spec, spec.writes[0], spec.reads[0].type);
  return {
      .workspace_bytes = rows * 4, .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
        void* stream = launch.native_stream;
        auto* dots = reinterpret_cast<float*>(launch.writes[1]);
        AttentionDots(sizes, launch.reads[1], launch.reads[2], dots, stream);
        const AttentionBackward operands{.qkv = launch.reads[0],
                                         .dy = launch.reads[2],
                                         .log_sum = reinterpret_cast<const float*>(launch.reads[3]),
                                         .dots = dots,
                                         .dqkv = launch.writes[0]};
        if (CanRunFlash(sizes)) {
          RunFlashBackward(sizes, operands, stream);
        } else {
          RunPlainBackward(sizes, operands, stream);
        }
      }};
}

}  // namespace

nn::Kernel PrepareAttention(const OpSpec& spec, Handles* /*handles*/) {
  return spec.kind == nn::OpKind::kAttentionForward ? PrepareForward(spec) : PrepareBackward(spec);
}

}  // namespace plimsoll::cuda

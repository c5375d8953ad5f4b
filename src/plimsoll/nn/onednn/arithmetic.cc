// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

PLIMSOLL_VECTORIZED void AddScaled(const float* a, const float* b, float scale, float* y,
                                   std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + scale * b[i];
}

PLIMSOLL_VECTORIZED void Scale(const float* x, float scale, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = scale * x[i];
}

}  // namespace

Kernel PrepareArithmetic(const OpSpec& spec) {
  const OpKind kind = spec.kind;
  RequireOperands(spec, kind == OpKind::kAdd ? 2 : (kind == OpKind::kScale ? 1 : 0), 1);
  const std::int64_t count = spec.writes[0].count();
  for (const Tensor& tensor : spec.reads) RequireCount(spec, tensor, count);
  const Partition partition = Cut(count, kLeastFloats, 16);
  return {
      .run = [=, scale = spec.attributes.scale](const exec::Launch& launch, const StepScalars&) {
        ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
          float* y = Write(launch, 0) + begin;
          if (kind == OpKind::kAdd) {
            AddScaled(Read(launch, 0) + begin, Read(launch, 1) + begin, scale, y, end - begin);
          } else if (kind == OpKind::kScale) {
            Scale(Read(launch, 0) + begin, scale, y, end - begin);
          } else {
            std::fill_n(y, end - begin, scale);
          }
        });
      }};
}

}  // namespace plimsoll::nn::onednn

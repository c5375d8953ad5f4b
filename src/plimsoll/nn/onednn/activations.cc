// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/vector_math.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

/// sqrt(2 / pi) and the cubic's coefficient of GPT-2's approximation.
constexpr float kGeluScale = 0.7978845608F;
constexpr float kGeluCubic = 0.044715F;

PLIMSOLL_VECTORIZED void Gelu(const float* x, const float* /*unused*/, float* y,
                              std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = x[i];
    y[i] = 0.5F * v * (1.0F + Tanh(kGeluScale * (v + kGeluCubic * v * v * v)));
  }
}

PLIMSOLL_VECTORIZED void GeluGradient(const float* x, const float* dy, float* dx,
                                      std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = x[i];
    const float t = Tanh(kGeluScale * (v + kGeluCubic * v * v * v));
    const float inner = kGeluScale * (1.0F + 3.0F * kGeluCubic * v * v);
    dx[i] = dy[i] * 0.5F * ((1.0F + t) + v * (1.0F - t * t) * inner);
  }
}

PLIMSOLL_VECTORIZED void TanhOf(const float* x, const float* /*unused*/, float* y,
                                std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = Tanh(x[i]);
}

PLIMSOLL_VECTORIZED void TanhGradient(const float* y, const float* dy, float* dx,
                                      std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1.0F - y[i] * y[i]);
}

PLIMSOLL_VECTORIZED void SigmoidOf(const float* x, const float* /*unused*/, float* y,
                                   std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = Sigmoid(x[i]);
}

PLIMSOLL_VECTORIZED void SigmoidGradient(const float* y, const float* dy, float* dx,
                                         std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1.0F - y[i]);
}

using Loop = void (*)(const float*, const float*, float*, std::int64_t);

Loop LoopOf(OpKind kind) {
  using enum OpKind;
  switch (kind) {
    case kGeluForward:
      return Gelu;
    case kGeluBackward:
      return GeluGradient;
    case kTanhForward:
      return TanhOf;
    case kTanhBackward:
      return TanhGradient;
    case kSigmoidForward:
      return SigmoidOf;
    default:
      return SigmoidGradient;
  }
}

}  // namespace

Kernel PrepareActivation(const OpSpec& spec) {
  using enum OpKind;
  const bool backward =
      spec.kind == kGeluBackward || spec.kind == kTanhBackward || spec.kind == kSigmoidBackward;
  RequireOperands(spec, backward ? 2 : 1, 1);
  const std::int64_t count = spec.writes[0].count();
  for (const Tensor& tensor : spec.reads) RequireCount(spec, tensor, count);
  const Loop loop = LoopOf(spec.kind);
  const Partition partition = Cut(count, kLeastFloats / 4, 16);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      const float* second = backward ? Read(launch, 1) + begin : nullptr;
      loop(Read(launch, 0) + begin, second, Write(launch, 0) + begin, end - begin);
    });
  }};
}

}  // namespace plimsoll::nn::onednn

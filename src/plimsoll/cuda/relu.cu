// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/elementwise.cuh"
#include "plimsoll/cuda/kernels.h"

namespace plimsoll::cuda {
namespace {

/// Passes what is not negative, and what is not a number, so that it is seen.
struct Rectify {
  __device__ float operator()(float x, float /*unused*/) const { return x <= 0.0F ? 0.0F : x; }
};

struct RectifyAndMark {
  __device__ unsigned operator()(float (&values)[8], unsigned /*unused*/, std::int64_t) const {
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const bool passes = !(values[k] <= 0.0F);
      bits |= static_cast<unsigned>(passes) << k;
      values[k] = passes ? values[k] : 0.0F;
    }
    return bits;
  }
};

}  // namespace

nn::Kernel PrepareRelu(const nn::OpSpec& spec) {
  const bool forward = spec.kind == nn::OpKind::kReluForward;
  nn::RequireOperands(spec, forward ? 1 : 2, 1, forward ? 2 : 1);
  const std::int64_t count = spec.reads[0].count();
  nn::RequireCount(spec, spec.writes[0], count);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  const bool masked = spec.writes.size() == 2;
  if (masked || !forward) {
    const nn::Tensor& mask = forward ? spec.writes[1] : spec.reads[1];
    nn::RequireType(spec, mask, nn::ElementType::kBit);
    nn::RequireCount(spec, mask, count);
  }
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      const T* x = In<T>(launch, 0);
      T* y = Out<T>(launch, 0);
      const cudaStream_t stream = StreamOf(launch);
      if (!forward) {
        MapMasked<Mask::kRead>(x, y, In<std::uint8_t>(launch, 1), nullptr, count, KeepMarked{1},
                               stream, "relu_backward");
      } else if (masked) {
        MapMasked<Mask::kWritten>(x, y, nullptr, Out<std::uint8_t>(launch, 1), count,
                                  RectifyAndMark{}, stream, "relu_forward");
      } else {
        Map<1, T>(x, nullptr, y, count, Rectify{}, stream, "relu_forward");
      }
    });
  }};
}

}  // namespace plimsoll::cuda

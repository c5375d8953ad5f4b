// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/elementwise.cuh"
#include "plimsoll/cuda/kernels.h"

namespace plimsoll::cuda {
namespace {

/// sqrt(2 / pi) and the cubic's coefficient of GPT-2's approximation.
constexpr float kGeluScale = 0.7978845608F;
constexpr float kGeluCubic = 0.044715F;

/// 1 / (1 + e^-2u) with u the argument of GPT-2's tanh, which is (1 + tanh u) / 2, and one less it:
/// a division and a power of two, where tanhf() would keep the op from being bound by memory.
struct Gate {
  float open;
  float shut;
};
__device__ __forceinline__ Gate GateOf(float x) {
  const float u = kGeluScale * (x + kGeluCubic * x * x * x);
  const float e = fminf(__expf(-2.0F * u), 1e30F);  // Finite, so that shut is a number.
  const float open = __fdividef(1.0F, 1.0F + e);
  return {open, e * open};
}

struct Gelu {
  __device__ float operator()(float x, float /*unused*/) const { return x * GateOf(x).open; }
};

struct GeluGradient {
  __device__ float operator()(float x, float dy) const {
    const Gate gate = GateOf(x);
    const float inner = kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
    return dy * (gate.open + 2.0F * x * gate.open * gate.shut * inner);
  }
};

struct Tanh {
  __device__ float operator()(float x, float /*unused*/) const { return tanhf(x); }
};
struct TanhGradient {
  __device__ float operator()(float y, float dy) const { return dy * (1.0F - y * y); }
};

struct Sigmoid {
  __device__ float operator()(float x, float /*unused*/) const { return 1.0F / (1.0F + expf(-x)); }
};
struct SigmoidGradient {
  __device__ float operator()(float y, float dy) const { return dy * y * (1.0F - y); }
};

template <typename T>
void Run(nn::OpKind kind, const exec::Launch& launch, std::int64_t count) {
  const auto forward = [&](auto function, const char* what) {
    Map<1, T>(In<T>(launch, 0), nullptr, Out<T>(launch, 0), count, function, StreamOf(launch),
              what);
  };
  const auto backward = [&](auto function, const char* what) {
    Map<2, T>(In<T>(launch, 0), In<T>(launch, 1), Out<T>(launch, 0), count, function,
              StreamOf(launch), what);
  };
  using enum nn::OpKind;
  switch (kind) {
    case kGeluForward:
      return forward(Gelu{}, "gelu_forward");
    case kGeluBackward:
      return backward(GeluGradient{}, "gelu_backward");
    case kTanhForward:
      return forward(Tanh{}, "tanh_forward");
    case kTanhBackward:
      return backward(TanhGradient{}, "tanh_backward");
    case kSigmoidForward:
      return forward(Sigmoid{}, "sigmoid_forward");
    default:
      return backward(SigmoidGradient{}, "sigmoid_backward");
  }
}

}  // namespace

nn::Kernel PrepareActivation(const nn::OpSpec& spec) {
  using enum nn::OpKind;
  const bool backward =
      spec.kind == kGeluBackward || spec.kind == kTanhBackward || spec.kind == kSigmoidBackward;
  nn::RequireOperands(spec, backward ? 2 : 1, 1);
  const std::int64_t count = spec.writes[0].count();
  for (const nn::Tensor& tensor : spec.reads) nn::RequireCount(spec, tensor, count);
  const nn::ElementType type =
      ActivationType(spec, {&spec.reads.front(), &spec.reads.back(), &spec.writes[0]});
  return {.run = [=, kind = spec.kind](const exec::Launch& launch, const nn::StepScalars&) {
    WithType(type, [&](auto element) { Run<decltype(element)>(kind, launch, count); });
  }};
}

}  // namespace plimsoll::cuda

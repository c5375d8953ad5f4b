// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/elementwise.cuh"
#include "plimsoll/cuda/kernels.h"

namespace plimsoll::cuda {
namespace {

struct AddScaled {
  float scale;
  __device__ float operator()(float a, float b) const { return a + scale * b; }
};
struct Scale {
  float scale;
  __device__ float operator()(float x, float /*unused*/) const { return scale * x; }
};
struct Fill {
  float value;
  __device__ float operator()(float /*unused*/, float /*unused*/) const { return value; }
};

}  // namespace

nn::Kernel PrepareArithmetic(const nn::OpSpec& spec) {
  const nn::OpKind kind = spec.kind;
  nn::RequireOperands(spec, kind == nn::OpKind::kAdd ? 2 : (kind == nn::OpKind::kScale ? 1 : 0), 1);
  const std::int64_t count = spec.writes[0].count();
  nn::ElementType type = ActivationType(spec, {&spec.writes[0]});
  for (const nn::Tensor& tensor : spec.reads) {
    nn::RequireCount(spec, tensor, count);
    type = ActivationType(spec, {&tensor, &spec.writes[0]});
  }
  return {.run = [=, scale = spec.attributes.scale](const exec::Launch& launch,
                                                    const nn::StepScalars&) {
    const cudaStream_t stream = StreamOf(launch);
    WithType(type, [&](auto element) {
      using T = decltype(element);
      T* y = Out<T>(launch, 0);
      if (kind == nn::OpKind::kAdd) {
        Map<2, T>(In<T>(launch, 0), In<T>(launch, 1), y, count, AddScaled{scale}, stream, "add");
      } else if (kind == nn::OpKind::kScale) {
        Map<1, T>(In<T>(launch, 0), nullptr, y, count, Scale{scale}, stream, "scale");
      } else {
        Map<0, T>(nullptr, nullptr, y, count, Fill{scale}, stream, "fill");
      }
    });
  }};
}

}  // namespace plimsoll::cuda

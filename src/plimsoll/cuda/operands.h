// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "plimsoll/nn/op.h"
#include "plimsoll/nn/op_check.h"

/// The operands of ops as kernels of our own take them.
namespace plimsoll::cuda {

using Bfloat16 = __nv_bfloat16;

/// The type of activations and their gradients. Throws Error if it is neither float nor bfloat16,
/// or not the same for all.
inline nn::ElementType ActivationType(const nn::OpSpec& spec,
                                      std::initializer_list<const nn::Tensor*> tensors) {
  const nn::ElementType type = (*tensors.begin())->type;
  if (type != nn::ElementType::kFloat && type != nn::ElementType::kBfloat16) {
    nn::Refuse(spec, "activations should be floats or bfloat16");
  }
  for (const nn::Tensor* tensor : tensors) {
    if (tensor->type != type) nn::Refuse(spec, "activations should all be of one type");
  }
  return type;
}

/// Checks a parameter or a statistic: floats, so many.
inline void RequireFloats(const nn::OpSpec& spec, const nn::Tensor& tensor, std::int64_t count) {
  nn::RequireType(spec, tensor, nn::ElementType::kFloat);
  nn::RequireCount(spec, tensor, count);
}

/// Calls `body` with a value of the type that activations have on the device.
template <typename Body>
void WithType(nn::ElementType type, const Body& body) {
  if (type == nn::ElementType::kBfloat16) {
    body(Bfloat16{});
  } else {
    body(float{});
  }
}

inline cudaStream_t StreamOf(const exec::Launch& launch) {
  return static_cast<cudaStream_t>(launch.native_stream);
}
template <typename T>
const T* In(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<const T*>(launch.reads[index]);
}
template <typename T>
T* Out(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<T*>(launch.writes[index]);
}

/// The step's scalars, as a kernel takes them: from the iteration's constants where there are some,
/// so that a graph that is launched again sees its own step's.
struct Scalars {
  Scalars(const exec::Launch& launch, const nn::StepScalars& scalars)
      : constants(reinterpret_cast<const nn::StepScalars*>(launch.constants)), value(scalars) {}

  __device__ nn::StepScalars Get() const { return constants != nullptr ? *constants : value; }

  const nn::StepScalars* constants;
  nn::StepScalars value;
};

inline std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace plimsoll::cuda

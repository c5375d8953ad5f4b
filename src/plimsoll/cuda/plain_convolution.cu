// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <algorithm>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/convolution_plan.h"

/// A convolution as its definition says: one thread for each number that is written. It is there
/// for shapes that cuDNN has no engine for.
namespace plimsoll::cuda {
namespace {

using Bfloat16 = __nv_bfloat16;
using Shape = ConvolutionShape;

constexpr int kThreads = 256;

__device__ float Load(const float* at) { return *at; }
__device__ float Load(const Bfloat16* at) { return __bfloat162float(*at); }
__device__ void Store(float* at, float x) { *at = x; }
__device__ void Store(Bfloat16* at, float x) { *at = __float2bfloat16_rn(x); }

__device__ std::int64_t InX(const Shape& s, std::int64_t n, std::int64_t h, std::int64_t w,
                            std::int64_t c) {
  return ((n * s.x[0] + h) * s.x[1] + w) * s.x[2] + c;
}
__device__ std::int64_t InY(const Shape& s, std::int64_t n, std::int64_t h, std::int64_t w,
                            std::int64_t k) {
  return ((n * s.y[0] + h) * s.y[1] + w) * s.y[2] + k;
}
__device__ std::int64_t InWeights(const Shape& s, std::int64_t k, std::int64_t r, std::int64_t t,
                                  std::int64_t c) {
  return ((k * s.kernel[0] + r) * s.kernel[1] + t) * (s.x[2] / s.groups) + c;
}

template <typename T>
__global__ void Forward(Shape s, const T* x, const T* weights, T* y, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t k = i % s.y[2];
  const std::int64_t w = i / s.y[2] % s.y[1];
  const std::int64_t h = i / (s.y[2] * s.y[1]) % s.y[0];
  const std::int64_t n = i / (s.y[2] * s.y[1] * s.y[0]);
  const std::int64_t channels = s.x[2] / s.groups;
  const std::int64_t first = k / (s.y[2] / s.groups) * channels;
  float sum = 0;
  for (std::int64_t r = 0; r < s.kernel[0]; ++r) {
    const std::int64_t x_h = h * s.stride[0] - s.padding[0] + r;
    if (x_h < 0 || x_h >= s.x[0]) continue;
    for (std::int64_t t = 0; t < s.kernel[1]; ++t) {
      const std::int64_t x_w = w * s.stride[1] - s.padding[1] + t;
      if (x_w < 0 || x_w >= s.x[1]) continue;
      for (std::int64_t c = 0; c < channels; ++c) {
        sum += Load(x + InX(s, n, x_h, x_w, first + c)) * Load(weights + InWeights(s, k, r, t, c));
      }
    }
  }
  Store(y + i, sum);
}

template <typename T>
__global__ void BackwardData(Shape s, const T* y, const T* weights, T* x, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t channel = i % s.x[2];
  const std::int64_t x_w = i / s.x[2] % s.x[1];
  const std::int64_t x_h = i / (s.x[2] * s.x[1]) % s.x[0];
  const std::int64_t n = i / (s.x[2] * s.x[1] * s.x[0]);
  const std::int64_t channels = s.x[2] / s.groups;
  const std::int64_t outputs = s.y[2] / s.groups;
  const std::int64_t first = channel / channels * outputs;
  float sum = 0;
  for (std::int64_t r = 0; r < s.kernel[0]; ++r) {
    const std::int64_t h = x_h + s.padding[0] - r;
    if (h < 0 || h % s.stride[0] != 0 || h / s.stride[0] >= s.y[0]) continue;
    for (std::int64_t t = 0; t < s.kernel[1]; ++t) {
      const std::int64_t w = x_w + s.padding[1] - t;
      if (w < 0 || w % s.stride[1] != 0 || w / s.stride[1] >= s.y[1]) continue;
      for (std::int64_t k = first; k < first + outputs; ++k) {
        sum += Load(y + InY(s, n, h / s.stride[0], w / s.stride[1], k)) *
               Load(weights + InWeights(s, k, r, t, channel % channels));
      }
    }
  }
  Store(x + i, sum);
}

template <typename T>
__global__ void BackwardWeights(Shape s, const T* x, const T* y, float* weights,
                                std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t channels = s.x[2] / s.groups;
  const std::int64_t c = i % channels;
  const std::int64_t t = i / channels % s.kernel[1];
  const std::int64_t r = i / (channels * s.kernel[1]) % s.kernel[0];
  const std::int64_t k = i / (channels * s.kernel[1] * s.kernel[0]);
  const std::int64_t channel = k / (s.y[2] / s.groups) * channels + c;
  float sum = 0;
  for (std::int64_t n = 0; n < s.images; ++n) {
    for (std::int64_t h = 0; h < s.y[0]; ++h) {
      const std::int64_t x_h = h * s.stride[0] - s.padding[0] + r;
      if (x_h < 0 || x_h >= s.x[0]) continue;
      for (std::int64_t w = 0; w < s.y[1]; ++w) {
        const std::int64_t x_w = w * s.stride[1] - s.padding[1] + t;
        if (x_w < 0 || x_w >= s.x[1]) continue;
        sum += Load(x + InX(s, n, x_h, x_w, channel)) * Load(y + InY(s, n, h, w, k));
      }
    }
  }
  weights[i] = sum;
}

template <typename T>
void Launch(const Shape& s, const ConvolutionOperands& operands, cudaStream_t stream) {
  auto* x = static_cast<T*>(operands.x);
  auto* y = static_cast<T*>(operands.y);
  const auto blocks = [](std::int64_t count) {
    return static_cast<unsigned>((count + kThreads - 1) / kThreads);
  };
  switch (s.pass) {
    case ConvolutionPass::kForward:
      Forward<T><<<blocks(s.y_count()), kThreads, 0, stream>>>(
          s, x, static_cast<const T*>(operands.weights), y, s.y_count());
      break;
    case ConvolutionPass::kBackwardData:
      BackwardData<T><<<blocks(s.x_count()), kThreads, 0, stream>>>(
          s, y, static_cast<const T*>(operands.weights), x, s.x_count());
      break;
    case ConvolutionPass::kBackwardWeights:
      BackwardWeights<T><<<blocks(s.weight_count()), kThreads, 0, stream>>>(
          s, x, y, static_cast<float*>(operands.weights), s.weight_count());
      break;
  }
  CheckLaunch("running a plain convolution");
}

class PlainConvolution final : public ConvolutionPlan {
 public:
  explicit PlainConvolution(const Shape& shape) : shape_(shape) {}

  Bytes workspace_bytes() const override { return 0; }
  void Run(Handles& /*handles*/, const ConvolutionOperands& operands, std::byte* /*workspace*/,
           void* stream) const override {
    if (shape_.bfloat16) {
      Launch<Bfloat16>(shape_, operands, static_cast<cudaStream_t>(stream));
    } else {
      Launch<float>(shape_, operands, static_cast<cudaStream_t>(stream));
    }
  }

 private:
  Shape shape_;
};

}  // namespace

std::shared_ptr<ConvolutionPlan> MakePlainConvolution(const ConvolutionShape& shape) {
  return std::make_shared<PlainConvolution>(shape);
}

}  // namespace plimsoll::cuda

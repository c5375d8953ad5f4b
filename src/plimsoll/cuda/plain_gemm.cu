// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/gemm.h"

/// A product as its definition says: one thread for each number of the result. It is there for
/// shapes that cuBLAS has no kernel for.
namespace plimsoll::cuda {
namespace {

using Bfloat16 = __nv_bfloat16;

constexpr int kThreads = 256;

__device__ float Load(const float* at) { return *at; }
__device__ float Load(const Bfloat16* at) { return __bfloat162float(*at); }
__device__ void Store(float* at, float x) { *at = x; }
__device__ void Store(Bfloat16* at, float x) { *at = __float2bfloat16_rn(x); }

template <typename In, typename Out>
__global__ void Multiply(GemmShape s, const In* left, const In* right, const Out* bias,
                         Out* result) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.rows * s.columns) return;
  const std::int64_t row = i / s.columns;
  const std::int64_t column = i % s.columns;
  Out* at = result + row * s.result_stride + column;
  float sum = 0;
  for (std::int64_t k = 0; k < s.inner; ++k) {
    const In* l = left + (s.left_transposed ? k * s.left_stride + row : row * s.left_stride + k);
    const In* r =
        right + (s.right_transposed ? column * s.right_stride + k : k * s.right_stride + column);
    sum += Load(l) * Load(r);
  }
  if (s.bias) sum += Load(bias + column);
  if (s.accumulate) sum += Load(at);
  Store(at, sum);
}

class PlainGemm final : public GemmPlan {
 public:
  explicit PlainGemm(const GemmShape& shape) : shape_(shape) { plain = true; }

  Bytes workspace_bytes() const override { return 0; }
  void Run(Handles& /*handles*/, const GemmOperands& operands, std::byte* /*workspace*/,
           void* stream) const override {
    if (shape_.bfloat16 && shape_.result_bfloat16) {
      Launch<Bfloat16, Bfloat16>(operands, stream);
    } else if (shape_.bfloat16) {
      Launch<Bfloat16, float>(operands, stream);
    } else {
      Launch<float, float>(operands, stream);
    }
  }

 private:
  template <typename In, typename Out>
  void Launch(const GemmOperands& operands, void* stream) const {
    const auto blocks =
        static_cast<unsigned>((shape_.rows * shape_.columns + kThreads - 1) / kThreads);
    Multiply<In, Out><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        shape_, static_cast<const In*>(operands.left), static_cast<const In*>(operands.right),
        static_cast<const Out*>(operands.bias), static_cast<Out*>(operands.result));
    CheckLaunch("multiplying matrices plainly");
  }

  GemmShape shape_;
};

}  // namespace

std::shared_ptr<GemmPlan> MakePlainGemm(const GemmShape& shape) {
  return std::make_shared<PlainGemm>(shape);
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/layer_norm.cuh"

/// Layer norm forward: the mean and variance of every row, which is read once and stays in
/// registers, unless it is too long or fills no vectors.
namespace plimsoll::cuda {
namespace {

template <typename T>
struct Forward {
  const T* x;
  const float* gamma;
  const float* beta;
  T* y;
  float* mean;     ///< May be null.
  float* inv_std;  ///< May be null.
  float epsilon;

  __device__ void StoreStatistics(std::int64_t row, float row_mean, float row_inv_std) const {
    if (mean == nullptr) return;
    mean[row] = row_mean;
    inv_std[row] = row_inv_std;
  }
};

template <typename T, int kVectors>
__global__ void __launch_bounds__(kTileThreads) NormalizeRows(Forward<T> f, RowGroups groups) {
  constexpr int kVector = kFullVector<T>;
  __shared__ float2 shared[2][kTileWarps];
  const RowPlace place(groups);
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kTileWarps / groups.warps) + place.group;
  const bool valid = row < groups.rows;
  const auto width = static_cast<float>(groups.columns);
  float values[kVectors][kVector];
  Raw<T, kVector> raws[kVectors] = {};
  const auto column = [&](int i) { return (place.lane + i * place.warps * kWarp) * kVector; };
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (valid && column(i) < groups.columns) {
      raws[i] = LoadRaw<kVector>(f.x + row * groups.columns + column(i));
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    Unpack<T, kVector>(raws[i], values[i]);  // Zeros beyond the row.
#pragma unroll
    for (int k = 0; k < kVector; ++k) sum += values[i][k];
  }
  const float mean = RowSum({sum, 0}, place, shared[0]).x / width;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (column(i) >= groups.columns) continue;
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      squares += (values[i][k] - mean) * (values[i][k] - mean);
    }
  }
  const float variance = RowSum({squares, 0}, place, shared[1]).x / width;
  const float inv_std = 1 / sqrtf(variance + f.epsilon);
  if (!valid) return;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (column(i) >= groups.columns) continue;
    float gamma[kVector];
    float beta[kVector];
    LoadFloats(f.gamma + column(i), gamma);
    LoadFloats(f.beta + column(i), beta);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      values[i][k] = (values[i][k] - mean) * inv_std * gamma[k] + beta[k];
    }
    Store(f.y + row * groups.columns + column(i), values[i]);
  }
  if (place.lane == 0) f.StoreStatistics(row, mean, inv_std);
}

/// Any row: a block reads it three times.
template <typename T>
__global__ void __launch_bounds__(kTileThreads)
    NormalizeAnyRow(Forward<T> f, std::int64_t columns) {
  __shared__ float2 shared[2][kTileWarps];
  const T* x = f.x + blockIdx.x * columns;
  const auto width = static_cast<float>(columns);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < columns; i += kTileThreads) sum += LoadOne(x + i);
  const float mean = BlockSum({sum, 0}, shared[0]).x / width;
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < columns; i += kTileThreads) {
    const float value = LoadOne(x + i) - mean;
    squares += value * value;
  }
  const float variance = BlockSum({squares, 0}, shared[1]).x / width;
  const float inv_std = 1 / sqrtf(variance + f.epsilon);
  T* y = f.y + blockIdx.x * columns;
  for (std::int64_t i = threadIdx.x; i < columns; i += kTileThreads) {
    StoreOne(y + i, (LoadOne(x + i) - mean) * inv_std * f.gamma[i] + f.beta[i]);
  }
  if (threadIdx.x == 0) f.StoreStatistics(blockIdx.x, mean, inv_std);
}

nn::Kernel PrepareForward(const nn::OpSpec& spec) {
  nn::RequireOperands(spec, 3, 1, 3);
  const std::int64_t rows = nn::Rows(spec, spec.reads[0]);
  const std::int64_t columns = nn::Columns(spec, spec.reads[0]);
  nn::RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  const bool statistics = spec.writes.size() == 3;
  if (spec.writes.size() == 2) nn::Refuse(spec, "mean and inv_std are both there, or neither");
  for (std::size_t i = 1; i < 3; ++i) RequireFloats(spec, spec.reads[i], columns);
  for (std::size_t i = 1; i < spec.writes.size(); ++i) RequireFloats(spec, spec.writes[i], rows);
  return {.run = [=, epsilon = spec.attributes.epsilon](const exec::Launch& launch,
                                                        const nn::StepScalars&) {
    const cudaStream_t stream = StreamOf(launch);
    WithType(type, [&](auto element) {
      using T = decltype(element);
      const Forward<T> f{.x = In<T>(launch, 0),
                         .gamma = In<float>(launch, 1),
                         .beta = In<float>(launch, 2),
                         .y = Out<T>(launch, 0),
                         .mean = statistics ? Out<float>(launch, 1) : nullptr,
                         .inv_std = statistics ? Out<float>(launch, 2) : nullptr,
                         .epsilon = epsilon};
      const RowGroups groups = GroupRows(rows, columns, kFullVector<T>);
      if (groups.warps == 0) {
        NormalizeAnyRow<T><<<static_cast<unsigned>(rows), kTileThreads, 0, stream>>>(f, columns);
      } else {
        const auto blocks = static_cast<unsigned>(CeilDiv(rows, groups.groups()));
        WithVectors(groups.vectors, [&](auto vectors) {
          NormalizeRows<T, vectors()><<<blocks, kTileThreads, 0, stream>>>(f, groups);
        });
      }
      CheckLaunch("layer_norm_forward");
    });
  }};
}

}  // namespace

nn::Kernel PrepareLayerNorm(const nn::OpSpec& spec) {
  return spec.kind == nn::OpKind::kLayerNormForward ? PrepareForward(spec)
                                                    : PrepareLayerNormBackward(spec);
}

}  // namespace plimsoll::cuda

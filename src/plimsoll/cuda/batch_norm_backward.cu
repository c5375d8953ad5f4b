// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/batch_norm.cuh"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"

/// Batch norm backward, in three launches as forward:
///
///     dbeta = sum of dy, dgamma = inv_std * sum of dy (x - mean)
///     dx = gamma inv_std (dy - dbeta / rows - (x - mean) inv_std dgamma / rows)
///
/// dy is taken as 0 where the ReLU behind did not pass.
namespace plimsoll::cuda {
namespace {

/// The bits of a vector: it lies within a byte, as its length divides 8 and its place.
template <int kVector>
__device__ __forceinline__ unsigned MaskBits(const std::uint8_t* mask, std::int64_t at) {
  if constexpr (kVector == 8) return mask[at / 8];
  return static_cast<unsigned>(mask[at / 8]) >> static_cast<unsigned>(at % 8);
}

template <int kVector>
__device__ __forceinline__ void Keep(unsigned bits, float (&values)[kVector]) {
#pragma unroll
  for (int k = 0; k < kVector; ++k) values[k] = (bits >> k & 1U) != 0 ? values[k] : 0.0F;
}

template <typename T, int kVector, bool kMasked>
__global__ void __launch_bounds__(kTileThreads, 4)
    Products(const T* x, const T* dy, const std::uint8_t* mask, const float* mean, Tiling tiling,
             float* partials) {
  constexpr int kUnroll = 2;
  const Place<kVector> place(tiling, blockIdx.x);
  float sums[2][kVector] = {};
  float center[kVector] = {};
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    if (place.active) center[k] = mean[place.channel + k];
  }
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  const std::int64_t stride = place.step * tiling.channels;
  std::int64_t at = (begin + place.y) * tiling.channels + place.channel;
  for (std::int64_t row = begin + place.y; row < end && place.active;
       row += kUnroll * place.step, at += kUnroll * stride) {
    Raw<T, kVector> xs[kUnroll] = {};
    Raw<T, kVector> dys[kUnroll] = {};
    unsigned bits[kUnroll] = {};
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step >= end) continue;
      xs[i] = LoadRaw<kVector>(x + at + i * stride);
      dys[i] = LoadRaw<kVector>(dy + at + i * stride);
      if constexpr (kMasked) bits[i] = MaskBits<kVector>(mask, at + i * stride);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step >= end) continue;
      float values[kVector];
      float slopes[kVector];
      Unpack<T, kVector>(xs[i], values);
      Unpack<T, kVector>(dys[i], slopes);
      if constexpr (kMasked) Keep(bits[i], slopes);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        sums[0][k] += slopes[k];
        sums[1][k] += slopes[k] * (values[k] - center[k]);
      }
    }
  }
  StoreTileSums(sums, tiling, blockIdx.x, partials + 2 * blockIdx.y * tiling.channels);
}

/// Three rows of coefficients: dx = slope dy + tilt (x - mean) + lift.
struct Coefficients {
  float* slope;
  float* tilt;
  float* lift;
};

__global__ void __launch_bounds__(kFinishThreads)
    FinishProducts(const float* partials, Tiling tiling, const float* gamma, const float* inv_std,
                   float* dgamma, float* dbeta, Coefficients out) {
  const TwoSums sums = AddPartials(partials, tiling.chunks, tiling.channels);
  const std::int64_t channel = FinishChannel();
  if (threadIdx.x % kWarp != 0 || channel >= tiling.channels) return;
  const auto rows = static_cast<double>(tiling.rows);
  const auto scale = static_cast<double>(inv_std[channel]);
  const double of_gamma = sums.second * scale;
  const double slope = static_cast<double>(gamma[channel]) * scale;
  out.slope[channel] = static_cast<float>(slope);
  out.tilt[channel] = static_cast<float>(-slope * scale * of_gamma / rows);
  out.lift[channel] = static_cast<float>(-slope * sums.first / rows);
  dgamma[channel] = static_cast<float>(of_gamma);
  dbeta[channel] = static_cast<float>(sums.first);
}

template <typename T>
struct Gradients {
  const T* x;
  const T* dy;
  const std::uint8_t* mask;
  const float* mean;
  Coefficients coefficients;
  T* dx;
  T* dresidual;
};

enum class Kind : std::uint8_t { kPlain, kMasked, kMaskedWithResidual };

/// From the last rows to the first, as forward. dx or dresidual may be dy: a thread reads what it
/// writes over before.
template <typename T, int kVector, Kind kKind>
__global__ void __launch_bounds__(kTileThreads) Spread(Gradients<T> g, Tiling tiling) {
  constexpr int kUnroll = 2;
  const Place<kVector> place(tiling, blockIdx.x);
  if (!place.active) return;
  float mean[kVector];
  float slope[kVector];
  float tilt[kVector];
  float lift[kVector];
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    mean[k] = g.mean[place.channel + k];
    slope[k] = g.coefficients.slope[place.channel + k];
    tilt[k] = g.coefficients.tilt[place.channel + k];
    lift[k] = g.coefficients.lift[place.channel + k];
  }
  const std::int64_t begin = (gridDim.y - 1 - blockIdx.y) * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  const int round = kUnroll * place.step;
  const std::int64_t stride = place.step * tiling.channels;
  for (std::int64_t base = begin + (end - 1 - begin) / round * round; base >= begin;
       base -= round) {
    Raw<T, kVector> xs[kUnroll] = {};
    Raw<T, kVector> dys[kUnroll] = {};
    unsigned bits[kUnroll] = {};
    const std::int64_t row = base + place.y;
    const std::int64_t first = row * tiling.channels + place.channel;
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step >= end) continue;
      xs[i] = LoadRaw<kVector>(g.x + first + i * stride);
      dys[i] = LoadRaw<kVector>(g.dy + first + i * stride);
      if constexpr (kKind != Kind::kPlain) bits[i] = MaskBits<kVector>(g.mask, first + i * stride);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step >= end) continue;
      float values[kVector];
      float slopes[kVector];
      Unpack<T, kVector>(xs[i], values);
      Unpack<T, kVector>(dys[i], slopes);
      if constexpr (kKind != Kind::kPlain) Keep(bits[i], slopes);
      if constexpr (kKind == Kind::kMaskedWithResidual) {
        Store(g.dresidual + first + i * stride, slopes);
      }
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        values[k] = slope[k] * slopes[k] + (tilt[k] * (values[k] - mean[k]) + lift[k]);
      }
      Store(g.dx + first + i * stride, values);
    }
  }
}

/// Where operands are in the lists of the two kinds.
struct Indices {
  std::size_t gamma;
  std::size_t workspace;
};

template <typename T>
void Run(const exec::Launch& launch, const Indices& indices, bool masked, bool residual,
         const Tiling& tiling) {
  const cudaStream_t stream = StreamOf(launch);
  const std::int64_t channels = tiling.channels;
  auto* partials = Out<float>(launch, indices.workspace);
  float* rows = partials + static_cast<std::int64_t>(tiling.chunks) * 2 * channels;
  const float* mean = In<float>(launch, indices.gamma + 1);
  const Gradients<T> g{.x = In<T>(launch, 0),
                       .dy = In<T>(launch, 1),
                       .mask = masked ? In<std::uint8_t>(launch, 2) : nullptr,
                       .mean = mean,
                       .coefficients = {rows, rows + channels, rows + 2 * channels},
                       .dx = Out<T>(launch, 0),
                       .dresidual = residual ? Out<T>(launch, 3) : nullptr};
  WithVector<T>(channels, [&](auto v) {
    if (masked) {
      Products<T, v(), true>
          <<<tiling.grid(), kTileThreads, 0, stream>>>(g.x, g.dy, g.mask, mean, tiling, partials);
    } else {
      Products<T, v(), false>
          <<<tiling.grid(), kTileThreads, 0, stream>>>(g.x, g.dy, nullptr, mean, tiling, partials);
    }
  });
  CheckLaunch("batch_norm_backward: sums");
  FinishProducts<<<FinishBlocks(channels), kFinishThreads, 0, stream>>>(
      partials, tiling, In<float>(launch, indices.gamma), In<float>(launch, indices.gamma + 2),
      Out<float>(launch, 1), Out<float>(launch, 2), g.coefficients);
  CheckLaunch("batch_norm_backward: coefficients");
  WithVector<T>(channels, [&](auto v) {
    const Tiling spread = Tile(tiling.rows, channels, v(), kNormBlocks);
    const dim3 grid = spread.grid();
    if (residual) {
      Spread<T, v(), Kind::kMaskedWithResidual><<<grid, kTileThreads, 0, stream>>>(g, spread);
    } else if (masked) {
      Spread<T, v(), Kind::kMasked><<<grid, kTileThreads, 0, stream>>>(g, spread);
    } else {
      Spread<T, v(), Kind::kPlain><<<grid, kTileThreads, 0, stream>>>(g, spread);
    }
  });
  CheckLaunch("batch_norm_backward: gradient");
}

}  // namespace

nn::Kernel PrepareBatchNormBackward(const nn::OpSpec& spec) {
  const bool masked = spec.kind == nn::OpKind::kBatchNormReluBackward;
  nn::RequireOperands(spec, masked ? 6 : 5, 3, masked ? 4 : 3);
  const bool residual = spec.writes.size() == 4;
  const std::int64_t rows = nn::Rows(spec, spec.reads[0]);
  const std::int64_t channels = nn::Columns(spec, spec.reads[0]);
  const nn::ElementType type =
      ActivationType(spec, {&spec.reads[0], &spec.reads[1], &spec.writes[0],
                            residual ? &spec.writes[3] : &spec.writes[0]});
  nn::RequireShape(spec, spec.reads[1], spec.reads[0].shape);
  nn::RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  if (residual) nn::RequireShape(spec, spec.writes[3], spec.reads[0].shape);
  if (masked) {
    nn::RequireType(spec, spec.reads[2], nn::ElementType::kBit);
    nn::RequireCount(spec, spec.reads[2], rows * channels);
  }
  const Indices indices{.gamma = masked ? 3U : 2U, .workspace = spec.writes.size()};
  for (std::size_t i = 0; i < 3; ++i) {
    RequireFloats(spec, spec.reads[indices.gamma + i], channels);
  }
  for (std::size_t i = 1; i < 3; ++i) RequireFloats(spec, spec.writes[i], channels);
  const int vector =
      type == nn::ElementType::kFloat ? VectorOf<float>(channels) : VectorOf<Bfloat16>(channels);
  const Tiling tiling = Tile(rows, channels, vector, kSumBlocks);
  return {.workspace_bytes = (tiling.chunks * 2 + 3) * (channels * 4),
          .run = [=](const exec::Launch& launch, const nn::StepScalars&) {
            WithType(type, [&](auto element) {
              Run<decltype(element)>(launch, indices, masked, residual, tiling);
            });
          }};
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "plimsoll/cuda/batch_norm.cuh"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"

/// Batch norm forward, in two ops: the mean and variance of every channel over all rows (N, H and
/// W), in two launches, partial sums and what follows from them; and what is written.
namespace plimsoll::cuda {
namespace {

/// Sums of x and of its squares, less the first row, which is as good as any to subtract: sums of
/// squares are then about the variance. A thread adds few numbers, blocks add doubles.
template <typename T, int kVector>
__global__ void __launch_bounds__(kTileThreads, 4)
    Moments(const T* x, Tiling tiling, float* partials) {
  constexpr int kUnroll = 4;
  const Place<kVector> place(tiling, blockIdx.x);
  float sums[2][kVector] = {};
  float center[kVector] = {};
  if (place.active) Load(x + place.channel, center);
  const std::int64_t begin = blockIdx.y * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  const std::int64_t stride = place.step * tiling.channels;
  const T* at = x + (begin + place.y) * tiling.channels + place.channel;
  for (std::int64_t row = begin + place.y; row < end && place.active;
       row += kUnroll * place.step, at += kUnroll * stride) {
    Raw<T, kVector> raws[kUnroll] = {};
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step < end) raws[i] = LoadRaw<kVector>(at + i * stride);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (row + i * place.step >= end) continue;
      float values[kVector];
      Unpack<T, kVector>(raws[i], values);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const float value = values[k] - center[k];
        sums[0][k] += value;
        sums[1][k] += value * value;
      }
    }
  }
  StoreTileSums(sums, tiling, blockIdx.x, partials + 2 * blockIdx.y * tiling.channels);
}

struct Statistics {
  const float* running_mean;
  const float* running_variance;
  float* mean;
  float* inv_std;
  float* new_running_mean;
  float* new_running_variance;
};

template <typename T>
__global__ void __launch_bounds__(kFinishThreads)
    FinishMoments(const T* x, const float* partials, Tiling tiling, float epsilon, float momentum,
                  Statistics out) {
  const TwoSums sums = AddPartials(partials, tiling.chunks, tiling.channels);
  const std::int64_t channel = FinishChannel();
  if (threadIdx.x % kWarp != 0 || channel >= tiling.channels) return;
  const auto rows = static_cast<double>(tiling.rows);
  const double shift = sums.first / rows;
  const double mean = static_cast<double>(LoadOne(x + channel)) + shift;
  // Not by fmax(), which would hide what is not a number.
  const double square = sums.second / rows - shift * shift;
  const double variance = square < 0 ? 0 : square;
  const double unbiased = tiling.rows > 1 ? variance * rows / (rows - 1) : variance;
  const auto fresh = static_cast<double>(momentum);
  out.mean[channel] = static_cast<float>(mean);
  out.inv_std[channel] = static_cast<float>(1 / sqrt(variance + static_cast<double>(epsilon)));
  out.new_running_mean[channel] = static_cast<float>(
      (1 - fresh) * static_cast<double>(out.running_mean[channel]) + fresh * mean);
  out.new_running_variance[channel] = static_cast<float>(
      (1 - fresh) * static_cast<double>(out.running_variance[channel]) + fresh * unbiased);
}

template <typename T>
struct Normalization {
  const T* x;
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* spread;      ///< inv_std, or the variance.
  bool spread_is_variance;  ///< In inference.
  float epsilon;
  const T* residual;
  T* y;
  std::uint8_t* mask;

  __device__ float Scale(std::int64_t channel) const {
    const float value = spread[channel];
    return gamma[channel] * (spread_is_variance ? 1 / sqrtf(value + epsilon) : value);
  }
};

enum class Then : std::uint8_t { kNothing, kRelu, kAddAndRelu };

/// Goes from the last rows to the first: the last that were summed are still in the cache.
/// With a ReLU, kVector is 8, or 4 and the channels are a multiple of 8: two lanes make a byte of
/// the mask.
template <typename T, int kVector, Then kThen>
__global__ void __launch_bounds__(kTileThreads) Normalize(Normalization<T> n, Tiling tiling) {
  constexpr int kUnroll = kThen == Then::kAddAndRelu ? 2 : 4;
  const Place<kVector> place(tiling, blockIdx.x);
  float mean[kVector] = {};
  float scale[kVector] = {};
  float beta[kVector] = {};
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    if (!place.active) break;
    mean[k] = n.mean[place.channel + k];
    scale[k] = n.Scale(place.channel + k);
    beta[k] = n.beta[place.channel + k];
  }
  const std::int64_t begin = (gridDim.y - 1 - blockIdx.y) * tiling.chunk;
  const std::int64_t end = min(begin + tiling.chunk, tiling.rows);
  // Of the block, so that whole warps stay together.
  const int round = kUnroll * place.step;
  for (std::int64_t base = begin + (end - 1 - begin) / round * round; base >= begin;
       base -= round) {
    Raw<T, kVector> raws[kUnroll] = {};
    Raw<T, kVector> residuals[kUnroll] = {};
    const std::int64_t row = base + place.y;
    const std::int64_t first = row * tiling.channels + place.channel;
    const std::int64_t stride = place.step * tiling.channels;
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (!place.active || row + i * place.step >= end) continue;
      raws[i] = LoadRaw<kVector>(n.x + first + i * stride);
      if constexpr (kThen == Then::kAddAndRelu) {
        residuals[i] = LoadRaw<kVector>(n.residual + first + i * stride);
      }
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const bool valid = place.active && row + i * place.step < end;
      const std::int64_t at = first + i * stride;
      float values[kVector];
      Unpack<T, kVector>(raws[i], values);
#pragma unroll
      for (int k = 0; k < kVector; ++k) values[k] = (values[k] - mean[k]) * scale[k] + beta[k];
      if constexpr (kThen == Then::kAddAndRelu) {
        float others[kVector];
        Unpack<T, kVector>(residuals[i], others);
#pragma unroll
        for (int k = 0; k < kVector; ++k) values[k] += others[k];
      }
      if constexpr (kThen != Then::kNothing) {
        unsigned bits = 0;
#pragma unroll
        for (int k = 0; k < kVector; ++k) {
          const bool passes = !(values[k] <= 0.0F);
          bits |= static_cast<unsigned>(passes) << k;
          values[k] = passes ? values[k] : 0.0F;
        }
        if constexpr (kVector == 4) {
          bits |= __shfl_xor_sync(kAllLanes, bits, 1) << 4U;
          if (valid && place.x % 2 == 0) n.mask[at / 8] = static_cast<std::uint8_t>(bits);
        } else {
          if (valid) n.mask[at / 8] = static_cast<std::uint8_t>(bits);
        }
      }
      if (valid) Store(n.y + at, values);
    }
  }
}

/// The same with a ReLU for channels that are no multiple of 8, so that bytes of the mask have
/// elements of two rows: one element a thread, and a warp makes half a word.
template <typename T, bool kAdd>
__global__ void __launch_bounds__(kTileThreads)
    NormalizeFlat(Normalization<T> n, std::int64_t channels, std::int64_t count) {
  const std::int64_t padded = (count + 63) / 64 * 64;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kTileThreads;
  std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kTileThreads + threadIdx.x;
  std::int64_t channel = at % channels;
  const std::int64_t channel_step = stride % channels;
  for (; at < padded; at += stride) {  // The same for a whole warp.
    bool passes = false;
    if (at < count) {
      float value = (LoadOne(n.x + at) - n.mean[channel]) * n.Scale(channel) + n.beta[channel];
      if constexpr (kAdd) value += LoadOne(n.residual + at);
      passes = !(value <= 0.0F);
      StoreOne(n.y + at, passes ? value : 0.0F);
    }
    const unsigned bits = __ballot_sync(kAllLanes, passes);
    if (threadIdx.x % kWarp == 0) reinterpret_cast<std::uint32_t*>(n.mask)[at / kWarp] = bits;
    channel += channel_step;
    if (channel >= channels) channel -= channels;
  }
}

template <typename T>
void LaunchNormalize(const Normalization<T>& n, std::int64_t rows, std::int64_t channels,
                     cudaStream_t stream) {
  const bool add = n.residual != nullptr;
  const auto tile = [&](int vector) { return Tile(rows, channels, vector, kNormBlocks); };
  if (n.mask == nullptr) {
    WithVector<T>(channels, [&](auto vector) {
      const Tiling tiling = tile(vector);
      Normalize<T, vector(), Then::kNothing><<<tiling.grid(), kTileThreads, 0, stream>>>(n, tiling);
    });
  } else if (channels % 8 == 0) {
    constexpr int kVector = kFullVector<T>;
    const Tiling tiling = tile(kVector);
    if (add) {
      Normalize<T, kVector, Then::kAddAndRelu>
          <<<tiling.grid(), kTileThreads, 0, stream>>>(n, tiling);
    } else {
      Normalize<T, kVector, Then::kRelu><<<tiling.grid(), kTileThreads, 0, stream>>>(n, tiling);
    }
    // The words' last bytes, where there are as many.
    const std::int64_t used = rows * channels / 8;
    const std::int64_t bytes = (used + 7) / 8 * 8;
    if (bytes > used) {
      Check(cudaMemsetAsync(n.mask + used, 0, static_cast<std::size_t>(bytes - used), stream),
            "the end of a mask");
    }
  } else {
    const std::int64_t count = rows * channels;
    const auto blocks = static_cast<unsigned>(
        std::min<std::int64_t>(CeilDiv(count, kTileThreads), kProcessors * 32));
    if (add) {
      NormalizeFlat<T, true><<<blocks, kTileThreads, 0, stream>>>(n, channels, count);
    } else {
      NormalizeFlat<T, false><<<blocks, kTileThreads, 0, stream>>>(n, channels, count);
    }
  }
  CheckLaunch("batch_norm: normalize");
}

nn::Kernel PrepareStatistics(const nn::OpSpec& spec) {
  nn::RequireOperands(spec, 3, 4);
  const std::int64_t rows = nn::Rows(spec, spec.reads[0]);
  const std::int64_t channels = nn::Columns(spec, spec.reads[0]);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0]});
  for (const std::size_t i : {1, 2}) RequireFloats(spec, spec.reads[i], channels);
  for (const nn::Tensor& made : spec.writes) RequireFloats(spec, made, channels);
  const int vector =
      type == nn::ElementType::kFloat ? VectorOf<float>(channels) : VectorOf<Bfloat16>(channels);
  const Tiling tiling = Tile(rows, channels, vector, kSumBlocks);
  return {.workspace_bytes = tiling.chunks * (2 * channels * 4),
          .run = [=, a = spec.attributes](const exec::Launch& launch, const nn::StepScalars&) {
            const cudaStream_t stream = StreamOf(launch);
            auto* partials = Out<float>(launch, 4);
            WithType(type, [&](auto element) {
              using T = decltype(element);
              const T* x = In<T>(launch, 0);
              WithVector<T>(channels, [&](auto v) {
                Moments<T, v()><<<tiling.grid(), kTileThreads, 0, stream>>>(x, tiling, partials);
              });
              CheckLaunch("batch_norm: moments");
              FinishMoments<T><<<FinishBlocks(channels), kFinishThreads, 0, stream>>>(
                  x, partials, tiling, a.epsilon, a.momentum,
                  {.running_mean = In<float>(launch, 1),
                   .running_variance = In<float>(launch, 2),
                   .mean = Out<float>(launch, 0),
                   .inv_std = Out<float>(launch, 1),
                   .new_running_mean = Out<float>(launch, 2),
                   .new_running_variance = Out<float>(launch, 3)});
              CheckLaunch("batch_norm: statistics");
            });
          }};
}

/// In training, with or without a ReLU, and in inference.
nn::Kernel PrepareNormalize(const nn::OpSpec& spec) {
  const bool inference = spec.kind == nn::OpKind::kBatchNormInference;
  const bool relu = spec.kind == nn::OpKind::kBatchNormReluForward;
  const bool add = relu && spec.reads.size() == 6;
  nn::RequireOperands(spec, add ? 6 : 5, relu ? 2 : 1);
  const std::int64_t rows = nn::Rows(spec, spec.reads[0]);
  const std::int64_t channels = nn::Columns(spec, spec.reads[0]);
  const nn::ElementType type =
      ActivationType(spec, {&spec.reads[0], &spec.writes[0], &spec.reads[add ? 5 : 0]});
  nn::RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  if (add) nn::RequireShape(spec, spec.reads[5], spec.reads[0].shape);
  for (std::size_t i = 1; i < 5; ++i) RequireFloats(spec, spec.reads[i], channels);
  if (relu) {
    nn::RequireType(spec, spec.writes[1], nn::ElementType::kBit);
    nn::RequireCount(spec, spec.writes[1], rows * channels);
  }
  return {.run = [=, epsilon = spec.attributes.epsilon](const exec::Launch& launch,
                                                        const nn::StepScalars&) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      LaunchNormalize<T>({.x = In<T>(launch, 0),
                          .gamma = In<float>(launch, 1),
                          .beta = In<float>(launch, 2),
                          .mean = In<float>(launch, 3),
                          .spread = In<float>(launch, 4),
                          .spread_is_variance = inference,
                          .epsilon = epsilon,
                          .residual = add ? In<T>(launch, 5) : nullptr,
                          .y = Out<T>(launch, 0),
                          .mask = relu ? Out<std::uint8_t>(launch, 1) : nullptr},
                         rows, channels, StreamOf(launch));
    });
  }};
}

}  // namespace

nn::Kernel PrepareBatchNorm(const nn::OpSpec& spec) {
  switch (spec.kind) {
    case nn::OpKind::kBatchNormStatistics:
      return PrepareStatistics(spec);
    case nn::OpKind::kBatchNormNormalize:
    case nn::OpKind::kBatchNormReluForward:
    case nn::OpKind::kBatchNormInference:
      return PrepareNormalize(spec);
    default:
      return PrepareBatchNormBackward(spec);
  }
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/vectors.cuh"

/// Ops that make each element from those at the same place, with a mask of bits or without. Any of
/// them may run in place: a thread reads what it writes over before.
namespace plimsoll::cuda {

inline constexpr int kMapThreads = 256;

/// y = f(a, b), of as many of them as `kInputs` says; the others are 0.
template <typename T, int kInputs, typename Function>
__global__ void __launch_bounds__(kMapThreads)
    MapKernel(const T* a, const T* b, T* y, std::int64_t count, Function f) {
  constexpr int kVector = kFullVector<T>;
  constexpr int kUnroll = 4;
  const std::int64_t vectors = count / kVector;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (kMapThreads * kUnroll) + threadIdx.x;
  Raw<T, kVector> as[kUnroll] = {};
  Raw<T, kVector> bs[kUnroll] = {};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = first + i * kMapThreads;
    if (at >= vectors) continue;
    if constexpr (kInputs > 0) as[i] = LoadRaw<kVector>(a + at * kVector);
    if constexpr (kInputs > 1) bs[i] = LoadRaw<kVector>(b + at * kVector);
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = first + i * kMapThreads;
    if (at >= vectors) continue;
    float values[kVector];
    float others[kVector];
    Unpack<T, kVector>(as[i], values);
    Unpack<T, kVector>(bs[i], others);
#pragma unroll
    for (int k = 0; k < kVector; ++k) values[k] = f(values[k], others[k]);
    Store(y + at * kVector, values);
  }
  // The last few that fill no vector.
  const std::int64_t rest = vectors * kVector + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) {
    StoreOne(y + rest, f(kInputs > 0 ? LoadOne(a + rest) : 0, kInputs > 1 ? LoadOne(b + rest) : 0));
  }
}

template <int kInputs, typename T, typename Function>
void Map(const T* a, const T* b, T* y, std::int64_t count, Function f, cudaStream_t stream,
         const char* what) {
  const std::int64_t blocks =
      std::max<std::int64_t>(CeilDiv(count / kFullVector<T>, kMapThreads * 4), 1);
  MapKernel<T, kInputs, Function>
      <<<static_cast<unsigned>(blocks), kMapThreads, 0, stream>>>(a, b, y, count, f);
  CheckLaunch(what);
}

enum class Mask : std::uint8_t { kNone, kRead, kWritten };

/// Eight elements a thread, so that it has a byte of the mask. `f(values, bits, first)` changes the
/// values of elements `first` onwards and returns the bits; those that it gets are the mask's if
/// that is read. Of a mask that is written, bits beyond the last element are 0.
template <typename T, Mask kMask, typename Function>
__global__ void __launch_bounds__(kMapThreads)
    MapMaskedKernel(const T* x, T* y, const std::uint8_t* read, std::uint8_t* written,
                    std::int64_t count, std::int64_t bytes, Function f) {
  constexpr int kUnroll = sizeof(T) == 2 ? 4 : 2;
  const std::int64_t begin =
      static_cast<std::int64_t>(blockIdx.x) * (kMapThreads * kUnroll) + threadIdx.x;
  const std::int64_t whole = count / 8;
  Raw<T, 8> raws[kUnroll] = {};
  unsigned bits[kUnroll] = {};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = begin + i * kMapThreads;
    if (at < whole) raws[i] = LoadRaw<8>(x + 8 * at);
    if constexpr (kMask == Mask::kRead) {
      if (at < bytes) bits[i] = read[at];
    }
  }
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = begin + i * kMapThreads;
    if (at >= bytes) continue;
    const int valid = static_cast<int>(max(min(count - 8 * at, std::int64_t{8}), std::int64_t{0}));
    float values[8];
    Unpack<T, 8>(raws[i], values);
    if (valid < 8) {
      for (int k = 0; k < 8; ++k) values[k] = k < valid ? LoadOne(x + 8 * at + k) : 0;
    }
    const unsigned made = f(values, bits[i], 8 * at);
    if constexpr (kMask == Mask::kWritten) {
      written[at] = static_cast<std::uint8_t>(made & ((1U << valid) - 1U));
    }
    if (valid == 8) {
      Store(y + 8 * at, values);
    } else {
      for (int k = 0; k < valid; ++k) StoreOne(y + 8 * at + k, values[k]);
    }
  }
}

template <Mask kMask, typename T, typename Function>
void MapMasked(const T* x, T* y, const std::uint8_t* read, std::uint8_t* written,
               std::int64_t count, Function f, cudaStream_t stream, const char* what) {
  // A mask that is written is written in whole words.
  const std::int64_t bytes = kMask == Mask::kWritten ? CeilDiv(count, 64) * 8 : CeilDiv(count, 8);
  const std::int64_t blocks = CeilDiv(bytes, kMapThreads * (sizeof(T) == 2 ? 4 : 2));
  MapMaskedKernel<T, kMask, Function><<<static_cast<unsigned>(blocks), kMapThreads, 0, stream>>>(
      x, y, read, written, count, bytes, f);
  CheckLaunch(what);
}

/// x where its bit is set, times `scale`; else 0.
struct KeepMarked {
  float scale;
  __device__ unsigned operator()(float (&values)[8], unsigned bits, std::int64_t) const {
#pragma unroll
    for (int k = 0; k < 8; ++k) values[k] = (bits >> k & 1U) != 0 ? values[k] * scale : 0.0F;
    return bits;
  }
};

}  // namespace plimsoll::cuda

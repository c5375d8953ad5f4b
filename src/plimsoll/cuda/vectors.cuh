// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plimsoll/cuda/operands.h"

/// Several elements at once: loaded and stored as up to 16 bytes, computed with as floats.
namespace plimsoll::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

template <int kBytes>
struct BytesOf;
template <>
struct BytesOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BytesOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BytesOf<8> {
  using Type = uint2;
};
template <>
struct BytesOf<16> {
  using Type = uint4;
};
struct alignas(16) TwoUint4 {
  uint4 first;
  uint4 second;
};
template <>
struct BytesOf<32> {
  using Type = TwoUint4;
};

/// As many elements as 16 bytes have.
template <typename T>
inline constexpr int kFullVector = 16 / static_cast<int>(sizeof(T));

/// `kCount` elements as they are in memory.
template <typename T, int kCount>
using Raw = typename BytesOf<static_cast<int>(sizeof(T)) * kCount>::Type;

/// REQUIRES: `from` is aligned to the vector, or to 16 bytes if it is larger.
template <int kCount, typename T>
__device__ __forceinline__ Raw<T, kCount> LoadRaw(const T* from) {
  return *reinterpret_cast<const Raw<T, kCount>*>(from);
}

template <typename T, int kCount>
__device__ __forceinline__ void Unpack(const Raw<T, kCount>& raw, float (&values)[kCount]) {
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(values, &raw, sizeof(raw));
  } else if constexpr (kCount == 1) {
    values[0] = __uint_as_float(static_cast<std::uint32_t>(raw) << 16U);
  } else {
    std::uint32_t pairs[kCount / 2];
    std::memcpy(pairs, &raw, sizeof(raw));
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      values[2 * i] = __uint_as_float(pairs[i] << 16U);
      values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000U);
    }
  }
}

template <typename T, int kCount>
__device__ __forceinline__ void Load(const T* from, float (&values)[kCount]) {
  Unpack<T, kCount>(LoadRaw<kCount>(from), values);
}

/// Rounds to the nearest, to even of two that are as near.
template <typename T, int kCount>
__device__ __forceinline__ void Store(T* to, const float (&values)[kCount]) {
  Raw<T, kCount> raw;
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(&raw, values, sizeof(raw));
  } else if constexpr (kCount == 1) {
    raw = __bfloat16_as_ushort(__float2bfloat16_rn(values[0]));
  } else {
    std::uint32_t pairs[kCount / 2];
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
      std::memcpy(&pairs[i], &pair, 4);
    }
    std::memcpy(&raw, pairs, sizeof(raw));
  }
  *reinterpret_cast<Raw<T, kCount>*>(to) = raw;
}

template <typename T>
__device__ __forceinline__ float LoadOne(const T* from) {
  float value[1];
  Load(from, value);
  return value[0];
}
template <typename T>
__device__ __forceinline__ void StoreOne(T* to, float value) {
  const float values[1] = {value};
  Store(to, values);
}

/// `kCount` floats of a parameter at a multiple of 4 * kCount bytes, or of 16.
template <int kCount>
__device__ __forceinline__ void LoadFloats(const float* from, float (&values)[kCount]) {
  Load<float, kCount>(from, values);
}

/// Adds over a warp; all lanes get the same bits, as each adds the same two in each step.
template <typename Number>
__device__ __forceinline__ Number WarpSum(Number value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

}  // namespace plimsoll::cuda

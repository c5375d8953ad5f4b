// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// Functions of floats without branches, tables or calls, so that loops over them are vectorised.
/// Their polynomials are those of Cephes; errors are a few units in the last place.
namespace plimsoll::nn::onednn {

/// e to the x; 0 below -87.3, and the largest power that is finite above 88.3.
inline float Exp(float x) {
  constexpr float kLow = -87.33F;
  constexpr float kHigh = 88.37F;
  const float clamped = x < kLow ? kLow : (x > kHigh ? kHigh : x);
  // Adding this constant rounds to an integer, which is then in the lowest bits.
  constexpr float kRound = 12582912.0F;
  const float shifted = clamped * 1.44269504088896341F + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const std::uint32_t bits = (std::bit_cast<std::uint32_t>(shifted) << 23U) + 0x3f800000U;
  const float power = p * std::bit_cast<float>(bits);
  return x < kLow ? 0.0F : power;
}

/// Natural logarithm. REQUIRES: x is a positive normal number.
inline float Log(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t shifted = bits - 0x3f3504f3U;
  const float e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007fffffU) + 0x3f3504f3U) - 1.0F;
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  return (m + (p * m * z - 2.12194440e-4F * e - 0.5F * z)) + 0.693359375F * e;
}

inline float Sigmoid(float x) { return 1.0F / (1.0F + Exp(-x)); }

inline float Tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = p * z * x + x;
  const float large = 1.0F - 2.0F / (Exp(2.0F * x) + 1.0F);
  return z < 0.390625F ? small : large;
}

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plimsoll/cuda/elementwise.cuh"
#include "plimsoll/cuda/kernels.h"

/// Dropout whose random numbers are a function of the step's seed, the op's stream and the element,
/// so that a replay drops the same elements: the function of nn/onednn/dropout.cc, bit for bit.
namespace plimsoll::cuda {
namespace {

/// SplitMix64's finaliser.
__device__ std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A bijection of 32 bits with little bias (Wellons, "Prospecting for hash functions").
__device__ std::uint32_t Scramble(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x21f0aaadU;
  x = (x ^ (x >> 15U)) * 0xd35a2d97U;
  return x ^ (x >> 15U);
}

/// Keeps an element with a probability of 1 - threshold / 2^32.
struct Drop {
  Scalars scalars;
  std::uint64_t stream;
  std::uint32_t threshold;
  float scale;

  __device__ unsigned operator()(float (&values)[8], unsigned /*unused*/,
                                 std::int64_t first) const {
    const std::uint64_t key = Mix(Mix(scalars.Get().seed) ^ stream);
    // Elements beyond 2^32 are another stream.
    const auto element = static_cast<std::uint64_t>(first);
    const auto low = static_cast<std::uint32_t>(key) + static_cast<std::uint32_t>(element);
    const std::uint32_t high = static_cast<std::uint32_t>(key >> 32U) +
                               static_cast<std::uint32_t>(element >> 32U) * 0x9e3779b9U;
    unsigned bits = 0;
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      const bool kept = Scramble(Scramble(low + k) ^ high) >= threshold;
      bits |= static_cast<unsigned>(kept) << k;
      values[k] = kept ? values[k] * scale : 0.0F;
    }
    return bits;
  }
};

}  // namespace

nn::Kernel PrepareDropout(const nn::OpSpec& spec) {
  const bool forward = spec.kind == nn::OpKind::kDropoutForward;
  nn::RequireOperands(spec, forward ? 1 : 2, forward ? 2 : 1);
  const std::int64_t count = spec.reads[0].count();
  nn::RequireCount(spec, spec.writes[0], count);
  const nn::ElementType type = ActivationType(spec, {&spec.reads[0], &spec.writes[0]});
  const nn::Tensor& mask = forward ? spec.writes[1] : spec.reads[1];
  nn::RequireType(spec, mask, nn::ElementType::kBit);
  nn::RequireCount(spec, mask, count);
  const float rate = spec.attributes.rate;
  if (!(rate >= 0 && rate < 1)) nn::Refuse(spec, "the rate should be at least 0 and less than 1");
  const float scale = 1 / (1 - rate);
  const auto threshold = static_cast<std::uint32_t>(
      std::min(std::llround(static_cast<double>(rate) * 4294967296.0), 0xffffffffLL));
  return {.run = [=, stream = spec.attributes.stream](const exec::Launch& launch,
                                                      const nn::StepScalars& scalars) {
    WithType(type, [&](auto element) {
      using T = decltype(element);
      const T* x = In<T>(launch, 0);
      T* y = Out<T>(launch, 0);
      if (forward) {
        MapMasked<Mask::kWritten>(x, y, nullptr, Out<std::uint8_t>(launch, 1), count,
                                  Drop{Scalars(launch, scalars), stream, threshold, scale},
                                  StreamOf(launch), "dropout_forward");
      } else {
        MapMasked<Mask::kRead>(x, y, In<std::uint8_t>(launch, 1), nullptr, count, KeepMarked{scale},
                               StreamOf(launch), "dropout_backward");
      }
    });
  }};
}

}  // namespace plimsoll::cuda

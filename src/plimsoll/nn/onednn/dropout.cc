// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plimsoll/nn/onednn/bits.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

/// Dropout whose random numbers are a function of the step's seed, the op's stream and the element,
/// so that a replay drops the same elements.
namespace plimsoll::nn::onednn {
namespace {

/// SplitMix64's finaliser.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A bijection of 32 bits with little bias (Wellons, "Prospecting for hash functions"); 32 bits, as
/// vector units multiply those.
inline std::uint32_t Scramble(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x21f0aaadU;
  x = (x ^ (x >> 15U)) * 0xd35a2d97U;
  return x ^ (x >> 15U);
}

/// Bits of elements 64 `word` onwards: 1 with a probability of 1 - threshold / 2^32.
PLIMSOLL_VECTORIZED void Draw(std::uint64_t key, std::uint32_t threshold, std::int64_t begin,
                              std::int64_t end, std::uint64_t* mask) {
  alignas(64) std::uint8_t flags[kWordBits];
  for (std::int64_t word = begin; word < end; ++word) {
    // Elements beyond 2^32 are another stream.
    const auto element = static_cast<std::uint64_t>(word) * kWordBits;
    const auto low = static_cast<std::uint32_t>(key) + static_cast<std::uint32_t>(element);
    const std::uint32_t high = static_cast<std::uint32_t>(key >> 32U) +
                               static_cast<std::uint32_t>(element >> 32U) * 0x9e3779b9U;
#pragma omp simd
    for (int i = 0; i < kWordBits; ++i) {
      const std::uint32_t random = Scramble(Scramble(low + static_cast<std::uint32_t>(i)) ^ high);
      flags[i] = random >= threshold ? 1 : 0;
    }
    mask[word] = PackWord(flags);
  }
}

}  // namespace

Kernel PrepareDropout(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kDropoutForward;
  RequireOperands(spec, forward ? 1 : 2, forward ? 2 : 1);
  const std::int64_t count = spec.reads[0].count();
  RequireCount(spec, spec.writes[0], count);
  const Tensor& mask = forward ? spec.writes[1] : spec.reads[1];
  RequireType(spec, mask, ElementType::kBit);
  RequireCount(spec, mask, count);
  const float rate = spec.attributes.rate;
  if (!(rate >= 0 && rate < 1)) Refuse(spec, "the rate should be at least 0 and less than 1");
  const float scale = 1 / (1 - rate);
  const auto threshold = static_cast<std::uint32_t>(
      std::min(std::llround(static_cast<double>(rate) * 4294967296.0), 0xffffffffLL));
  const Partition partition = Cut(count, kLeastFloats / 2, kWordBits);
  return {.run = [=, stream = spec.attributes.stream](const exec::Launch& launch,
                                                      const StepScalars& scalars) {
    const std::uint64_t key = Mix(Mix(scalars.seed) ^ stream);
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      const std::uint64_t* bits = forward ? WriteBits(launch, 1) : ReadBits(launch, 1);
      if (forward) {
        const std::int64_t words_end = (end + kWordBits - 1) / kWordBits;
        Draw(key, threshold, begin / kWordBits, words_end, WriteBits(launch, 1));
        if (end % kWordBits != 0) {  // Only at the very end: nothing is left undefined.
          WriteBits(launch, 1)[words_end - 1] &= ~0ULL >> (kWordBits - end % kWordBits);
        }
      }
      KeepMarked(Read(launch, 0) + begin, bits + begin / kWordBits, scale, Write(launch, 0) + begin,
                 end - begin);
    });
  }};
}

}  // namespace plimsoll::nn::onednn

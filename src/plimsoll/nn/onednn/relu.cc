// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/onednn/bits.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

/// Passes what is not negative, and what is not a number, so that it is seen.
PLIMSOLL_VECTORIZED void Rectify(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

PLIMSOLL_VECTORIZED void RectifyAndMark(const float* x, float* y, std::uint64_t* mask,
                                        std::int64_t count) {
  alignas(64) std::uint8_t flags[kWordBits];
  const std::int64_t words = count / kWordBits;
  for (std::int64_t word = 0; word < words; ++word, x += kWordBits, y += kWordBits) {
#pragma omp simd
    for (int i = 0; i < kWordBits; ++i) flags[i] = x[i] <= 0.0F ? 0 : 1;
#pragma omp simd
    for (int i = 0; i < kWordBits; ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
    mask[word] = PackWord(flags);
  }
  const std::int64_t rest = count - words * kWordBits;
  if (rest == 0) return;
  std::fill_n(flags, kWordBits, std::uint8_t{0});
  for (std::int64_t i = 0; i < rest; ++i) {
    flags[i] = x[i] <= 0.0F ? 0 : 1;
    y[i] = x[i] <= 0.0F ? 0.0F : x[i];
  }
  mask[words] = PackWord(flags);
}

/// A bit for each of 32 lanes.
alignas(64) constexpr std::uint32_t kLane[32] = {
    1U << 0,  1U << 1,  1U << 2,  1U << 3,  1U << 4,  1U << 5,  1U << 6,  1U << 7,
    1U << 8,  1U << 9,  1U << 10, 1U << 11, 1U << 12, 1U << 13, 1U << 14, 1U << 15,
    1U << 16, 1U << 17, 1U << 18, 1U << 19, 1U << 20, 1U << 21, 1U << 22, 1U << 23,
    1U << 24, 1U << 25, 1U << 26, 1U << 27, 1U << 28, 1U << 29, 1U << 30, 1U << 31};

}  // namespace

PLIMSOLL_VECTORIZED void KeepMarked(const float* x, const std::uint64_t* mask, float scale,
                                    float* y, std::int64_t count) {
  const std::int64_t words = count / kWordBits;
  for (std::int64_t word = 0; word < words; ++word) {
    for (unsigned half = 0; half < 2; ++half, x += 32, y += 32) {
      const auto bits = static_cast<std::uint32_t>(mask[word] >> (32 * half));
#pragma omp simd
      for (int i = 0; i < 32; ++i) y[i] = (bits & kLane[i]) != 0 ? x[i] * scale : 0.0F;
    }
  }
  for (std::int64_t i = 0; i < count - words * kWordBits; ++i) {
    y[i] = (mask[words] >> static_cast<unsigned>(i) & 1U) != 0 ? x[i] * scale : 0.0F;
  }
}

Kernel PrepareRelu(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kReluForward;
  RequireOperands(spec, forward ? 1 : 2, 1, forward ? 2 : 1);
  RequireCount(spec, spec.writes[0], spec.reads[0].count());
  const bool masked = spec.writes.size() == 2;
  if (masked || !forward) {
    const Tensor& mask = forward ? spec.writes[1] : spec.reads[1];
    RequireType(spec, mask, ElementType::kBit);
    RequireCount(spec, mask, spec.reads[0].count());
  }
  const Partition partition = Cut(spec.reads[0].count(), kLeastFloats, kWordBits);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      const float* x = Read(launch, 0) + begin;
      float* y = Write(launch, 0) + begin;
      if (!forward) {
        KeepMarked(x, ReadBits(launch, 1) + begin / kWordBits, 1, y, end - begin);
      } else if (masked) {
        RectifyAndMark(x, y, WriteBits(launch, 1) + begin / kWordBits, end - begin);
      } else {
        Rectify(x, y, end - begin);
      }
    });
  }};
}

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plimsoll/exec/device.h"

/// How kernels of our own are spread over threads and vectors: work is cut into parts when the
/// kernel is prepared, and sums are taken within parts and then over parts in their order, so that
/// it does not matter to the result how many threads turn up.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLIMSOLL_ONE_THREAD 1
#endif
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define PLIMSOLL_ONE_CLONE 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PLIMSOLL_ONE_THREAD 1
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__) || \
    !defined(__linux__)
#define PLIMSOLL_ONE_CLONE 1
#endif

/// Marks a loop that is compiled once for each kind of vector unit; the right one is taken when the
/// program is loaded. Sanitizers are not up yet at that time.
#if defined(PLIMSOLL_ONE_CLONE)
#define PLIMSOLL_VECTORIZED
#elif defined(__clang__)
#define PLIMSOLL_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PLIMSOLL_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

namespace plimsoll::nn::onednn {

/// No kernel is cut into more parts, so that a few numbers per part fit on the stack.
inline constexpr int kMaxParts = 128;

/// `count` items in `parts` runs of nearly equal length, each but the last a multiple of `grain`.
struct Partition {
  std::int64_t count = 0;
  std::int64_t grain = 1;
  int parts = 1;

  std::int64_t begin(int part) const {
    const std::int64_t grains = (count + grain - 1) / grain;
    return std::min(count, grains * part / parts * grain);
  }
  std::int64_t end(int part) const { return begin(part + 1); }
};

/// Cuts `count` items so that a part has about `least` of them or more, and there are no more parts
/// than threads.
inline Partition Cut(std::int64_t count, std::int64_t least, std::int64_t grain = 1) {
  const std::int64_t threads = std::clamp(omp_get_max_threads(), 1, kMaxParts);
  const std::int64_t parts =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(least, 1), 1, threads);
  return {count, grain, static_cast<int>(parts)};
}

/// Least number of floats for which a second thread is woken up.
inline constexpr std::int64_t kLeastFloats = 8192;

/// Calls `body(part, begin, end)` for every part.
template <typename Body>
void ForParts(const Partition& partition, const Body& body) {
#if !defined(PLIMSOLL_ONE_THREAD)
#pragma omp parallel for schedule(static, 1) num_threads(partition.parts) if (partition.parts > 1)
#endif
  for (int part = 0; part < partition.parts; ++part) {
    body(part, partition.begin(part), partition.end(part));
  }
}

/// The operands of a launch, as floats.
inline const float* Read(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<const float*>(launch.reads[index]);
}
inline float* Write(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<float*>(launch.writes[index]);
}
inline const std::int32_t* ReadInts(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<const std::int32_t*>(launch.reads[index]);
}
inline const std::uint64_t* ReadBits(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<const std::uint64_t*>(launch.reads[index]);
}
inline std::uint64_t* WriteBits(const exec::Launch& launch, std::size_t index) {
  return reinterpret_cast<std::uint64_t*>(launch.writes[index]);
}

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/onednn/loops.h"

namespace plimsoll::nn {
namespace {

/// So many multiplications and additions for each float take about as long as to fetch it: copies
/// disturb kernels by the memory that they read and write, and by the processor that they take.
constexpr int kSteps = 32;

PLIMSOLL_VECTORIZED void Mix(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    float value = x[i];
    for (int step = 0; step < kSteps; ++step) value = value * 0.5F + 0.25F;
    y[i] = value;
  }
}

}  // namespace

std::function<void(void*)> MakeHostTraffic(std::byte* memory, Bytes size_bytes) {
  const Bytes count = size_bytes / static_cast<Bytes>(2 * sizeof(float));
  const auto floats = reinterpret_cast<float*>(memory);
  const onednn::Partition partition = onednn::Cut(count, onednn::kLeastFloats);
  return [=](void* /*native_stream*/) {
    onednn::ForParts(partition, [&](int /*part*/, std::int64_t begin, std::int64_t end) {
      Mix(floats + count + begin, floats + begin, end - begin);
    });
  };
}

}  // namespace plimsoll::nn

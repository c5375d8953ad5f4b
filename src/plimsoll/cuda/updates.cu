// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/kernels.h"
#include "plimsoll/cuda/vectors.cuh"

/// Updates of many parameters in one launch: a table of pointers is the kernel's parameter, and a
/// block finds its parameter in it by its number.
namespace plimsoll::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kVector = kFullVector<float>;
constexpr int kUnroll = 2;
/// Floats of a block.
constexpr std::int64_t kChunk = kThreads * kVector * kUnroll;

/// One parameter; outputs may be the inputs of that name. v is AdamW's alone.
struct Slices {
  const float* w;
  const float* g;
  const float* m;
  const float* v;
  float* new_w;
  float* new_m;
  float* new_v;
  std::int64_t count;
};

/// Parameters of a kernel are at most 32764 bytes; small tables fit in the 4 KB that launch
/// fastest.
template <int kSize>
struct Table {
  Slices slices[kSize];
  unsigned first_block[kSize + 1];  ///< Of each, and behind the last.
  int count;
};
constexpr int kSmallTable = 48;
constexpr int kLargeTable = 448;
static_assert(sizeof(Table<kSmallTable>) < 4000 && sizeof(Table<kLargeTable>) < 32000);

struct Settings {
  float momentum;
  float decay;
  float beta1;
  float beta2;
  float epsilon;
};

struct SgdStep {
  static constexpr bool kHasV = false;
  float momentum;
  float decay;
  float rate;

  __device__ void operator()(float& w, float g, float& m, float& /*unused*/) const {
    m = momentum * m + g + decay * w;
    w = w - rate * m;
  }
};

/// Rates of AdamW that are corrected for the bias of a step; by doubles, as on the host.
struct AdamStep {
  static constexpr bool kHasV = true;
  float beta1;
  float beta2;
  float keep;        ///< 1 - rate * decay.
  float rate;        ///< Of the step, corrected for the bias of m.
  float correction;  ///< 1 / sqrt(1 - beta2^step).
  float epsilon;

  __device__ void operator()(float& w, float g, float& m, float& v) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w = keep * w - rate * m / (sqrtf(v) * correction + epsilon);
  }
};

__device__ double Power(double base, std::int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) power *= base;
  }
  return power;
}

/// Makes the step of a block; those of AdamW on one thread, for all. Every thread calls it.
template <typename Step>
__device__ Step StepOf(const Settings& settings, const Scalars& scalars) {
  if constexpr (!Step::kHasV) {
    return {settings.momentum, settings.decay, scalars.Get().learning_rate};
  } else {
    __shared__ Step shared;
    if (threadIdx.x == 0) {
      const nn::StepScalars now = scalars.Get();
      const auto rate = static_cast<double>(now.learning_rate);
      const double bias1 = 1 - Power(static_cast<double>(settings.beta1), now.step);
      const double bias2 = 1 - Power(static_cast<double>(settings.beta2), now.step);
      shared = {.beta1 = settings.beta1,
                .beta2 = settings.beta2,
                .keep = static_cast<float>(1 - rate * static_cast<double>(settings.decay)),
                .rate = static_cast<float>(rate / bias1),
                .correction = static_cast<float>(1 / sqrt(bias2)),
                .epsilon = settings.epsilon};
    }
    __syncthreads();
    return shared;
  }
}

template <typename Step, int kSize>
__global__ void __launch_bounds__(kThreads)
    Update(__grid_constant__ const Table<kSize> table, Settings settings, Scalars scalars) {
  // The last parameter whose first block is not behind this.
  int low = 0;
  int high = table.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_block[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const Slices& s = table.slices[low];
  const std::int64_t begin = (blockIdx.x - table.first_block[low]) * kChunk;
  const auto position = [&](int i) {
    return begin + (static_cast<std::int64_t>(i) * kThreads + threadIdx.x) * kVector;
  };
  float w[kUnroll][kVector] = {};
  float g[kUnroll][kVector] = {};
  float m[kUnroll][kVector] = {};
  float v[kUnroll][kVector] = {};
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = position(i);
    if (at + kVector <= s.count) {
      Load(s.w + at, w[i]);
      Load(s.g + at, g[i]);
      Load(s.m + at, m[i]);
      if constexpr (Step::kHasV) Load(s.v + at, v[i]);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        if (at + k >= s.count) break;
        w[i][k] = s.w[at + k];
        g[i][k] = s.g[at + k];
        m[i][k] = s.m[at + k];
        if constexpr (Step::kHasV) v[i][k] = s.v[at + k];
      }
    }
  }
  // After the loads, which take longer.
  const Step step = StepOf<Step>(settings, scalars);
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    const std::int64_t at = position(i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) step(w[i][k], g[i][k], m[i][k], v[i][k]);
    if (at + kVector <= s.count) {
      Store(s.new_w + at, w[i]);
      Store(s.new_m + at, m[i]);
      if constexpr (Step::kHasV) Store(s.new_v + at, v[i]);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        if (at + k >= s.count) break;
        s.new_w[at + k] = w[i][k];
        s.new_m[at + k] = m[i][k];
        if constexpr (Step::kHasV) s.new_v[at + k] = v[i][k];
      }
    }
  }
}

template <typename Step, int kSize>
void LaunchTables(const std::vector<Slices>& all, const Settings& settings, const Scalars& scalars,
                  cudaStream_t stream) {
  for (std::size_t begin = 0; begin < all.size(); begin += kSize) {
    Table<kSize> table{};
    table.count = static_cast<int>(std::min<std::size_t>(all.size() - begin, kSize));
    for (int i = 0; i < table.count; ++i) {
      table.slices[i] = all[begin + static_cast<std::size_t>(i)];
      table.first_block[i + 1] =
          table.first_block[i] + static_cast<unsigned>(CeilDiv(table.slices[i].count, kChunk));
    }
    Update<Step, kSize>
        <<<table.first_block[table.count], kThreads, 0, stream>>>(table, settings, scalars);
    CheckLaunch("update");
  }
}

template <typename Step>
void Launch(const std::vector<Slices>& all, const Settings& settings, const Scalars& scalars,
            cudaStream_t stream) {
  if (all.size() == 1) return LaunchTables<Step, 1>(all, settings, scalars, stream);
  if (all.size() <= kSmallTable) {
    return LaunchTables<Step, kSmallTable>(all, settings, scalars, stream);
  }
  LaunchTables<Step, kLargeTable>(all, settings, scalars, stream);
}

}  // namespace

nn::Kernel PrepareUpdate(const nn::OpSpec& spec) {
  const bool adam = spec.kind == nn::OpKind::kAdamWUpdate;
  const std::size_t reads = adam ? 4 : 3;
  const std::size_t writes = reads - 1;
  const std::size_t groups = std::max<std::size_t>(spec.reads.size() / reads, 1);
  nn::RequireOperands(spec, groups * reads, groups * writes);
  std::vector<std::int64_t> counts;
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    counts.push_back(spec.reads[i * reads].count());
    for (std::size_t j = 0; j < reads; ++j) {
      RequireFloats(spec, spec.reads[i * reads + j], counts.back());
      if (j < writes) RequireFloats(spec, spec.writes[i * writes + j], counts.back());
    }
    blocks += CeilDiv(counts.back(), kChunk);
  }
  if (blocks >= 1LL << 31) nn::Refuse(spec, "there are too many parameters");
  const nn::Attributes& a = spec.attributes;
  const Settings settings{.momentum = a.momentum,
                          .decay = a.weight_decay,
                          .beta1 = a.beta1,
                          .beta2 = a.beta2,
                          .epsilon = a.epsilon};
  return {.run = [=](const exec::Launch& launch, const nn::StepScalars& step) {
    std::vector<Slices> all;
    all.reserve(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all.push_back({.w = In<float>(launch, i * reads),
                     .g = In<float>(launch, i * reads + 1),
                     .m = In<float>(launch, i * reads + 2),
                     .v = adam ? In<float>(launch, i * reads + 3) : nullptr,
                     .new_w = Out<float>(launch, i * writes),
                     .new_m = Out<float>(launch, i * writes + 1),
                     .new_v = adam ? Out<float>(launch, i * writes + 2) : nullptr,
                     .count = counts[i]});
    }
    const Scalars scalars(launch, step);
    if (adam) {
      Launch<AdamStep>(all, settings, scalars, StreamOf(launch));
    } else {
      Launch<SgdStep>(all, settings, scalars, StreamOf(launch));
    }
  }};
}

}  // namespace plimsoll::cuda

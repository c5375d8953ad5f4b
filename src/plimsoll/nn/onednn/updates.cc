// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

/// Where a range of an update reads and writes; outputs may be the inputs of that name.
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

PLIMSOLL_VECTORIZED void Sgd(const Slices& slices, float momentum, float decay, float rate) {
  const Slices s = slices;
#pragma omp simd
  for (std::int64_t i = 0; i < s.count; ++i) {
    const float m = momentum * s.m[i] + s.g[i] + decay * s.w[i];
    s.new_m[i] = m;
    s.new_w[i] = s.w[i] - rate * m;
  }
}

struct AdamScalars {
  float beta1;
  float beta2;
  float keep;        ///< 1 - rate * decay.
  float rate;        ///< Of the step, corrected for the bias of m.
  float correction;  ///< 1 / sqrt(1 - beta2^step).
  float epsilon;
};

PLIMSOLL_VECTORIZED void Adam(const Slices& slices, const AdamScalars& scalars) {
  const Slices s = slices;
  const AdamScalars c = scalars;
#pragma omp simd
  for (std::int64_t i = 0; i < s.count; ++i) {
    const float g = s.g[i];
    const float m = c.beta1 * s.m[i] + (1 - c.beta1) * g;
    const float v = c.beta2 * s.v[i] + (1 - c.beta2) * g * g;
    s.new_m[i] = m;
    s.new_v[i] = v;
    s.new_w[i] = c.keep * s.w[i] - c.rate * m / (std::sqrt(v) * c.correction + c.epsilon);
  }
}

AdamScalars ScalarsOf(const Attributes& attributes, const StepScalars& scalars) {
  const auto step = static_cast<double>(scalars.step);
  const auto rate = static_cast<double>(scalars.learning_rate);
  const double bias1 = 1 - std::pow(static_cast<double>(attributes.beta1), step);
  const double bias2 = 1 - std::pow(static_cast<double>(attributes.beta2), step);
  return {.beta1 = attributes.beta1,
          .beta2 = attributes.beta2,
          .keep = static_cast<float>(1 - rate * static_cast<double>(attributes.weight_decay)),
          .rate = static_cast<float>(rate / bias1),
          .correction = static_cast<float>(1 / std::sqrt(bias2)),
          .epsilon = attributes.epsilon};
}

}  // namespace

Kernel PrepareUpdate(const OpSpec& spec) {
  const bool adam = spec.kind == OpKind::kAdamWUpdate;
  RequireOperands(spec, adam ? 4 : 3, adam ? 3 : 2);
  const std::int64_t count = spec.reads[0].count();
  for (const auto* list : {&spec.reads, &spec.writes}) {
    for (const Tensor& tensor : *list) RequireCount(spec, tensor, count);
  }
  const Partition partition = Cut(count, kLeastFloats, 16);
  return {.run = [=, attributes = spec.attributes](const exec::Launch& launch,
                                                   const StepScalars& scalars) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      const Slices slices{.w = Read(launch, 0) + begin,
                          .g = Read(launch, 1) + begin,
                          .m = Read(launch, 2) + begin,
                          .v = adam ? Read(launch, 3) + begin : nullptr,
                          .new_w = Write(launch, 0) + begin,
                          .new_m = Write(launch, 1) + begin,
                          .new_v = adam ? Write(launch, 2) + begin : nullptr,
                          .count = end - begin};
      if (adam) {
        Adam(slices, ScalarsOf(attributes, scalars));
      } else {
        Sgd(slices, attributes.momentum, attributes.weight_decay, scalars.learning_rate);
      }
    });
  }};
}

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/vector_math.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

PLIMSOLL_VECTORIZED float Largest(const float* row, std::int64_t count) {
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = row[i] > largest ? row[i] : largest;
  return largest;
}

/// Writes e^(x - largest) and returns the sum.
PLIMSOLL_VECTORIZED float Exponentials(const float* x, float largest, float* y,
                                       std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = Exp(x[i] - largest);
    sum += y[i];
  }
  return sum;
}

PLIMSOLL_VECTORIZED void Multiply(const float* x, float factor, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

/// Counts labels that are not negative. Throws Error if one is no class.
std::int64_t CountLabels(const std::int32_t* labels, std::int64_t rows, std::int64_t classes) {
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (labels[row] >= classes) {
      throw Error(
          fmt::format("label {} of row {} is not one of {} classes", labels[row], row, classes));
    }
    if (labels[row] >= 0) ++counted;
  }
  return counted;
}

struct Sizes {
  std::int64_t rows;
  std::int64_t classes;
  Partition partition;  ///< Of rows.
};

void RunForward(const Sizes& sizes, const exec::Launch& launch) {
  const std::int32_t* labels = ReadInts(launch, 1);
  const std::int64_t counted = CountLabels(labels, sizes.rows, sizes.classes);
  std::array<double, kMaxParts> losses{};
  ForParts(sizes.partition, [&](int part, std::int64_t begin, std::int64_t end) {
    double loss = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = Read(launch, 0) + row * sizes.classes;
      float* y = Write(launch, 0) + row * sizes.classes;
      const float largest = Largest(x, sizes.classes);
      // Before x is written over, if it is.
      const float at_label = labels[row] >= 0 ? x[labels[row]] : 0.0F;
      const float sum = Exponentials(x, largest, y, sizes.classes);
      Multiply(y, 1 / sum, y, sizes.classes);
      if (labels[row] >= 0) {
        loss += std::log(static_cast<double>(sum)) + static_cast<double>(largest) -
                static_cast<double>(at_label);
      }
    }
    losses[static_cast<std::size_t>(part)] = loss;
  });
  double loss = 0;
  for (int part = 0; part < sizes.partition.parts; ++part) {
    loss += losses[static_cast<std::size_t>(part)];
  }
  Write(launch, 1)[0] = counted > 0 ? static_cast<float>(loss / static_cast<double>(counted)) : 0;
}

void RunBackward(const Sizes& sizes, const exec::Launch& launch) {
  const std::int32_t* labels = ReadInts(launch, 1);
  const std::int64_t counted = CountLabels(labels, sizes.rows, sizes.classes);
  const float factor = counted > 0 ? 1 / static_cast<float>(counted) : 0.0F;
  ForParts(sizes.partition, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* dx = Write(launch, 0) + row * sizes.classes;
      if (labels[row] < 0) {
        std::fill_n(dx, sizes.classes, 0.0F);
        continue;
      }
      Multiply(Read(launch, 0) + row * sizes.classes, factor, dx, sizes.classes);
      dx[labels[row]] -= factor;
    }
  });
}

void RunCount(const Sizes& sizes, const exec::Launch& launch) {
  const std::int32_t* labels = ReadInts(launch, 1);
  CountLabels(labels, sizes.rows, sizes.classes);
  std::int64_t correct = 0;
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    if (labels[row] < 0) continue;
    const float* x = Read(launch, 0) + row * sizes.classes;
    const float at_label = x[labels[row]];
    bool largest = true;
    // Of several that are largest, the first is taken.
    for (std::int64_t i = 0; i < sizes.classes; ++i) {
      if (x[i] > at_label || (x[i] == at_label && i < labels[row])) largest = false;
    }
    if (largest && at_label == at_label) ++correct;
  }
  Write(launch, 0)[0] = static_cast<float>(correct);
}

}  // namespace

Kernel PrepareSoftmaxLoss(const OpSpec& spec) {
  const OpKind kind = spec.kind;
  RequireOperands(spec, 2, kind == OpKind::kSoftmaxLossForward ? 2 : 1);
  const std::int64_t rows = Rows(spec, spec.reads[0]);
  const std::int64_t classes = Columns(spec, spec.reads[0]);
  RequireType(spec, spec.reads[1], ElementType::kInt);
  RequireCount(spec, spec.reads[1], rows);
  if (kind == OpKind::kCountCorrect) {
    RequireCount(spec, spec.writes[0], 1);
  } else {
    RequireCount(spec, spec.writes[0], rows * classes);
  }
  if (kind == OpKind::kSoftmaxLossForward) RequireCount(spec, spec.writes[1], 1);
  const Sizes sizes{rows, classes, Cut(rows, kLeastFloats / 4 / classes + 1)};
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    if (kind == OpKind::kSoftmaxLossForward) {
      RunForward(sizes, launch);
    } else if (kind == OpKind::kSoftmaxLossBackward) {
      RunBackward(sizes, launch);
    } else {
      RunCount(sizes, launch);
    }
  }};
}

}  // namespace plimsoll::nn::onednn

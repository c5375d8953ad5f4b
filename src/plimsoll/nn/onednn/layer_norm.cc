// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

/// Layer norm: the mean and variance of every row.
namespace plimsoll::nn::onednn {
namespace {

PLIMSOLL_VECTORIZED float Sum(const float* x, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

PLIMSOLL_VECTORIZED float SumOfSquares(const float* x, float mean, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

PLIMSOLL_VECTORIZED void Normalize(const float* x, float mean, float inv_std, const float* gamma,
                                   const float* beta, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = (x[i] - mean) * inv_std * gamma[i] + beta[i];
}

/// Two sums over a row: of dy * gamma, and of that times the normalized x. Adds the row's share to
/// the gradients of gamma and beta on the way.
struct RowSums {
  float plain = 0;
  float weighted = 0;
};
PLIMSOLL_VECTORIZED RowSums SumRow(const float* x, const float* dy, const float* gamma, float mean,
                                   float inv_std, float* dgamma, float* dbeta, std::int64_t count) {
  float plain = 0;
  float weighted = 0;
#pragma omp simd reduction(+ : plain, weighted)
  for (std::int64_t i = 0; i < count; ++i) {
    const float normal = (x[i] - mean) * inv_std;
    const float slope = dy[i] * gamma[i];
    dgamma[i] += dy[i] * normal;
    dbeta[i] += dy[i];
    plain += slope;
    weighted += slope * normal;
  }
  return {plain, weighted};
}

PLIMSOLL_VECTORIZED void Gradient(const float* x, const float* dy, const float* gamma, float mean,
                                  float inv_std, RowSums means, float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float normal = (x[i] - mean) * inv_std;
    dx[i] = inv_std * (dy[i] * gamma[i] - means.plain - normal * means.weighted);
  }
}

void RunForward(const Partition& partition, std::int64_t columns, float epsilon,
                const exec::Launch& launch) {
  ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = Read(launch, 0) + row * columns;
      const float mean = Sum(x, columns) / static_cast<float>(columns);
      const float variance = SumOfSquares(x, mean, columns) / static_cast<float>(columns);
      const float inv_std = 1 / std::sqrt(variance + epsilon);
      Normalize(x, mean, inv_std, Read(launch, 1), Read(launch, 2),
                Write(launch, 0) + row * columns, columns);
      if (launch.writes.size() < 3) continue;
      Write(launch, 1)[row] = mean;
      Write(launch, 2)[row] = inv_std;
    }
  });
}

/// The workspace holds a row for each part and gradient.
void RunBackward(const Partition& partition, std::int64_t columns, const exec::Launch& launch) {
  float* workspace = Write(launch, 3);
  ForParts(partition, [&](int part, std::int64_t begin, std::int64_t end) {
    float* dgamma = workspace + part * (2 * columns);
    float* dbeta = dgamma + columns;
    std::fill_n(dgamma, 2 * columns, 0.0F);
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = Read(launch, 0) + row * columns;
      const float* dy = Read(launch, 1) + row * columns;
      const float mean = Read(launch, 3)[row];
      const float inv_std = Read(launch, 4)[row];
      RowSums sums = SumRow(x, dy, Read(launch, 2), mean, inv_std, dgamma, dbeta, columns);
      sums.plain /= static_cast<float>(columns);
      sums.weighted /= static_cast<float>(columns);
      Gradient(x, dy, Read(launch, 2), mean, inv_std, sums, Write(launch, 0) + row * columns,
               columns);
    }
  });
  for (std::int64_t i = 0; i < columns; ++i) {
    double dgamma = 0;
    double dbeta = 0;
    for (int part = 0; part < partition.parts; ++part) {
      dgamma += static_cast<double>(workspace[part * (2 * columns) + i]);
      dbeta += static_cast<double>(workspace[part * (2 * columns) + columns + i]);
    }
    Write(launch, 1)[i] = static_cast<float>(dgamma);
    Write(launch, 2)[i] = static_cast<float>(dbeta);
  }
}

}  // namespace

Kernel PrepareLayerNorm(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kLayerNormForward;
  RequireOperands(spec, forward ? 3 : 5, forward ? 1 : 3, 3);
  const std::int64_t rows = Rows(spec, spec.reads[0]);
  const std::int64_t columns = Columns(spec, spec.reads[0]);
  RequireShape(spec, spec.writes[0], spec.reads[0].shape);
  const Partition partition = Cut(rows, kLeastFloats / columns + 1);
  if (forward) {
    if (spec.writes.size() == 2) Refuse(spec, "mean and inv_std are both there, or neither");
    for (std::size_t i = 1; i < 3; ++i) RequireCount(spec, spec.reads[i], columns);
    for (std::size_t i = 1; i < spec.writes.size(); ++i) {
      RequireCount(spec, spec.writes[i], rows);
    }
    return {.run = [=, epsilon = spec.attributes.epsilon](const exec::Launch& launch,
                                                          const StepScalars&) {
      RunForward(partition, columns, epsilon, launch);
    }};
  }
  RequireShape(spec, spec.reads[1], spec.reads[0].shape);
  RequireCount(spec, spec.reads[2], columns);
  for (std::size_t i = 3; i < 5; ++i) RequireCount(spec, spec.reads[i], rows);
  for (std::size_t i = 1; i < 3; ++i) RequireCount(spec, spec.writes[i], columns);
  return {.workspace_bytes = partition.parts * (2 * columns * 4),
          .run = [=](const exec::Launch& launch, const StepScalars&) {
            RunBackward(partition, columns, launch);
          }};
}

}  // namespace plimsoll::nn::onednn

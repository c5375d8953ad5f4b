// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/vector_math.h"
#include "plimsoll/nn/op_check.h"

/// Local response normalization across channels. With s the sum of squares over a window of
/// channels and d = k + alpha / size * s:
///
///     y_i = x_i d_i^-beta
///     dx_i = dy_i d_i^-beta - 2 alpha beta / size x_i sum of dy_j x_j d_j^(-beta - 1)
///
/// the last sum over all channels j whose window has i in it.
namespace plimsoll::nn::onednn {
namespace {

struct Sizes {
  std::int64_t channels = 0;
  std::int64_t before = 0;  ///< Channels of a window before its own.
  std::int64_t after = 0;
  float scale = 0;  ///< alpha / size.
  float beta = 0;
  float k = 0;

  /// Floats of a row with room for the windows of the first and last channels.
  std::int64_t padded() const { return channels + before + after; }
};

PLIMSOLL_VECTORIZED void Square(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * x[i];
}

/// d = k + scale * sums over windows of `padded`.
PLIMSOLL_VECTORIZED void Denominators(const float* padded, std::int64_t size, float scale, float k,
                                      float* d, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) d[i] = 0;
  for (std::int64_t j = 0; j < size; ++j) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) d[i] += padded[i + j];
  }
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) d[i] = k + scale * d[i];
}

PLIMSOLL_VECTORIZED void Divide(const float* x, const float* d, float beta, float* y,
                                std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * Exp(-beta * Log(d[i]));
}

/// Writes what is summed over windows, and the first term of dx into d.
PLIMSOLL_VECTORIZED void Terms(const float* x, const float* dy, float beta, float* d, float* terms,
                               std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float first = dy[i] * Exp(-beta * Log(d[i]));
    terms[i] = first * x[i] / d[i];
    d[i] = first;
  }
}

PLIMSOLL_VECTORIZED void Gradient(const float* x, const float* first, const float* sums,
                                  float factor, float* dx, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) dx[i] = first[i] - factor * x[i] * sums[i];
}

void RunRow(const Sizes& sizes, const float* x, const float* dy, float* out, float* padded,
            float* d) {
  const std::int64_t window = sizes.before + sizes.after + 1;
  Square(x, padded + sizes.before, sizes.channels);
  Denominators(padded, window, sizes.scale, sizes.k, d, sizes.channels);
  if (dy == nullptr) {
    Divide(x, d, sizes.beta, out, sizes.channels);
    return;
  }
  // The windows that have a channel in them lie the other way round.
  float* terms = d + sizes.channels;
  float* sums = terms + sizes.padded();
  Terms(x, dy, sizes.beta, d, terms + sizes.after, sizes.channels);
  Denominators(terms, window, 1, 0, sums, sizes.channels);
  Gradient(x, d, sums, 2 * sizes.scale * sizes.beta, out, sizes.channels);
}

}  // namespace

Kernel PrepareLrn(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kLrnForward;
  RequireOperands(spec, forward ? 1 : 2, 1);
  const Attributes& a = spec.attributes;
  const std::int64_t rows = Rows(spec, spec.reads[0]);
  for (const Tensor& tensor : spec.reads) RequireShape(spec, tensor, spec.writes[0].shape);
  if (a.lrn_size < 1 || !(a.lrn_k > 0)) Refuse(spec, "size and k must be positive");
  const Sizes sizes{.channels = Columns(spec, spec.reads[0]),
                    .before = a.lrn_size / 2,
                    .after = (a.lrn_size - 1) / 2,
                    .scale = a.lrn_alpha / static_cast<float>(a.lrn_size),
                    .beta = a.lrn_beta,
                    .k = a.lrn_k};
  const Partition partition = Cut(rows, kLeastFloats / 4 / sizes.channels + 1);
  // Of each part: padded squares, denominators, padded terms, sums.
  const std::int64_t part_floats = ((2 * sizes.padded() + 2 * sizes.channels) + 15) / 16 * 16;
  return {.workspace_bytes = partition.parts * part_floats * 4,
          .run = [=](const exec::Launch& launch, const StepScalars&) {
            ForParts(partition, [&](int part, std::int64_t begin, std::int64_t end) {
              float* padded = Write(launch, 1) + part * part_floats;
              std::fill_n(padded, part_floats, 0.0F);
              for (std::int64_t row = begin; row < end; ++row) {
                const std::int64_t at = row * sizes.channels;
                RunRow(sizes, Read(launch, 0) + at, forward ? nullptr : Read(launch, 1) + at,
                       Write(launch, 0) + at, padded, padded + sizes.padded());
              }
            });
          }};
}

}  // namespace plimsoll::nn::onednn

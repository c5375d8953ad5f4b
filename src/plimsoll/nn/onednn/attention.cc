// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plimsoll/nn/onednn/gemm.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/onednn/vector_math.h"
#include "plimsoll/nn/op_check.h"

/// Attention of several heads. Each head of each sequence goes to one thread, which takes a few
/// queries at a time: it never holds more than kBlock rows of scores.
///
///     scores = q k^T / sqrt(width)      probabilities = softmax(scores)      y = probabilities v
///
/// Backward rebuilds probabilities from the logarithm of each row's sum.
namespace plimsoll::nn::onednn {
namespace {

constexpr std::int64_t kBlock = 64;

struct Sizes {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;  ///< Of a head.
  bool causal = true;
  Partition partition;  ///< Of heads of all sequences.

  std::int64_t y_stride() const { return heads * width; }
  std::int64_t qkv_stride() const { return 3 * heads * width; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(width)); }
  /// Keys that the queries before `query_end` look at.
  std::int64_t Keys(std::int64_t query_end) const { return causal ? query_end : length; }
  /// Where a head begins in [n, t, d] and in [n, t, 3d].
  std::int64_t InY(std::int64_t head) const {
    return head / heads * length * y_stride() + head % heads * width;
  }
  std::int64_t InQkv(std::int64_t head, int which) const {
    return head / heads * length * qkv_stride() + (which * heads + head % heads) * width;
  }
};

PLIMSOLL_VECTORIZED float Largest(const float* row, std::int64_t count) {
  float largest = row[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = row[i] > largest ? row[i] : largest;
  return largest;
}

/// row = e^(row - shift); returns the sum.
PLIMSOLL_VECTORIZED float Exponentials(float* row, float shift, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    row[i] = Exp(row[i] - shift);
    sum += row[i];
  }
  return sum;
}

PLIMSOLL_VECTORIZED void Multiply(float* row, float factor, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
}

PLIMSOLL_VECTORIZED float Dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// slopes = probabilities * (slopes - mean) * scale.
PLIMSOLL_VECTORIZED void ScoreGradient(const float* probabilities, float mean, float scale,
                                       float* slopes, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    slopes[i] = probabilities[i] * (slopes[i] - mean) * scale;
  }
}

void ForwardHead(const Sizes& sizes, std::int64_t head, const exec::Launch& launch, float* scores) {
  const float* q = Read(launch, 0) + sizes.InQkv(head, 0);
  const float* k = Read(launch, 0) + sizes.InQkv(head, 1);
  const float* v = Read(launch, 0) + sizes.InQkv(head, 2);
  const std::int64_t stride = sizes.qkv_stride();
  for (std::int64_t begin = 0; begin < sizes.length; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, sizes.length);
    const std::int64_t keys = sizes.Keys(end);
    Gemm(end - begin, keys, sizes.width, sizes.scale(), {q + begin * stride, stride},
         {k, stride, true}, false, scores, keys);
    for (std::int64_t query = begin; query < end; ++query) {
      float* row = scores + (query - begin) * keys;
      const std::int64_t seen = sizes.Keys(query + 1);
      const float largest = Largest(row, seen);
      const float sum = Exponentials(row, largest, seen);
      Multiply(row, 1 / sum, seen);
      std::fill(row + seen, row + keys, 0.0F);
      // In evaluation nobody asks for it.
      if (launch.writes.size() > 2) {
        Write(launch, 1)[head * sizes.length + query] = largest + std::log(sum);
      }
    }
    Gemm(end - begin, sizes.width, keys, 1, {scores, keys}, {v, stride}, false,
         Write(launch, 0) + sizes.InY(head) + begin * sizes.y_stride(), sizes.y_stride());
  }
}

void BackwardHead(const Sizes& sizes, std::int64_t head, const exec::Launch& launch,
                  float* scores) {
  const std::int64_t stride = sizes.qkv_stride();
  const float* q = Read(launch, 0) + sizes.InQkv(head, 0);
  const float* k = Read(launch, 0) + sizes.InQkv(head, 1);
  const float* v = Read(launch, 0) + sizes.InQkv(head, 2);
  float* dq = Write(launch, 0) + sizes.InQkv(head, 0);
  float* dk = Write(launch, 0) + sizes.InQkv(head, 1);
  float* dv = Write(launch, 0) + sizes.InQkv(head, 2);
  const float* log_sums = Read(launch, 3) + head * sizes.length;
  float* slopes = scores + kBlock * sizes.length;
  for (std::int64_t row = 0; row < sizes.length; ++row) {
    std::fill_n(dk + row * stride, sizes.width, 0.0F);
    std::fill_n(dv + row * stride, sizes.width, 0.0F);
  }
  for (std::int64_t begin = 0; begin < sizes.length; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, sizes.length);
    const std::int64_t keys = sizes.Keys(end);
    const std::int64_t at = sizes.InY(head) + begin * sizes.y_stride();
    const float* y = Read(launch, 1) + at;
    const float* dy = Read(launch, 2) + at;
    Gemm(end - begin, keys, sizes.width, sizes.scale(), {q + begin * stride, stride},
         {k, stride, true}, false, scores, keys);
    Gemm(end - begin, keys, sizes.width, 1, {dy, sizes.y_stride()}, {v, stride, true}, false,
         slopes, keys);
    for (std::int64_t query = begin; query < end; ++query) {
      const std::int64_t row = query - begin;
      const std::int64_t seen = sizes.Keys(query + 1);
      float* probabilities = scores + row * keys;
      Exponentials(probabilities, log_sums[query], seen);
      const float mean = Dot(y + row * sizes.y_stride(), dy + row * sizes.y_stride(), sizes.width);
      ScoreGradient(probabilities, mean, sizes.scale(), slopes + row * keys, seen);
      std::fill(probabilities + seen, probabilities + keys, 0.0F);
      std::fill(slopes + row * keys + seen, slopes + (row + 1) * keys, 0.0F);
    }
    Gemm(keys, sizes.width, end - begin, 1, {scores, keys, true}, {dy, sizes.y_stride()}, true, dv,
         stride);
    Gemm(keys, sizes.width, end - begin, 1, {slopes, keys, true}, {q + begin * stride, stride},
         true, dk, stride);
    Gemm(end - begin, sizes.width, keys, 1, {slopes, keys}, {k, stride}, false, dq + begin * stride,
         stride);
  }
}

Sizes SizesOf(const OpSpec& spec) {
  RequireRank(spec, spec.reads[0], 3);
  const Shape& shape = spec.reads[0].shape;
  const std::int64_t heads = spec.attributes.heads;
  if (heads < 1 || shape[2] % (3 * heads) != 0) {
    Refuse(spec, "the last dimension should be that of queries, keys and values of every head");
  }
  return {.sequences = shape[0],
          .length = shape[1],
          .heads = heads,
          .width = shape[2] / (3 * heads),
          .causal = spec.attributes.causal,
          .partition = Cut(shape[0] * heads, 1)};
}

}  // namespace

Kernel PrepareAttention(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kAttentionForward;
  RequireOperands(spec, forward ? 1 : 4, 1, forward ? 2 : 1);
  const Sizes sizes = SizesOf(spec);
  const Shape y = {sizes.sequences, sizes.length, sizes.heads * sizes.width};
  const std::int64_t log_sums = sizes.sequences * sizes.heads * sizes.length;
  RequireShape(spec, forward ? spec.writes[0] : spec.reads[1], y);
  if (forward) {
    if (spec.writes.size() == 2) RequireCount(spec, spec.writes[1], log_sums);
  } else {
    RequireShape(spec, spec.writes[0], spec.reads[0].shape);
    RequireShape(spec, spec.reads[2], y);
    RequireCount(spec, spec.reads[3], log_sums);
  }
  const std::int64_t part_floats = (forward ? 1 : 2) * kBlock * sizes.length;
  return {.workspace_bytes = sizes.partition.parts * part_floats * 4,
          .run = [=](const exec::Launch& launch, const StepScalars&) {
            float* workspace = Write(launch, launch.writes.size() - 1);
            ForParts(sizes.partition, [&](int part, std::int64_t begin, std::int64_t end) {
              for (std::int64_t head = begin; head < end; ++head) {
                if (forward) {
                  ForwardHead(sizes, head, launch, workspace + part * part_floats);
                } else {
                  BackwardHead(sizes, head, launch, workspace + part * part_floats);
                }
              }
            });
          }};
}

}  // namespace plimsoll::nn::onednn

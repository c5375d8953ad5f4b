// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/kernels.h"
#include "plimsoll/nn/onednn/loops.h"
#include "plimsoll/nn/op_check.h"

namespace plimsoll::nn::onednn {
namespace {

PLIMSOLL_VECTORIZED void AddTo(const float* x, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}

PLIMSOLL_VECTORIZED void Add(const float* a, const float* b, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

void CheckIds(const std::int32_t* ids, std::int64_t count, std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      throw Error(
          fmt::format("id {} at {} is not one of {} rows of the table", ids[i], i, vocabulary));
    }
  }
}

Kernel PrepareEmbeddingOp(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kEmbeddingForward;
  RequireOperands(spec, 2, 1);
  RequireType(spec, spec.reads[0], ElementType::kInt);
  const Tensor& table = forward ? spec.reads[1] : spec.writes[0];
  const Tensor& y = forward ? spec.writes[0] : spec.reads[1];
  RequireRank(spec, table, 2);
  const std::int64_t vocabulary = table.shape[0];
  const std::int64_t width = table.shape[1];
  const std::int64_t tokens = spec.reads[0].count();
  if (Columns(spec, y) != width) Refuse(spec, "rows should be as wide as the table's");
  RequireCount(spec, y, tokens * width);
  // Forward by tokens; backward by columns, so that each sum is in the order of the tokens.
  const Partition partition = forward ? Cut(tokens, kLeastFloats / width + 1)
                                      : Cut(width, kLeastFloats / (tokens + vocabulary) + 1, 16);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    const std::int32_t* ids = ReadInts(launch, 0);
    CheckIds(ids, tokens, vocabulary);
    const float* from = Read(launch, 1);
    float* to = Write(launch, 0);
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      if (forward) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::copy_n(from + ids[i] * width, width, to + i * width);
        }
        return;
      }
      for (std::int64_t row = 0; row < vocabulary; ++row) {
        std::fill_n(to + row * width + begin, end - begin, 0.0F);
      }
      for (std::int64_t i = 0; i < tokens; ++i) {
        AddTo(from + i * width + begin, to + ids[i] * width + begin, end - begin);
      }
    });
  }};
}

Kernel PrepareAddRows(const OpSpec& spec) {
  const bool forward = spec.kind == OpKind::kAddRowsForward;
  RequireOperands(spec, forward ? 2 : 1, 1);
  const Tensor& x = spec.reads[0];
  const Tensor& rows = forward ? spec.reads[1] : spec.writes[0];
  RequireRank(spec, x, 3);
  RequireRank(spec, rows, 2);
  const std::int64_t sequences = x.shape[0];
  const std::int64_t length = x.shape[1];
  const std::int64_t width = x.shape[2];
  if (rows.shape[0] < length || rows.shape[1] != width) {
    Refuse(spec, "there should be as many rows as a sequence is long, of its width");
  }
  if (forward) RequireShape(spec, spec.writes[0], x.shape);
  if (forward) {
    const Partition partition = Cut(sequences * length, kLeastFloats / width + 1);
    return {.run = [=](const exec::Launch& launch, const StepScalars&) {
      ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          Add(Read(launch, 0) + i * width, Read(launch, 1) + i % length * width,
              Write(launch, 0) + i * width, width);
        }
      });
    }};
  }
  const std::int64_t all = rows.shape[0];
  const Partition partition = Cut(all, kLeastFloats / (sequences * width) + 1);
  return {.run = [=](const exec::Launch& launch, const StepScalars&) {
    ForParts(partition, [&](int, std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        float* sum = Write(launch, 0) + t * width;
        std::fill_n(sum, width, 0.0F);
        for (std::int64_t i = 0; i < sequences && t < length; ++i) {
          AddTo(Read(launch, 0) + (i * length + t) * width, sum, width);
        }
      }
    });
  }};
}

}  // namespace

Kernel PrepareEmbedding(const OpSpec& spec) {
  if (spec.kind == OpKind::kAddRowsForward || spec.kind == OpKind::kAddRowsBackward) {
    return PrepareAddRows(spec);
  }
  return PrepareEmbeddingOp(spec);
}

}  // namespace plimsoll::nn::onednn

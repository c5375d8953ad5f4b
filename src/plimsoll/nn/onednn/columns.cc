// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/columns.h"

#include <algorithm>

namespace plimsoll::nn::onednn {
namespace {

constexpr std::int64_t kLeastWidth = 256;
/// Wide rows that are summed in floats.
constexpr std::int64_t kFlush = 128;

PLIMSOLL_VECTORIZED void AddMoments(const float* x, const float* center, float* first,
                                    float* second, std::int64_t width, std::int64_t rows) {
  for (; rows >= 2; rows -= 2, x += 2 * width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float d0 = x[i] - center[i];
      const float d1 = x[i + width] - center[i];
      first[i] += d0 + d1;
      second[i] += d0 * d0 + d1 * d1;
    }
  }
  for (; rows > 0; --rows, x += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float d = x[i] - center[i];
      first[i] += d;
      second[i] += d * d;
    }
  }
}

PLIMSOLL_VECTORIZED void AddProducts(const float* dy, const float* x, const float* center,
                                     float* first, float* second, std::int64_t width,
                                     std::int64_t rows) {
  for (; rows >= 2; rows -= 2, x += 2 * width, dy += 2 * width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const float g0 = dy[i];
      const float g1 = dy[i + width];
      first[i] += g0 + g1;
      second[i] += g0 * (x[i] - center[i]) + g1 * (x[i + width] - center[i]);
    }
  }
  for (; rows > 0; --rows, x += width, dy += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      first[i] += dy[i];
      second[i] += dy[i] * (x[i] - center[i]);
    }
  }
}

PLIMSOLL_VECTORIZED void AddSums(const float* x, float* first, std::int64_t width,
                                 std::int64_t rows) {
  for (; rows > 0; --rows, x += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) first[i] += x[i];
  }
}

PLIMSOLL_VECTORIZED void Flush(float* sums, double* totals, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    totals[i] += static_cast<double>(sums[i]);
    sums[i] = 0;
  }
}

PLIMSOLL_VECTORIZED void Affine(const float* x, const float* a, const float* b, float* y,
                                std::int64_t width, std::int64_t rows) {
  for (; rows > 0; --rows, x += width, y += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * a[i] + b[i];
  }
}

PLIMSOLL_VECTORIZED void Affine(const float* dy, const float* x, const float* center,
                                const float* a, const float* b, const float* c, float* dx,
                                std::int64_t width, std::int64_t rows) {
  for (; rows > 0; --rows, x += width, dy += width, dx += width) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      dx[i] = a[i] * dy[i] + b[i] * (x[i] - center[i]) + c[i];
    }
  }
}

/// Writes a row of columns as often as it goes into a wide row.
void Widen(const Columns2d& matrix, const float* row, float* wide) {
  for (std::int64_t i = 0; i < matrix.width; i += matrix.columns) {
    std::copy_n(row, matrix.columns, wide + i);
  }
}

/// Calls `body(offset, width, rows)` for whole wide rows `begin` to `end`, and once more for the
/// rest of the matrix if that is in the range.
template <typename Body>
void ForWideRows(const Columns2d& matrix, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::int64_t whole = matrix.rows * matrix.columns / matrix.width;
  const std::int64_t whole_end = std::min(end, whole);
  if (begin < whole_end) body(begin * matrix.width, matrix.width, whole_end - begin);
  const std::int64_t rest = matrix.rows * matrix.columns - whole * matrix.width;
  if (end > whole && rest > 0) body(whole * matrix.width, rest, std::int64_t{1});
}

/// Bytes of one part's sums, two of each kind; doubles first.
std::int64_t PartBytes(const Columns2d& matrix) { return (matrix.width * 24 + 63) / 64 * 64; }

}  // namespace

Columns2d CutColumns(std::int64_t rows, std::int64_t columns) {
  const std::int64_t merged =
      std::clamp<std::int64_t>(kLeastWidth / columns, 1, std::max<std::int64_t>(rows, 1));
  const std::int64_t width = merged * columns;
  const std::int64_t wide_rows = (rows + merged - 1) / merged;
  return {rows, columns, width, Cut(wide_rows, kLeastFloats / width + 1)};
}

Bytes ColumnSums::workspace_bytes() const {
  return matrix_.partition.parts * PartBytes(matrix_) + matrix_.width * 4;
}

float* ColumnSums::Centers(const float* center, std::byte* workspace) const {
  auto* wide = reinterpret_cast<float*>(workspace + matrix_.partition.parts * PartBytes(matrix_));
  Widen(matrix_, center, wide);
  return wide;
}

template <typename AddRows>
void ColumnSums::Sum(std::byte* workspace, const AddRows& add_rows) const {
  ForParts(matrix_.partition, [&](int part, std::int64_t begin, std::int64_t end) {
    auto* totals = reinterpret_cast<double*>(workspace + part * PartBytes(matrix_));
    auto* sums = reinterpret_cast<float*>(totals + 2 * matrix_.width);
    std::fill_n(totals, 2 * matrix_.width, 0.0);
    std::fill_n(sums, 2 * matrix_.width, 0.0F);
    for (std::int64_t at = begin; at < end; at += kFlush) {
      ForWideRows(matrix_, at, std::min(end, at + kFlush),
                  [&](std::int64_t offset, std::int64_t width, std::int64_t rows) {
                    add_rows(offset, sums, sums + matrix_.width, width, rows);
                  });
      Flush(sums, totals, 2 * matrix_.width);
    }
  });
}

void ColumnSums::Moments(const float* x, const float* center, std::byte* workspace) const {
  const float* wide = Centers(center, workspace);
  Sum(workspace,
      [=](std::int64_t offset, float* first, float* second, std::int64_t width, std::int64_t rows) {
        AddMoments(x + offset, wide, first, second, width, rows);
      });
}

void ColumnSums::Products(const float* dy, const float* x, const float* center,
                          std::byte* workspace) const {
  const float* wide = Centers(center, workspace);
  Sum(workspace,
      [=](std::int64_t offset, float* first, float* second, std::int64_t width, std::int64_t rows) {
        AddProducts(dy + offset, x + offset, wide, first, second, width, rows);
      });
}

void ColumnSums::Sums(const float* x, std::byte* workspace) const {
  Sum(workspace, [=](std::int64_t offset, float* first, float* /*second*/, std::int64_t width,
                     std::int64_t rows) { AddSums(x + offset, first, width, rows); });
}

double ColumnSums::Total(const std::byte* workspace, std::int64_t column, int which) const {
  double total = 0;
  for (int part = 0; part < matrix_.partition.parts; ++part) {
    const auto* totals = reinterpret_cast<const double*>(workspace + part * PartBytes(matrix_)) +
                         which * matrix_.width;
    for (std::int64_t i = column; i < matrix_.width; i += matrix_.columns) total += totals[i];
  }
  return total;
}

double ColumnSums::first(const std::byte* workspace, std::int64_t column) const {
  return Total(workspace, column, 0);
}

double ColumnSums::second(const std::byte* workspace, std::int64_t column) const {
  return Total(workspace, column, 1);
}

void ApplyColumns(const Columns2d& matrix, const float* x, const float* a, const float* b, float* y,
                  float* wide) {
  float* wide_a = wide;
  float* wide_b = wide + matrix.width;
  Widen(matrix, a, wide_a);
  Widen(matrix, b, wide_b);
  ForParts(matrix.partition, [&](int, std::int64_t begin, std::int64_t end) {
    ForWideRows(matrix, begin, end, [&](std::int64_t at, std::int64_t width, std::int64_t rows) {
      Affine(x + at, wide_a, wide_b, y + at, width, rows);
    });
  });
}

void ApplyColumns(const Columns2d& matrix, const float* dy, const float* x, const float* center,
                  const float* a, const float* b, const float* c, float* dx, float* wide) {
  float* rows_of[4] = {wide, wide + matrix.width, wide + 2 * matrix.width, wide + 3 * matrix.width};
  Widen(matrix, center, rows_of[0]);
  Widen(matrix, a, rows_of[1]);
  Widen(matrix, b, rows_of[2]);
  Widen(matrix, c, rows_of[3]);
  ForParts(matrix.partition, [&](int, std::int64_t begin, std::int64_t end) {
    ForWideRows(matrix, begin, end, [&](std::int64_t at, std::int64_t width, std::int64_t rows) {
      Affine(dy + at, x + at, rows_of[0], rows_of[1], rows_of[2], rows_of[3], dx + at, width, rows);
    });
  });
}

}  // namespace plimsoll::nn::onednn

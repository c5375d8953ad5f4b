// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/bytes.h"
#include "plimsoll/nn/onednn/loops.h"

/// Sums over the rows of matrices, and functions of columns applied to them: what batch norm and
/// gradients of biases are made of.
///
/// A matrix of few columns is seen as one of fewer, wider rows, so that vectors are long enough:
///
///     | a b c | a b c | a b c |    three rows of three columns are one row of width nine
///     | a b c | a b c |            two are left
///
/// Sums are floats over a few hundred rows and doubles beyond.
namespace plimsoll::nn::onednn {

/// How a matrix is cut.
struct Columns2d {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t width = 0;  ///< Of a wide row, a multiple of `columns`.
  Partition partition;     ///< Of the wide rows, the last of which may be shorter.
};
Columns2d CutColumns(std::int64_t rows, std::int64_t columns);

/// Two sums for each column. Kinds of sums are in columns.cc, as loops.
class ColumnSums {
 public:
  explicit ColumnSums(Columns2d matrix) : matrix_(matrix) {}

  Bytes workspace_bytes() const;
  const Columns2d& matrix() const { return matrix_; }

  /// first = sum of x - center; second = sum of its squares.
  void Moments(const float* x, const float* center, std::byte* workspace) const;
  /// first = sum of dy; second = sum of dy * (x - center).
  void Products(const float* dy, const float* x, const float* center, std::byte* workspace) const;
  /// first = sum of x. The second is 0.
  void Sums(const float* x, std::byte* workspace) const;

  /// What the latest call found for a column.
  double first(const std::byte* workspace, std::int64_t column) const;
  double second(const std::byte* workspace, std::int64_t column) const;

 private:
  template <typename AddRows>
  void Sum(std::byte* workspace, const AddRows& add_rows) const;
  float* Centers(const float* center, std::byte* workspace) const;
  double Total(const std::byte* workspace, std::int64_t column, int which) const;

  Columns2d matrix_;
};

/// y = x * a + b, with a and b of the column. `wide` has room for 2 * width floats. In place too.
void ApplyColumns(const Columns2d& matrix, const float* x, const float* a, const float* b, float* y,
                  float* wide);
/// dx = a * dy + b * (x - center) + c. `wide` has room for 4 * width floats. In place too.
void ApplyColumns(const Columns2d& matrix, const float* dy, const float* x, const float* center,
                  const float* a, const float* b, const float* c, float* dx, float* wide);

}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/bytes.h"

/// Biases of matrices that are stored row by row, as floats or as bfloat16.
namespace plimsoll::cuda {

/// matrix[row, column] += bias[column].
void AddBias(void* matrix, bool bfloat16, const float* bias, std::int64_t rows,
             std::int64_t columns, void* stream);

/// Sums of columns, always in the same order: first of some rows each, then of those sums.
class ColumnSums {
 public:
  ColumnSums() = default;
  ColumnSums(std::int64_t rows, std::int64_t columns, bool bfloat16);

  Bytes workspace_bytes() const;
  /// sums[column] = sum of matrix[row, column] over rows.
  void Run(const void* matrix, float* sums, std::byte* workspace, void* stream) const;

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  bool bfloat16_ = false;
  int width_ = 1;  ///< Columns of a thread.
  int parts_ = 1;  ///< Of the rows.
};

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plimsoll::nn::onednn {

/// A matrix within a larger one: its first element, and the distance from one row to the next.
struct ConstMatrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;  ///< The matrix that is meant is the transpose of what is stored.
};

/// c = alpha a b + (add ? c : 0), with a of `rows` by `inner`, b of `inner` by `columns`. All
/// threads take part, unless this is called from one of several, which then does it all.
///
/// oneDNN packs blocks of a and b in memory of its own, a few MiB for each thread.
void Gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner, float alpha, ConstMatrix a,
          ConstMatrix b, bool add, float* c, std::int64_t c_stride);

}  // namespace plimsoll::nn::onednn

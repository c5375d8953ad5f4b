// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/onednn/gemm.h"

#include <fmt/format.h>

#include <dnnl.hpp>

#include "plimsoll/base/check.h"

namespace plimsoll::nn::onednn {

void Gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner, float alpha, ConstMatrix a,
          ConstMatrix b, bool add, float* c, std::int64_t c_stride) {
  const dnnl::status status =
      dnnl::sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, alpha,
                  a.data, a.stride, b.data, b.stride, add ? 1.0F : 0.0F, c, c_stride);
  PLIMSOLL_CHECK(status == dnnl::status::success,
                 fmt::format("sgemm of {} x {} x {} failed", rows, columns, inner));
}

}  // namespace plimsoll::nn::onednn

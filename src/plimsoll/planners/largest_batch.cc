// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/largest_batch.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::planners {
namespace {

struct Look {
  std::int64_t batch = 0;
  Bytes need_bytes = 0;
};

/// Where the line through two looks meets the limit; `otherwise` if it does not rise.
double Cross(const Look& a, const Look& b, Bytes limit_bytes, double otherwise) {
  const double rise = static_cast<double>(b.need_bytes) - static_cast<double>(a.need_bytes);
  if (rise <= 0) return otherwise;
  const double run = static_cast<double>(b.batch - a.batch);
  return static_cast<double>(a.batch) +
         (static_cast<double>(limit_bytes) - static_cast<double>(a.need_bytes)) * run / rise;
}

}  // namespace

std::int64_t FindLargestBatch(Bytes limit_bytes, std::int64_t most,
                              const std::function<Bytes(std::int64_t batch)>& needs) {
  PLIMSOLL_CHECK(most >= 1, "a batch has a sample");
  // While nothing is too large, the line goes through the two largest that fit.
  Look before{};
  Look low{1, needs(1)};
  if (low.need_bytes > limit_bytes) return 0;
  Look high{};
  for (int looks = 1; high.batch == 0 && low.batch < most; ++looks) {
    const auto twice = static_cast<double>(2 * low.batch);
    const double guess = looks == 1 ? twice : Cross(before, low, limit_bytes, 8 * twice) + 1;
    const std::int64_t next =
        std::clamp(static_cast<std::int64_t>(std::min(guess, 8 * twice)), low.batch + 1, most);
    const Look look{next, needs(next)};
    if (look.need_bytes > limit_bytes) {
      high = look;
    } else {
      before = low;
      low = look;
    }
  }
  for (int looks = 0; high.batch - low.batch > 1; ++looks) {
    const std::int64_t middle = low.batch + (high.batch - low.batch) / 2;
    // Every third look halves, so that a bent line does not make the search crawl.
    const double guess = looks % 3 == 2 ? static_cast<double>(middle)
                                        : Cross(low, high, limit_bytes, 0) + (looks % 3);
    const std::int64_t next =
        std::clamp(static_cast<std::int64_t>(guess), low.batch + 1, high.batch - 1);
    const Look look{next, needs(next)};
    (look.need_bytes > limit_bytes ? high : low) = look;
  }
  return low.batch;
}

}  // namespace plimsoll::planners

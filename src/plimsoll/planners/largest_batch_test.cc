// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/largest_batch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::planners {
namespace {

constexpr std::int64_t kMost = 1 << 16;

TEST(LargestBatchTest, FindsTheLastThatFitsOfAnyLine) {
  for (const Bytes base : {0, 1, 1000, 123456}) {
    for (const Bytes slope : {1, 7, 100, 5000}) {
      for (const Bytes limit : {1, 1001, 128456, 10'000'000}) {
        int looks = 0;
        const auto needs = [&](std::int64_t batch) {
          ++looks;
          return base + slope * batch;
        };
        const std::int64_t fits =
            limit < base + slope ? 0 : std::min<std::int64_t>((limit - base) / slope, kMost);
        EXPECT_EQ(FindLargestBatch(limit, kMost, needs), fits) << base << " " << slope;
        EXPECT_LE(looks, 12) << base << " " << slope << " " << limit;
      }
    }
  }
}

TEST(LargestBatchTest, BentNeedsTakeNoMoreThanHalvingDoes) {
  for (const double power : {0.5, 1.5, 2.0, 3.0}) {
    int looks = 0;
    const auto needs = [&](std::int64_t batch) {
      ++looks;
      return static_cast<Bytes>(std::pow(static_cast<double>(batch), power));
    };
    const std::int64_t found = FindLargestBatch(100, kMost, needs);
    EXPECT_LE(needs(found), 100) << power;
    EXPECT_GT(needs(found + 1), 100) << power;
    EXPECT_LE(looks, 60) << power;
  }
}

TEST(LargestBatchTest, StopsAtTheMost) {
  const auto needs = [](std::int64_t batch) { return batch; };
  EXPECT_EQ(FindLargestBatch(1'000'000, 777, needs), 777);
  EXPECT_EQ(FindLargestBatch(1'000'000, 1, needs), 1);
}

TEST(LargestBatchTest, EqualNeedsAreNoTrap) {
  const auto needs = [](std::int64_t batch) { return batch < 5000 ? Bytes{10} : Bytes{20}; };
  EXPECT_EQ(FindLargestBatch(15, kMost, needs), 4999);
}

}  // namespace
}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

using ::testing::ElementsAre;

constexpr Bytes kMebibyte = Bytes{1} << 20;

/// A buffer as a literal, with the default of everything else.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes) {
  return {std::move(id), lifetime, size_bytes, /*alignment=*/1, /*fixed_offset=*/{}, /*gaps=*/{}};
}

Placement Place(const Problem& problem) {
  Placement placement = PlaceCaching(problem, {});
  EXPECT_TRUE(FindViolations(problem, placement.offsets).empty());
  return placement;
}

TEST(CachingTest, RoundsSizesUpTo512Bytes) {
  const Problem problem = {{
      Live("a", {0, 2}, 1),
      Live("b", {0, 2}, 513),
      Live("c", {0, 2}, 1),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 512, 1536));
  EXPECT_EQ(placement.footprint_bytes, 2 * kMebibyte);
  EXPECT_EQ(placement.lower_bound_bytes, 515);
}

TEST(CachingTest, PacksSmallRequestsIntoSegmentsOfTwoMebibytes) {
  const Problem problem = {{
      Live("a", {0, 2}, kMebibyte),
      Live("b", {0, 2}, kMebibyte - 512),
      Live("c", {0, 2}, kMebibyte),
      Live("d", {0, 2}, 512),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, kMebibyte, 2 * kMebibyte, 2 * kMebibyte - 512));
  EXPECT_EQ(placement.footprint_bytes, 4 * kMebibyte);
}

TEST(CachingTest, KeepsSmallAndLargeRequestsApart) {
  const Problem problem = {{
      Live("small", {0, 2}, kMebibyte),
      Live("large", {0, 1}, kMebibyte + 1),
      Live("small", {1, 2}, kMebibyte),
      Live("small", {1, 2}, kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 2 * kMebibyte, kMebibyte, 22 * kMebibyte));
  EXPECT_EQ(placement.footprint_bytes, 24 * kMebibyte);
}

TEST(CachingTest, PacksRequestsUnderTenMebibytesIntoSegmentsOfTwenty) {
  const Problem problem = {{
      Live("a", {0, 2}, 10 * kMebibyte - 512),
      Live("b", {0, 2}, 8 * kMebibyte),
      Live("c", {0, 2}, 2 * kMebibyte + 512),
      Live("d", {0, 2}, 2 * kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets,
              ElementsAre(0, 10 * kMebibyte - 512, 18 * kMebibyte - 512, 20 * kMebibyte));
  EXPECT_EQ(placement.footprint_bytes, 40 * kMebibyte);
}

TEST(CachingTest, GivesLargerRequestsASegmentRoundedToTwoMebibytes) {
  const Problem problem = {{
      Live("a", {0, 2}, 10 * kMebibyte),
      Live("b", {0, 2}, 10 * kMebibyte + 1),
      Live("c", {0, 2}, 12 * kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 10 * kMebibyte, 22 * kMebibyte));
  EXPECT_EQ(placement.footprint_bytes, 34 * kMebibyte);
}

TEST(CachingTest, SplitsALargeBlockIfMoreThanOneMebibyteIsLeft) {
  const Problem problem = {{
      Live("a", {0, 2}, 19 * kMebibyte - 512),
      Live("b", {0, 2}, kMebibyte + 512),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 19 * kMebibyte - 512));
  EXPECT_EQ(placement.footprint_bytes, 20 * kMebibyte);
}

TEST(CachingTest, TakesTheSmallestBlockAndTheLowestOfEquals) {
  const Problem problem = {{
      Live("larger", {0, 1}, 12 * kMebibyte),
      Live("smaller", {0, 1}, 10 * kMebibyte),
      Live("equal", {0, 1}, 10 * kMebibyte),
      Live("first", {1, 2}, 10 * kMebibyte),
      Live("second", {1, 2}, 10 * kMebibyte),
      Live("third", {1, 2}, 2 * kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[3], 12 * kMebibyte);
  EXPECT_EQ(placement.offsets[4], 22 * kMebibyte);
  EXPECT_EQ(placement.offsets[5], 0);
  EXPECT_EQ(placement.footprint_bytes, 32 * kMebibyte);
}

TEST(CachingTest, MergesFreedBlocksOfOneSegment) {
  const Problem problem = {{
      Live("a", {0, 1}, 5 * kMebibyte),
      Live("b", {0, 3}, 5 * kMebibyte),
      Live("c", {0, 2}, 5 * kMebibyte),
      Live("d", {3, 4}, 20 * kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[3], 0);
  EXPECT_EQ(placement.footprint_bytes, 20 * kMebibyte);
}

TEST(CachingTest, NeitherMergesNorReturnsSegments) {
  const Problem problem = {{
      Live("freed second", {0, 2}, 10 * kMebibyte),
      Live("freed first", {0, 1}, 10 * kMebibyte),
      Live("freed third", {0, 3}, 10 * kMebibyte),
      Live("asked", {3, 4}, 20 * kMebibyte),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[3], 30 * kMebibyte);
  EXPECT_EQ(placement.footprint_bytes, 50 * kMebibyte);
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/free_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace plimsoll::exec {
namespace {

// Asserts that the live blocks are disjoint and inside, and that they and the holes fill the arena.
void ExpectConsistent(const FreeSpace& space, Bytes capacity_bytes) {
  Bytes top = 0;
  Bytes free_bytes = 0;
  Bytes largest = 0;
  for (const auto& [offset, size_bytes] : space.blocks()) {
    ASSERT_GE(offset, top);
    free_bytes += offset - top;
    largest = std::max(largest, offset - top);
    top = offset + size_bytes;
  }
  ASSERT_LE(top, capacity_bytes);
  EXPECT_EQ(space.free_bytes(), free_bytes + capacity_bytes - top);
  EXPECT_EQ(space.largest_hole_bytes(), std::max(largest, capacity_bytes - top));
}

TEST(FreeSpaceTest, TakesTheSmallestHoleThatFits) {
  FreeSpace space(8192, {{1024, 512}, {2048, 512}, {4096, 512}});
  // Holes: 1024 at 0, 512 at 1536, 1536 at 2560, 3584 at 4608.
  EXPECT_EQ(space.Take(512), 1536);
  EXPECT_EQ(space.Take(1025), 2560);
  EXPECT_EQ(space.Take(1024), 0);
  EXPECT_EQ(space.Take(3584), 4608);
  ExpectConsistent(space, 8192);
}

TEST(FreeSpaceTest, AlignsAndPassesOverHolesThatAreTooSmallOnceAligned) {
  FreeSpace space(4096, {{0, 100}, {700, 1000}});
  // The hole of 600 bytes at 100 has only 188 bytes above 512.
  EXPECT_EQ(space.Take(300), 2048);
  EXPECT_EQ(space.Take(188), 512);
  ExpectConsistent(space, 4096);
}

TEST(FreeSpaceTest, StaysAboveTheLowestOffset) {
  FreeSpace space(4096);
  EXPECT_EQ(space.Take(512, 1000), 1024);
  EXPECT_EQ(space.Take(3000, 1000), std::nullopt);
  EXPECT_EQ(space.Take(512, 4096), std::nullopt);
  EXPECT_EQ(space.Take(512), 0);
  ExpectConsistent(space, 4096);
}

TEST(FreeSpaceTest, TakesAPlaceOnlyIfAllOfItIsFree) {
  FreeSpace space(4096, {{1024, 1024}});
  EXPECT_FALSE(space.TakeAt(1000, 100));
  EXPECT_FALSE(space.TakeAt(1024, 1));
  EXPECT_FALSE(space.TakeAt(2047, 10));
  EXPECT_FALSE(space.TakeAt(4000, 97));
  EXPECT_FALSE(space.TakeAt(5000, 1));
  EXPECT_FALSE(space.TakeAt(-1, 1));
  EXPECT_TRUE(space.TakeAt(1000, 24));
  EXPECT_TRUE(space.TakeAt(4000, 96));
  ExpectConsistent(space, 4096);
}

TEST(FreeSpaceTest, MergesHolesOnRelease) {
  FreeSpace space(3072, {{0, 1024}, {1024, 1024}, {2048, 1024}});
  EXPECT_EQ(space.largest_hole_bytes(), 0);
  EXPECT_EQ(space.Release(0), 1024);
  EXPECT_EQ(space.Release(2048), 1024);
  EXPECT_EQ(space.largest_hole_bytes(), 1024);
  EXPECT_EQ(space.Release(1024), 1024);
  EXPECT_EQ(space.largest_hole_bytes(), 3072);
  EXPECT_EQ(space.Take(3072), 0);
}

TEST(FreeSpaceTest, RefusesToReleaseWhatIsNotLive) {
  FreeSpace space(4096, {{512, 512}});
  EXPECT_EQ(space.Release(0), std::nullopt);
  EXPECT_EQ(space.Release(600), std::nullopt);
  EXPECT_EQ(space.Release(-512), std::nullopt);
  EXPECT_EQ(space.Release(512), 512);
  EXPECT_EQ(space.Release(512), std::nullopt);
  ExpectConsistent(space, 4096);
}

TEST(FreeSpaceTest, RefusesSizesThatNoArenaHas) {
  FreeSpace space(kMaxBytes - 1, {{4096, 512}});
  EXPECT_EQ(space.Take(std::numeric_limits<Bytes>::max()), std::nullopt);
  EXPECT_FALSE(space.TakeAt(8192, std::numeric_limits<Bytes>::max()));
  EXPECT_EQ(FreeSpace(0).Take(1), std::nullopt);
}

TEST(FreeSpaceTest, StaysConsistentOverRandomCalls) {
  constexpr Bytes kCapacity = 64 * 1024;
  std::mt19937 random(1);
  FreeSpace space(kCapacity);
  std::vector<Bytes> live;
  const auto below = [&random](Bytes end) {
    return std::uniform_int_distribution<Bytes>(0, end - 1)(random);
  };
  for (int i = 0; i < 5000; ++i) {
    if (!live.empty() && below(2) == 0) {
      std::swap(live[static_cast<std::size_t>(below(std::ssize(live)))], live.back());
      ASSERT_TRUE(space.Release(live.back()));
      live.pop_back();
    } else if (below(4) == 0) {
      const Bytes offset = below(kCapacity);
      if (space.TakeAt(offset, 1 + below(2000))) live.push_back(offset);
    } else if (const auto offset = space.Take(1 + below(6000))) {
      ASSERT_EQ(*offset % kDefaultAlignment, 0);
      live.push_back(*offset);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectConsistent(space, kCapacity));
    ASSERT_EQ(space.blocks().size(), live.size());
  }
}

}  // namespace
}  // namespace plimsoll::exec

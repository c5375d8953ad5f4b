// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/host_slab.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/random_for_test.h"
#include "plimsoll/device/fault_backend.h"
#include "plimsoll/device/null_backend.h"

namespace plimsoll::exec {
namespace {

using device::FaultBackend;
using device::FaultyCall;
using device::NullBackend;

TEST(HostSlabTest, GrowsByChunksAndFillsThem) {
  NullBackend backend;
  HostSlab slab(&backend, kMaxBytes, 4096);
  std::byte* const a = slab.Take(1000);
  std::byte* const b = slab.Take(1000);
  EXPECT_EQ(b - a, 1024);
  EXPECT_EQ(slab.reserved_bytes(), 4096);
  std::byte* const large = slab.Take(10'000);
  EXPECT_EQ(slab.reserved_bytes(), 14'096);
  EXPECT_EQ(slab.used_bytes(), 12'000);
  slab.Release(a);
  EXPECT_EQ(slab.Take(512), a);
  slab.Release(large);
  slab.Release(b);
  EXPECT_EQ(slab.used_bytes(), 512);
  EXPECT_EQ(slab.peak_used_bytes(), 12'000);
}

TEST(HostSlabTest, GivesEverythingBack) {
  NullBackend backend;
  {
    HostSlab slab(&backend, kMaxBytes, 4096);
    std::byte* const a = slab.Take(5000);
    std::byte* const b = slab.Take(100);
    slab.Release(a);
    EXPECT_TRUE(slab.Trim());
    EXPECT_FALSE(slab.Trim());
    EXPECT_EQ(slab.reserved_bytes(), 4096);
    EXPECT_EQ(backend.counts().host_bytes, 4096);
    slab.Release(b);
  }
  EXPECT_EQ(backend.counts().host_bytes, 0);
}

TEST(HostSlabTest, StaysUnderItsLimit) {
  NullBackend backend;
  HostSlab slab(&backend, 10'000, 4096);
  std::byte* const a = slab.Take(4096);
  std::byte* const b = slab.Take(4096);
  // The rest of the limit is a chunk too.
  std::byte* const c = slab.Take(1000);
  EXPECT_EQ(slab.reserved_bytes(), 10'000);
  try {
    (void)slab.Take(2000);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), 2000);
    EXPECT_EQ(error.free(), 808);
  }
  EXPECT_EQ(slab.used_bytes(), 9192);
  slab.Release(a);
  slab.Release(b);
  // Neither empty chunk is large enough, but together they make room.
  std::byte* const d = slab.Take(8000);
  EXPECT_LE(slab.reserved_bytes(), 10'000);
  slab.Release(c);
  slab.Release(d);
}

TEST(HostSlabTest, TakesWhatItNeedsWhereAWholeChunkIsNotToBeHad) {
  NullBackend null;
  FaultBackend backend(&null);
  HostSlab slab(&backend, kMaxBytes, 4096);
  EXPECT_FALSE(slab.was_refused());
  // 3072, 2304, 1728 and 1296 are too much; what comes then is too little.
  backend.LimitHost(1200);
  slab.Release(slab.Take(1100));
  EXPECT_EQ(slab.reserved_bytes(), 1100);
  EXPECT_TRUE(slab.was_refused());
  EXPECT_EQ(slab.refused_bytes(), 4096);
  EXPECT_EQ(slab.got_bytes(), 1100);
  EXPECT_THROW((void)slab.Take(5000), OutOfMemory);
  EXPECT_EQ(slab.used_bytes(), 0);
  EXPECT_EQ(slab.refused_bytes(), 4096) << "nothing was had in the place of 5000";
  slab.Release(slab.Take(1100));
  // Not beside the chunk that is there, but in its place.
  slab.Release(slab.Take(1200));
}

TEST(HostSlabTest, AsksForLessWhereAWholeChunkIsNotToBeHad) {
  NullBackend null;
  FaultBackend backend(&null);
  HostSlab slab(&backend, kMaxBytes, 4096);
  backend.Fail({.call = FaultyCall::kAllocateHost, .nth = 1});
  std::byte* const a = slab.Take(1000);
  EXPECT_EQ(slab.reserved_bytes(), 3072);
  // From here on, for no more than that.
  std::byte* const b = slab.Take(2500);
  EXPECT_EQ(slab.reserved_bytes(), 6144);
  EXPECT_EQ(slab.refused_bytes(), 4096);
  EXPECT_EQ(slab.got_bytes(), 3072);
  slab.Release(a);
  slab.Release(b);
}

TEST(HostSlabTest, OffersTheLargestRangeThatCanBeHad) {
  NullBackend null;
  FaultBackend backend(&null);
  HostSlab slab(&backend, kMaxBytes, 4096);
  std::byte* const a = slab.Take(2000);
  backend.LimitHost(30'000);
  // 30000 are too much beside the chunk that is there.
  EXPECT_EQ(slab.Offer(40'000), 22'500);
  EXPECT_EQ(slab.reserved_bytes(), 26'596);
  // It is there now, whatever else is asked for.
  EXPECT_EQ(slab.Offer(40'000), 22'500);
  EXPECT_EQ(slab.Offer(10'000), 10'000);
  std::byte* const b = slab.Take(22'500);
  const Bytes rest = slab.Offer(40'000);
  EXPECT_GT(rest, (30'000 - 26'596) * 3 / 4);
  slab.Release(slab.Take(rest));
  slab.Release(a);
  slab.Release(b);
  EXPECT_EQ(slab.refused_bytes(), 40'000);
}

TEST(HostSlabTest, OffersNoMoreThanItsLimit) {
  NullBackend backend;
  HostSlab slab(&backend, 10'000, 4096);
  std::byte* const a = slab.Take(4000);
  EXPECT_EQ(slab.Offer(8000), 5904);
  EXPECT_EQ(slab.Offer(0), 0);
  EXPECT_EQ(slab.refused_bytes(), 0);
  slab.Release(slab.Take(5904));
  slab.Release(a);
}

TEST(HostSlabTest, KeepsPartsOfARange) {
  NullBackend backend;
  HostSlab slab(&backend, kMaxBytes, 4096);
  std::byte* const range = slab.Take(4096);
  slab.Split(range, std::vector<HostSlab::Part>{{512, 512}, {2048, 100}});
  EXPECT_EQ(slab.used_bytes(), 612);
  EXPECT_EQ(slab.Take(1024), range + 1024) << "the smallest hole that has room";
  slab.Release(range + 512);
  slab.Release(range + 2048);
  slab.Release(range + 1024);
  EXPECT_EQ(slab.Take(4096), range);
  slab.Split(range, {});
  EXPECT_EQ(slab.used_bytes(), 0);
  EXPECT_EQ(slab.reserved_bytes(), 4096);
}

TEST(HostSlabTest, RangesAreDisjointOverRandomCalls) {
  NullBackend backend;
  HostSlab slab(&backend, 100'000, 8192);
  TestRandom random(1);
  std::map<std::byte*, Bytes> live;
  Bytes used_bytes = 0;
  for (int i = 0; i < 3000; ++i) {
    if (!live.empty() && random.OneIn(2)) {
      const auto gone = std::next(live.begin(), random.Between(0, std::ssize(live) - 1));
      used_bytes -= gone->second;
      slab.Release(gone->first);
      live.erase(gone);
      continue;
    }
    const Bytes size_bytes = random.Between(1, 20'000);
    try {
      std::byte* const address = slab.Take(size_bytes);
      const auto [place, is_new] = live.emplace(address, size_bytes);
      ASSERT_TRUE(is_new);
      if (place != live.begin()) {
        ASSERT_LE(std::prev(place)->first + std::prev(place)->second, address);
      }
      if (std::next(place) != live.end()) {
        ASSERT_LE(address + size_bytes, std::next(place)->first);
      }
      used_bytes += size_bytes;
    } catch (const OutOfMemory&) {
    }
    ASSERT_EQ(slab.used_bytes(), used_bytes);
    ASSERT_LE(slab.reserved_bytes(), 100'000);
    ASSERT_EQ(backend.counts().host_bytes, slab.reserved_bytes());
  }
}

}  // namespace
}  // namespace plimsoll::exec

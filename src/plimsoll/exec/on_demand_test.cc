// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/on_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/random_for_test.h"
#include "plimsoll/device/null_backend.h"

namespace plimsoll::exec {
namespace {

constexpr Bytes kKibibyte = 1024;
constexpr Block kA{1};
constexpr Block kB{2};
constexpr Block kC{3};
constexpr Block kD{4};

// An arena of four kibibytes on a backend that only counts.
class OnDemandTest : public testing::Test {
 protected:
  static constexpr Bytes kCapacity = 4 * kKibibyte;

  void Read(const std::vector<Block>& blocks) { Run(blocks, {}); }
  void Write(const std::vector<Block>& blocks) { Run({}, blocks); }
  void Run(const std::vector<Block>& reads, const std::vector<Block>& writes) {
    memory_.Pin(reads, writes, "op", &read_, &written_);
    memory_.Unpin();
  }
  void AddWritten(Block block, Bytes size_bytes) {
    memory_.Add(block, size_bytes);
    Write({block});
  }

  device::NullBackend backend_;
  std::byte* base_ = backend_.AllocateDevice(kCapacity);
  Ledger ledger_{kCapacity, /*enabled=*/true};
  HostSlab slab_{&backend_, kMaxBytes, kKibibyte};
  OnDemandMemory memory_{&backend_, base_, kCapacity, &slab_, &ledger_};
  std::vector<std::byte*> read_;
  std::vector<std::byte*> written_;
};

TEST_F(OnDemandTest, TakesNoMemoryBeforeTheFirstUse) {
  memory_.Add(kA, 100 * kKibibyte);
  EXPECT_FALSE(memory_.resident(kA));
  EXPECT_EQ(memory_.offset(kA), -1);
  EXPECT_EQ(ledger_.used_bytes(), 0);
  EXPECT_EQ(memory_.stats().live_bytes, 100 * kKibibyte);
}

TEST_F(OnDemandTest, ABlockInBothListsHasOneAddress) {
  memory_.Add(kA, kKibibyte);
  memory_.Add(kB, kKibibyte);
  Run({kB, kA}, {kA});
  EXPECT_EQ(read_[1], written_[0]);
  EXPECT_NE(read_[0], read_[1]);
  EXPECT_TRUE(memory_.has_content(kA));
  EXPECT_FALSE(memory_.has_content(kB));
}

TEST_F(OnDemandTest, EvictsTheLeastRecentlyUsed) {
  for (const Block block : {kA, kB, kC}) AddWritten(block, kKibibyte);
  Read({kA});
  AddWritten(kD, 2 * kKibibyte);
  EXPECT_FALSE(memory_.resident(kB));
  EXPECT_TRUE(memory_.has_content(kB));
  EXPECT_TRUE(memory_.resident(kA));
  EXPECT_EQ(backend_.counts().copies_out, 1);
  EXPECT_EQ(slab_.used_bytes(), kKibibyte);
}

TEST_F(OnDemandTest, ACleanBlockLeavesWithoutACopy) {
  for (const Block block : {kA, kB}) AddWritten(block, 3 * kKibibyte);
  Read({kA});
  EXPECT_EQ(memory_.stats().copies_out, 2);
  EXPECT_EQ(memory_.stats().copies_in, 1);
  for (int i = 0; i < 3; ++i) {
    Read({kB});
    Read({kA});
  }
  EXPECT_EQ(memory_.stats().copies_out, 2);
  EXPECT_EQ(memory_.stats().copies_in, 7);
  // Once written, it must be copied again.
  Write({kA});
  EXPECT_EQ(slab_.used_bytes(), 3 * kKibibyte);
  Read({kB});
  EXPECT_EQ(memory_.stats().copies_out, 3);
}

TEST_F(OnDemandTest, ABlockWithoutContentIsJustGivenUp) {
  memory_.Add(kA, 3 * kKibibyte);
  Read({kA});
  EXPECT_TRUE(memory_.resident(kA));
  AddWritten(kB, 3 * kKibibyte);
  EXPECT_FALSE(memory_.resident(kA));
  EXPECT_EQ(backend_.counts().copies_out, 0);
  EXPECT_EQ(slab_.used_bytes(), 0);
}

TEST_F(OnDemandTest, MovesBlocksTogetherWhereOnlyTheHolesAreTooSmall) {
  for (const Block block : {kA, kB, kC, kD}) AddWritten(block, kKibibyte);
  memory_.Remove(kA);
  memory_.Remove(kC);
  AddWritten(kA, 2 * kKibibyte);
  EXPECT_EQ(memory_.stats().moves, 1);
  EXPECT_EQ(memory_.stats().moved_bytes, kKibibyte);
  EXPECT_EQ(memory_.stats().copies_out, 0);
  EXPECT_TRUE(memory_.resident(kB));
  EXPECT_TRUE(memory_.resident(kD));
}

// Training in miniature: maps that wait for backward between weights that stay.
TEST(OnDemandMovesTest, WithRoomToSpareLittleIsMoved) {
  constexpr Bytes kCapacity = 2048 * kKibibyte;
  constexpr int kLayers = 500;
  device::NullBackend backend;
  std::byte* const base = backend.AllocateDevice(kCapacity);
  Ledger ledger(kCapacity, /*enabled=*/true);
  HostSlab slab(&backend, kMaxBytes, kCapacity);
  OnDemandMemory memory(&backend, base, kCapacity, &slab, &ledger);
  TestRandom random(1);
  std::vector<std::byte*> addresses;
  const auto run = [&](const std::vector<Block>& reads, const std::vector<Block>& writes) {
    memory.Pin(reads, writes, "op", &addresses, &addresses);
    memory.Unpin();
  };
  const auto weight = [](int k) { return Block{k}; };
  const auto map = [](int k) { return Block{1000 + k}; };
  const auto gradient = [](int k) { return Block{2000 + k}; };
  for (int k = 0; k < kLayers; ++k) {
    memory.Add(weight(k), 512 * random.Between(1, 4));
    run({}, {weight(k)});
  }
  for (int k = 0; k < kLayers; ++k) {
    memory.Add(map(k), 512 * random.Between(1, 40));
    run({weight(k)}, {map(k)});
  }
  for (int k = kLayers - 1; k >= 0; --k) {
    memory.Add(gradient(k), 512 * random.Between(1, 40));
    run({weight(k), map(k)}, {gradient(k)});
    memory.Remove(map(k));
    if (k + 1 < kLayers) memory.Remove(gradient(k + 1));
  }
  EXPECT_GT(memory.stats().copies_out, kLayers / 2);
  EXPECT_LT(memory.stats().moves, kLayers);
  memory.Clear();
  backend.FreeDevice(base);
}

TEST_F(OnDemandTest, RefusesAnOpThatNeverFits) {
  memory_.Add(kA, 2 * kKibibyte);
  memory_.Add(kB, 2 * kKibibyte + 1);
  try {
    memory_.Pin(std::vector{kA}, std::vector{kB}, "conv1", &read_, &written_);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), 4608);
    EXPECT_EQ(error.free(), 4096);
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr("op 'conv1'"));
  }
  EXPECT_EQ(ledger_.used_bytes(), 0);
  Write({kA});
  Write({kB});
}

TEST_F(OnDemandTest, RefusesBlocksThatAreNotLive) {
  EXPECT_THROW(Read({kA}), Error);
  EXPECT_THROW(memory_.Remove(kA), Error);
}

TEST_F(OnDemandTest, EmptyBlocksNeedNothing) {
  AddWritten(kA, 4 * kKibibyte);
  memory_.Add(kB, 0);
  Run({kA, kB}, {kB});
  EXPECT_TRUE(memory_.resident(kA));
  EXPECT_EQ(read_.size(), 2U);
  memory_.Remove(kB);
}

TEST_F(OnDemandTest, TakesOverWhatAPlanHasLeft) {
  std::byte* const host = backend_.AllocateHost(kKibibyte);
  memory_.AddAt(kA, 2 * kKibibyte, kKibibyte);
  memory_.AddAt(kB, kKibibyte, 0, host);
  memory_.AddOnHost(kC, kKibibyte, host);
  EXPECT_EQ(memory_.offset(kA), kKibibyte);
  Read({kA, kC});
  EXPECT_EQ(memory_.offset(kC), 3 * kKibibyte);
  EXPECT_EQ(memory_.stats().copies_in, 1);
  EXPECT_EQ(memory_.stats().peak_footprint_bytes, 4 * kKibibyte);
  // The second content of B is worth a copy; the slab holds neither.
  AddWritten(kD, kKibibyte);
  EXPECT_FALSE(memory_.resident(kB));
  EXPECT_EQ(memory_.stats().copies_out, 0);
  EXPECT_EQ(slab_.used_bytes(), 0);
  memory_.Settle();
  EXPECT_EQ(slab_.used_bytes(), kKibibyte);
  EXPECT_NE(memory_.host(kB), host);
  EXPECT_EQ(memory_.host(kC), nullptr);
  backend_.FreeHost(host);
}

TEST_F(OnDemandTest, ArrangesARotationInAFullArena) {
  for (const Block block : {kA, kB, kC, kD}) AddWritten(block, kKibibyte);
  const Bytes a = memory_.offset(kA);
  const Bytes b = memory_.offset(kB);
  const Bytes c = memory_.offset(kC);
  const Bytes d = memory_.offset(kD);
  memory_.Arrange(std::vector<Target>{{kA, b}, {kB, c}, {kC, d}, {kD, a}});
  EXPECT_EQ(memory_.offset(kA), b);
  EXPECT_EQ(memory_.offset(kB), c);
  EXPECT_EQ(memory_.offset(kC), d);
  EXPECT_EQ(memory_.offset(kD), a);
  EXPECT_EQ(memory_.stats().copies_out, 1);
  EXPECT_EQ(memory_.stats().moves, 3);
}

TEST_F(OnDemandTest, ArrangesOnDeviceOnHostInBothAndNowhere) {
  std::byte* const host = backend_.AllocateHost(2 * kKibibyte);
  for (const Block block : {kA, kB, kC, kD}) AddWritten(block, kKibibyte);
  AddWritten(Block{5}, kKibibyte);
  memory_.Arrange(std::vector<Target>{
      {kA, 3 * kKibibyte, host}, {.block = kB, .host = host + kKibibyte}, {.block = kC}});
  EXPECT_EQ(memory_.offset(kA), 3 * kKibibyte);
  EXPECT_EQ(memory_.host(kA), host);
  EXPECT_EQ(memory_.offset(kB), -1);
  EXPECT_EQ(memory_.host(kB), host + kKibibyte);
  EXPECT_FALSE(memory_.has_content(kC));
  for (const Block block : {kD, Block{5}}) {
    EXPECT_FALSE(memory_.resident(block));
    EXPECT_TRUE(memory_.has_content(block));
  }
  EXPECT_EQ(ledger_.used_bytes(), kKibibyte);
  EXPECT_EQ(slab_.used_bytes(), 2 * kKibibyte);
  memory_.Clear();
  EXPECT_EQ(slab_.used_bytes(), 0);
  EXPECT_EQ(ledger_.used_bytes(), 0);
  backend_.FreeHost(host);
}

TEST_F(OnDemandTest, DoesWithoutCopiesThatOnlySaveCopiesWhereTheSlabIsFull) {
  HostSlab small(&backend_, 4 * kKibibyte, kKibibyte);
  Ledger ledger(kCapacity, true);
  OnDemandMemory memory(&backend_, base_, kCapacity, &small, &ledger);
  const auto run = [&](const std::vector<Block>& reads, const std::vector<Block>& writes) {
    memory.Pin(reads, writes, "op", &read_, &written_);
    memory.Unpin();
  };
  for (const Block block : {kA, kB, kC}) memory.Add(block, 2 * kKibibyte);
  for (const Block block : {kA, kB, kC}) run({}, {block});
  run({kA}, {});
  // A is on both sides, B on the host: C can leave only if A's copy is given up.
  EXPECT_EQ(small.used_bytes(), 4 * kKibibyte);
  run({kB}, {});
  EXPECT_EQ(memory.host(kA), nullptr);
  for (const Block block : {kA, kB, kC}) EXPECT_TRUE(memory.has_content(block));
  // With D in B's place nothing else can be given up. What is there stays.
  memory.Add(kD, 2 * kKibibyte);
  run({kA}, {kD});
  EXPECT_THROW(run({kB}, {}), OutOfMemory);
  for (const Block block : {kA, kB, kC, kD}) EXPECT_TRUE(memory.has_content(block));
}

TEST(OnDemandDeathTest, NoticesMisuse) {
  device::NullBackend backend;
  Ledger ledger(4096, true);
  HostSlab slab(&backend);
  OnDemandMemory memory(&backend, backend.AllocateDevice(4096), 4096, &slab, &ledger);
  memory.AddAt(kA, 1024, 0);
  EXPECT_DEATH(memory.Add(kA, 1), "is known already");
  EXPECT_DEATH(memory.AddAt(kB, 1024, 512), "is in use");
  std::vector<std::byte*> addresses;
  memory.Pin(std::vector{kA}, {}, "op", &addresses, &addresses);
  EXPECT_DEATH(memory.Remove(kA), "is pinned");
  EXPECT_DEATH(memory.Arrange({}), "1 blocks are pinned");
}

}  // namespace
}  // namespace plimsoll::exec

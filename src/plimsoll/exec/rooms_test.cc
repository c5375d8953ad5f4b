// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/rooms.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "plimsoll/base/random_for_test.h"

namespace plimsoll::exec {
namespace {

TEST(RoomsTest, GivesAndTakesRooms) {
  Ledger ledger(4096, true);
  Rooms rooms(4096, &ledger);
  EXPECT_EQ(rooms.Take(Block{1}, 1000), 0);
  EXPECT_TRUE(rooms.TakeAt(Block{2}, 2048, 2048));
  EXPECT_FALSE(rooms.TakeAt(Block{3}, 1500, 600));
  EXPECT_EQ(rooms.Take(Block{3}, 1025), std::nullopt);
  EXPECT_EQ(rooms.top_bytes(), 4096);
  EXPECT_EQ(rooms.used_bytes(), 3048);
  EXPECT_TRUE(rooms.HasRoomFor(1024));
  EXPECT_FALSE(rooms.HasRoomFor(1025));
  rooms.Release(2048);
  EXPECT_EQ(rooms.top_bytes(), 1000);
  EXPECT_EQ(ledger.used_bytes(), 1000);
}

TEST(RoomsTest, MovesOverItself) {
  Ledger ledger(4096, true);
  Rooms rooms(4096, &ledger);
  EXPECT_TRUE(rooms.TakeAt(Block{1}, 512, 2000));
  EXPECT_TRUE(rooms.TakeAt(Block{2}, 3584, 512));
  EXPECT_TRUE(rooms.Move(512, 0));
  EXPECT_FALSE(rooms.Move(0, 2000));
  EXPECT_EQ(rooms.blocks(), (std::map<Bytes, Block>{{0, Block{1}}, {3584, Block{2}}}));
  EXPECT_EQ(ledger.used_bytes(), 2512);
}

TEST(RoomsTest, LeavesTheLedgerWithItsRooms) {
  Ledger ledger(4096, true);
  { EXPECT_EQ(Rooms(4096, &ledger).Take(Block{1}, 1000), 0); }
  EXPECT_EQ(ledger.used_bytes(), 0);
}

TEST(RoomsTest, ShiftsTheFewestBytesThatMakeAHole) {
  Ledger ledger(10'240, true);
  Rooms rooms(10'240, &ledger);
  // Holes of 1024 between rooms of 3072, 512 and 1024; 2560 at the top.
  EXPECT_TRUE(rooms.TakeAt(Block{1}, 0, 3072));
  EXPECT_TRUE(rooms.TakeAt(Block{2}, 4096, 512));
  EXPECT_TRUE(rooms.TakeAt(Block{3}, 5632, 1024));
  EXPECT_TRUE(rooms.TakeAt(Block{4}, 7680, 2560));
  const auto shifts = rooms.ShiftsFor(2048);
  ASSERT_EQ(shifts.size(), 1U);
  EXPECT_EQ(shifts[0].block, Block{2});
  EXPECT_EQ(shifts[0].to, 3072);
  EXPECT_EQ(rooms.ShiftsFor(3072).size(), 2U);
}

TEST(RoomsTest, ShiftsMakeAHoleWheneverThereIsRoom) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    TestRandom random(seed);
    const Bytes capacity = random.Between(5000, 40'000);
    Ledger ledger(capacity, true);
    Rooms rooms(capacity, &ledger);
    Bytes next = 0;
    for (std::int64_t i = 0; i < 20; ++i) {
      // Rooms of plans need not be aligned as ours are.
      const Bytes offset = next + random.Between(0, 2000) / 64 * 64;
      const Bytes size_bytes = random.Between(1, 3000);
      if (!rooms.TakeAt(Block{i}, offset, size_bytes)) break;
      next = offset + size_bytes;
    }
    Bytes wanted = random.Between(1, capacity);
    while (wanted > 0 && !rooms.HasRoomFor(AlignUp(wanted, kDefaultAlignment))) wanted -= 100;
    if (wanted <= 0 || rooms.Take(Block{100}, wanted)) continue;
    for (const Rooms::Shift& shift : rooms.ShiftsFor(wanted)) {
      ASSERT_LT(shift.to, shift.from);
      ASSERT_TRUE(rooms.Move(shift.from, shift.to)) << "seed " << seed;
    }
    ASSERT_TRUE(rooms.Take(Block{100}, wanted)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace plimsoll::exec

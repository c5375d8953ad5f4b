// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/pool.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/exec/pool_program_for_test.h"

namespace plimsoll::exec {
namespace {

TEST(PoolTableTest, FindsNoFaultInSoundTables) {
  EXPECT_TRUE(FindFaults(PoolTable{}).empty());
  EXPECT_TRUE(FindFaults(SmallNetwork()).empty());
  EXPECT_TRUE(FindFaults(CarryingTable()).empty());
}

TEST(PoolTableTest, FindsEachKindOfFault) {
  const auto first_fault = [](PoolTable table) {
    const std::vector<std::string> faults = FindFaults(table);
    return faults.empty() ? "" : faults.front();
  };
  const PoolStep a = {kMalloc, 512, 0};
  const PoolStep end_a = {kFree, 512, 0};
  EXPECT_NE(first_fault({{a, {kMalloc, 512, 511}}, {}, 4096}).find("overlaps"), std::string::npos);
  EXPECT_NE(first_fault({{}, {{0, 512, 0}, {1, 8, 8}}, 4096}).find("overlaps"), std::string::npos);
  EXPECT_NE(first_fault({{a, {kFree, 500, 0}}, {}, 4096}).find("not live"), std::string::npos);
  EXPECT_NE(first_fault({{{kFree, 0, 0}}, {}, 4096}).find("not live"), std::string::npos);
  EXPECT_NE(first_fault({{a}, {}, 4096}).find("cycle ends"), std::string::npos);
  EXPECT_NE(first_fault({{{kMalloc, 0, 0}}, {}, 4096}).find("cycle ends"), std::string::npos);
  EXPECT_NE(first_fault({{a, end_a}, {}, 511}).find("footprint"), std::string::npos);
  EXPECT_NE(first_fault({{{kMalloc, -1, 0}}, {}, 511}).find("range"), std::string::npos);
  EXPECT_NE(first_fault({{{kMalloc, 1, kMaxBytes}}, {}, 511}).find("range"), std::string::npos);
}

TEST(PoolTest, RefusesFaultyTablesAndSmallArenas) {
  PoolTable table = SmallNetwork();
  EXPECT_THROW(Pool(BasePointer(), 6143, table), Error);
  table.steps.pop_back();
  EXPECT_THROW(Pool(BasePointer(), 6144, table), Error);
}

TEST(PoolTest, ServesPlannedAddressesOverSeveralCycles) {
  Program program(SmallNetwork(), 6144);
  for (int cycle = 0; cycle < 5; ++cycle) program.RunPlannedCycle();
  const PoolStats stats = program.pool().stats();
  EXPECT_EQ(stats.planned_calls, 5 * 18);
  EXPECT_EQ(stats.on_demand_calls, 0);
  EXPECT_EQ(stats.drifts, 0);
  EXPECT_EQ(stats.live_bytes, 1000);
}

TEST(PoolTest, ServesCarriedBlocksAsPlanned) {
  Program program(CarryingTable(), 3584);
  for (int cycle = 0; cycle < 5; ++cycle) program.RunPlannedCycle();
  EXPECT_EQ(program.pool().stats().drifts, 0);
}

TEST(PoolTest, ServesAnotherSizeAndReturns) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 7);
  void* other = program.Malloc(800);  // In place of 700, step 7.
  EXPECT_FALSE(program.pool().stats().in_step);
  program.Free(other);
  program.Run(9, 18);
  program.ExpectReturnWithin(1);
}

TEST(PoolTest, ServesAnExtraBlockThatStaysForAWhileAndReturnsOnceItIsFreed) {
  Program program(SmallNetwork(), 8192);
  program.Run(0, 4);
  void* extra = program.Malloc(2000);
  EXPECT_GE(OffsetOf(extra), 6144) << "there is room above the plan";
  program.Run(4, 18);
  program.RunCycle();
  EXPECT_FALSE(program.pool().stats().in_step);
  program.Run(0, 9);
  program.Free(extra);
  EXPECT_TRUE(program.pool().stats().in_step) << "all others were at their planned places";
  program.Run(9, 18);
  program.ExpectReturnWithin(0);
}

TEST(PoolTest, ServesAnExtraBlockInsideThePlansArena) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 1);
  void* extra = program.Malloc(1024);
  EXPECT_EQ(OffsetOf(extra), 2048) << "in the way of the plan";
  program.Run(1, 7);
  program.Free(extra);
  program.Run(7, 18);
  program.ExpectReturnWithin(1);
}

TEST(PoolTest, ServesASkippedPairAndReturns) {
  for (const std::size_t pair : {1U, 5U, 7U}) {
    Program program(SmallNetwork(), 6144);
    program.RunPlannedCycle();
    program.Run(0, pair);
    program.Run(pair + 2, 18);
    program.ExpectReturnWithin(1);
    EXPECT_GE(program.pool().stats().drifts, 1);
  }
}

TEST(PoolTest, FindsItsPlaceWithinEightCallsEvenIfTheLiveSetTellsNothing) {
  // On demand, blocks go to 0, where the plan has none.
  PoolTable table;
  for (Bytes size_bytes = 1; size_bytes <= 50; ++size_bytes) {
    table.steps.push_back({kMalloc, size_bytes, 512});
    table.steps.push_back({kFree, size_bytes, 512});
  }
  table.footprint_bytes = 1024;
  Program program(table, 1024);
  program.Run(0, 20);
  program.Run(22, 100);
  EXPECT_TRUE(program.pool().stats().in_step);
  EXPECT_LE(program.pool().stats().on_demand_calls, 8);
  program.RunPlannedCycle();
}

TEST(PoolTest, SettlesACarriedBlockThatWentElsewhere) {
  // A carried block keeps the live set from ever being the initial one while it is elsewhere.
  PoolTable table = CarryingTable();
  Program program(table, 8192);
  program.Run(0, 4);
  void* extra = program.Malloc(512);  // Matches step 4, the carried block's malloc.
  program.Call({kMalloc, 512, 0});    // The carried block, where it does not belong.
  EXPECT_FALSE(program.pool().stats().in_step);
  program.Run(5, 6);
  program.Free(extra);
  program.ExpectReturnWithin(3);
}

TEST(PoolTest, StaysSafeWhereCarriedBlocksTakeEachOthersPlaces) {
  // Each block outlives the birth of the other, so in an arena without room to spare neither finds
  // its place free once they have changed places.
  const PoolTable table = {.steps = {{kMalloc, 512, 512},
                                     {kFree, 512, 0},
                                     {kMalloc, 512, 1024},
                                     {kFree, 512, 1024},
                                     {kMalloc, 512, 0},
                                     {kFree, 512, 512}},
                           .initial = {{.variable = 0, .size_bytes = 512, .offset = 0}},
                           .footprint_bytes = 1536};
  for (const Bytes capacity_bytes : {1536, 2048}) {
    Program program(table, capacity_bytes);
    program.Run(0, 4);
    void* extra = program.Malloc(512);
    program.Run(4, 5);
    program.Run(5, 6);
    program.Free(extra);
    for (int cycle = 0; cycle < 20; ++cycle) program.RunCycle();
    EXPECT_TRUE(capacity_bytes == 1536 || program.pool().stats().in_step);
    if (capacity_bytes > 1536) program.RunPlannedCycle();
  }
}

TEST(PoolTest, ServesFreesInAnotherOrderAndReturnsAtOnce) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 10);
  program.Run(11, 12);
  EXPECT_FALSE(program.pool().stats().in_step);
  program.Run(10, 11);
  EXPECT_TRUE(program.pool().stats().in_step);
  program.Run(12, 18);
  program.ExpectReturnWithin(0);
  EXPECT_EQ(program.pool().stats().on_demand_calls, 2);
}

TEST(PoolTest, ServesARestartInTheMiddle) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 9);  // A, B and C are live.
  program.Run(11, 12);
  program.Run(10, 11);
  program.Run(16, 17);
  EXPECT_TRUE(program.pool().stats().in_step) << "only the initial block is live";
  program.RunPlannedCycle();
}

TEST(PoolTest, ServesARestartThatKeepsOldBlocksForAWhile) {
  Program program(SmallNetwork(), 16384);
  program.Run(0, 5);
  program.Run(0, 5);
  program.Run(5, 18);
  program.Run(10, 12);
  program.Run(16, 17);
  program.ExpectReturnWithin(1);
}

TEST(PoolTest, OutOfMemoryTellsAskedAndFreeAndChangesNothing) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 5);
  const auto expect_out_of_memory = [&program](Bytes free_bytes) {
    try {
      static_cast<void>(program.pool().Malloc(5000));
      FAIL() << "5000 bytes cannot fit";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.asked(), 5000);
      EXPECT_EQ(error.free(), free_bytes);
    }
  };
  const Bytes live_bytes = 1000 + 1024 + 2048 + 512;
  expect_out_of_memory(6144 - live_bytes);
  EXPECT_TRUE(program.pool().stats().in_step);
  EXPECT_EQ(program.pool().stats().drifts, 0);
  void* extra = program.Malloc(1);
  expect_out_of_memory(6144 - live_bytes - 1);
  EXPECT_EQ(program.pool().stats().live_bytes, live_bytes + 1);
  program.Free(extra);
  program.Run(5, 18);
  program.ExpectReturnWithin(0);
}

TEST(PoolTest, RefusesToFreeWhatIsNotLiveAndChangesNothing) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 5);
  const auto expect_refused = [&program](std::uintptr_t address) {
    EXPECT_THROW(program.pool().Free(reinterpret_cast<void*>(address)), Error);
  };
  const auto expect_all_refused = [&expect_refused] {
    expect_refused(0);
    expect_refused(kBase - 512);
    expect_refused(kBase + 512);
    expect_refused(kBase + 4608);
    expect_refused(kBase + 6144);
    expect_refused(kBase + 8192);
  };
  expect_all_refused();
  EXPECT_TRUE(program.pool().stats().in_step);
  void* extra = program.Malloc(1);
  const PoolStats before = program.pool().stats();
  expect_refused(kBase + 512);
  expect_refused(kBase + 6144);
  EXPECT_EQ(program.pool().stats().live_bytes, before.live_bytes);
  EXPECT_EQ(program.pool().stats().on_demand_calls, before.on_demand_calls);
  program.Free(extra);
  expect_refused(reinterpret_cast<std::uintptr_t>(extra));
  program.Run(5, 18);
  program.ExpectReturnWithin(0);
}

TEST(PoolTest, RefusesNegativeSizes) {
  Program program(SmallNetwork(), 6144);
  for (std::size_t i = 0; i < 18; ++i) {
    EXPECT_THROW(program.Malloc(-1), Error);
    EXPECT_THROW(program.Malloc(std::numeric_limits<Bytes>::min()), Error);
    program.Run(i, i + 1);
  }
  EXPECT_EQ(program.pool().stats().drifts, 0);
  EXPECT_THROW(Program({}, 512).Malloc(-2), Error);
}

TEST(PoolTest, GivesEmptyBlocksAnAddressOfTheirOwn) {
  Program program(SmallNetwork(), 6144);
  program.Run(0, 3);
  void* first = program.Malloc(0);
  void* second = program.Malloc(0);
  EXPECT_EQ(OffsetOf(first), 6144);
  EXPECT_EQ(second, first);
  program.Free(first);
  program.Free(second);
  EXPECT_THROW(program.pool().Free(first), Error);
  program.Run(3, 18);  // The plan has an empty block of its own.
  program.ExpectReturnWithin(0);
  EXPECT_EQ(program.pool().Address({.variable = 0, .size_bytes = 0, .offset = 7}), first);
}

TEST(PoolTest, ServesOnDemandIfTheTableIsEmpty) {
  Program program(PoolTable{}, 4096);
  EXPECT_THROW(program.pool().Free(nullptr), Error);
  void* first = program.Malloc(4000);
  EXPECT_THROW(program.Malloc(512), OutOfMemory);
  program.Free(first);
  EXPECT_TRUE(program.pool().stats().in_step);
  EXPECT_EQ(program.pool().stats().live_bytes, 0);
}

}  // namespace
}  // namespace plimsoll::exec

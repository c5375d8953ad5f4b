// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/pool.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll::exec {
namespace {

constexpr auto kMalloc = PoolStep::Kind::kMalloc;
constexpr auto kFree = PoolStep::Kind::kFree;
constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40;  // Nothing is there; nothing must be.

// Makes RapidCheck's cases the same in every run, unless the user wants others.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=1 max_success=150", 0);

void* BasePointer() { return reinterpret_cast<void*>(kBase); }
Bytes OffsetOf(const void* block) {
  return static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(block) - kBase);
}

// Fails a test by an exception, which both GoogleTest and RapidCheck understand.
void Require(bool condition, const std::string& claim) {
  if (!condition) throw std::logic_error("violated: " + claim);
}

// Knows every live block and requires that a new one overlaps none of them. Thread-safe.
class Checker {
 public:
  explicit Checker(Bytes capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  void Add(const void* block, Bytes size_bytes) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Bytes offset = OffsetOf(block);
    if (size_bytes == 0) {
      Require(offset == capacity_bytes_, "an empty block is at the end of the arena");
      return;
    }
    Require(offset % kDefaultAlignment == 0, "a block is aligned");
    Require(offset >= 0 && offset + size_bytes <= capacity_bytes_, "a block is in the arena");
    const auto above = blocks_.lower_bound(offset);
    Require(above == blocks_.end() || offset + size_bytes <= above->first, "no overlap above");
    if (above != blocks_.begin()) {
      const auto below = std::prev(above);
      Require(below->first + below->second <= offset, "no overlap below");
    }
    blocks_[offset] = size_bytes;
  }

  void Remove(const void* block) {
    const std::lock_guard<std::mutex> guard(mutex_);
    blocks_.erase(OffsetOf(block));
  }

  Bytes live_bytes() const {
    Bytes sum = 0;
    for (const auto& [offset, size_bytes] : blocks_) sum += size_bytes;
    return sum;
  }

 private:
  std::mutex mutex_;
  const Bytes capacity_bytes_;
  std::map<Bytes, Bytes> blocks_;
};

// A program that follows a table, or does not, and checks every block that it gets.
class Program {
 public:
  Program(PoolTable table, Bytes capacity_bytes)
      : table_(std::move(table)),
        pool_(BasePointer(), capacity_bytes, table_),
        checker_(capacity_bytes) {
    for (const PoolBlock& block : table_.initial) {
      void* address = pool_.Address(block);
      checker_.Add(address, block.size_bytes);
      held_[{block.offset, block.size_bytes}].push_back(address);
    }
  }

  // Makes the calls of steps [begin, end), whatever places the pool chooses.
  void Run(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) Call(table_.steps[i]);
  }
  void RunCycle() { Run(0, table_.steps.size()); }

  // Makes the calls of a cycle and requires that every block is where the table has it.
  void RunPlannedCycle() {
    for (const PoolStep& step : table_.steps) {
      Require(pool_.stats().in_step, "every call of the cycle is served by the plan");
      const void* block = Call(step);
      Require(step.size_bytes == 0 || OffsetOf(block) == step.offset, "the address is the plan's");
    }
    Require(pool_.stats().in_step, "the cycle ends in step");
    Require(pool_.stats().live_bytes == checker_.live_bytes(),
            "live bytes are those of the blocks");
  }

  // Runs regular cycles, and then one more that must be served as planned.
  void ExpectReturnWithin(int cycles) {
    while (cycles-- > 0) RunCycle();
    RunPlannedCycle();
    Require(pool_.stats().drifts == pool_.stats().returns, "every drift has ended");
  }

  void* Call(const PoolStep& step) {
    std::vector<void*>& held = held_[{step.size_bytes == 0 ? 0 : step.offset, step.size_bytes}];
    if (step.kind == kMalloc) {
      held.push_back(Malloc(step.size_bytes));
      return held.back();
    }
    void* block = held.back();
    held.pop_back();
    Free(block);
    return block;
  }

  void* Malloc(Bytes size_bytes) {
    void* block = pool_.Malloc(size_bytes);
    checker_.Add(block, size_bytes);
    return block;
  }

  void Free(void* block) {
    checker_.Remove(block);
    pool_.Free(block);
  }

  Pool& pool() { return pool_; }
  Checker& checker() { return checker_; }

 private:
  const PoolTable table_;
  Pool pool_;
  Checker checker_;
  std::map<std::pair<Bytes, Bytes>, std::vector<void*>> held_;  // By the table's (offset, size).
};

// A small network: weights W, activations A to F with frees in reverse, workspaces in between.
PoolTable SmallNetwork() {
  return {.steps = {{kMalloc, 1024, 1024},  // 0: A
                    {kMalloc, 600, 2048},   // 1: workspace
                    {kFree, 600, 2048},     // 2
                    {kMalloc, 2048, 2048},  // 3: B
                    {kMalloc, 512, 4096},   // 4: C
                    {kMalloc, 300, 4608},   // 5: workspace
                    {kFree, 300, 4608},     // 6
                    {kMalloc, 700, 5120},   // 7: D
                    {kFree, 700, 5120},     // 8
                    {kMalloc, 900, 4608},   // 9: gradient of C
                    {kFree, 512, 4096},     // 10
                    {kFree, 2048, 2048},    // 11
                    {kMalloc, 0, 0},        // 12: empty
                    {kMalloc, 1500, 2048},  // 13: gradient of B
                    {kFree, 900, 4608},     // 14
                    {kFree, 0, 0},          // 15
                    {kFree, 1024, 1024},    // 16
                    {kFree, 1500, 2048}},   // 17
          .initial = {{.variable = 0, .size_bytes = 1000, .offset = 0}},
          .footprint_bytes = 6144};
}

// A block of 512 bytes is carried over from each cycle to the next.
PoolTable CarryingTable() {
  return {.steps = {{kMalloc, 1024, 512},
                    {kFree, 512, 0},
                    {kMalloc, 2048, 1536},
                    {kFree, 1024, 512},
                    {kMalloc, 512, 0},
                    {kFree, 2048, 1536}},
          .initial = {{.variable = 3, .size_bytes = 512, .offset = 0}},
          .footprint_bytes = 3584};
}

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

// Returns a table of random lifetimes, each block at the place that FreeSpace gives it. Sizes are
// distinct, so that calls can be told apart. The place of every other carried block is kept for it,
// so it may come back at any time; the rest come back at the end.
PoolTable RandomTable(std::mt19937* random, std::size_t persistent, std::size_t carried,
                      std::size_t blocks) {
  const auto below = [random](std::size_t end) { return (*random)() % end; };
  PoolTable table;
  FreeSpace space(Bytes{1} << 40);
  std::vector<PoolBlock> live;
  std::vector<PoolBlock> keeping;  // Carried blocks that are to come back to a place of their own.
  std::vector<PoolBlock> sharing;  // And those whose place is used by others in the meantime.
  Bytes next_size = 0;
  const auto take = [&](std::int64_t variable) {
    next_size += 1 + static_cast<Bytes>(below(900));
    const Bytes offset = space.Take(next_size).value();
    table.footprint_bytes = std::max(table.footprint_bytes, offset + next_size);
    return PoolBlock{.variable = variable, .size_bytes = next_size, .offset = offset};
  };
  const auto add_malloc = [&](const PoolBlock& block) {
    table.steps.push_back({kMalloc, block.size_bytes, block.offset});
  };
  const auto add_free = [&](const PoolBlock& block) {
    table.steps.push_back({kFree, block.size_bytes, block.offset});
    if (block.variable >= 0) (block.variable % 2 == 0 ? keeping : sharing).push_back(block);
    if (block.variable < 0 || block.variable % 2 != 0) space.Release(block.offset).value();
  };
  for (std::size_t i = 0; i < persistent; ++i) table.initial.push_back(take(0));
  for (std::size_t i = 0; i < carried; ++i) {
    live.push_back(take(static_cast<std::int64_t>(i)));
    table.initial.push_back(live.back());
  }
  while (blocks > 0 || !live.empty()) {
    if (!keeping.empty() && below(8) == 0) {
      add_malloc(keeping.back());
      keeping.pop_back();
    } else if (blocks > 0 && (live.empty() || below(5) < 3)) {
      --blocks;
      live.push_back(take(-1));
      add_malloc(live.back());
    } else {
      std::swap(live[below(live.size())], live.back());
      add_free(live.back());
      live.pop_back();
    }
  }
  for (const PoolBlock& block : keeping) add_malloc(block);
  for (const PoolBlock& block : sharing) add_malloc(block);
  return table;
}

// Follows the table for `calls` calls and departs from it at random: extra blocks, freed later or
// never before the end, pairs that are left out, frees that are put off. Ends at a boundary with
// every block freed that a regular program would have freed.
void Perturb(const PoolTable& table, Program* program, std::mt19937* random, int calls) {
  const auto below = [random](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(*random);
  };
  std::vector<void*> extra;
  for (; calls > 0 && !table.steps.empty(); calls -= static_cast<int>(table.steps.size())) {
    std::vector<PoolStep> late;
    for (std::size_t i = 0; i < table.steps.size(); ++i) {
      const std::size_t dice = below(20);
      const PoolStep& step = table.steps[i];
      if (dice == 0) {
        extra.push_back(program->Malloc(static_cast<Bytes>(below(3000))));
      } else if (dice == 1 && !extra.empty()) {
        std::swap(extra[below(extra.size())], extra.back());
        program->Free(extra.back());
        extra.pop_back();
      }
      const bool pair = step.kind == kMalloc && i + 1 < table.steps.size() &&
                        table.steps[i + 1].kind == kFree &&
                        table.steps[i + 1].offset == step.offset;
      if (dice < 10 && pair) {
        ++i;
      } else if (dice == 11 && step.kind == kFree) {
        late.push_back(step);
      } else {
        program->Call(step);
      }
    }
    for (const PoolStep& step : late) program->Call(step);
  }
  for (void* block : extra) program->Free(block);
}

TEST(PoolTest, NeverOverlapsAndReturnsFromAnyPerturbation) {
  EXPECT_TRUE(rc::check([] {
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    const auto persistent = *rc::gen::inRange<std::size_t>(0, 5);
    const auto carried = *rc::gen::inRange<std::size_t>(0, 4);
    const auto blocks = *rc::gen::inRange<std::size_t>(1, 60);
    const PoolTable table = RandomTable(&random, persistent, carried, blocks);
    RC_ASSERT(FindFaults(table).empty());
    // Room for every block of the table, late and early, and for the extra ones.
    const Bytes capacity_bytes = table.footprint_bytes + (Bytes{16} << 20);
    Program program(table, capacity_bytes);
    // Some to recognise the calls, one until the old blocks are gone, one to put the new in place.
    const int cycles = 2 + static_cast<int>(CallHistory::kCalls / table.steps.size() + 1);
    for (int round = 0; round < 5; ++round) {
      Perturb(table, &program, &random, 1000);
      program.ExpectReturnWithin(cycles);
    }
  }));
}

TEST(PoolTest, ReturnsInATightArenaAtABoundaryWithoutCarriedBlocks) {
  EXPECT_TRUE(rc::check([] {
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    const auto blocks = *rc::gen::inRange<std::size_t>(1, 60);
    const PoolTable table = RandomTable(&random, 2, 0, blocks);
    Program program(table, table.footprint_bytes);
    std::vector<void*> got;
    for (int call = 0; call < 2000; ++call) {
      if (!got.empty() && random() % 2 == 0) {
        std::swap(got[random() % got.size()], got.back());
        program.Free(got.back());
        got.pop_back();
        continue;
      }
      try {
        got.push_back(program.Malloc(static_cast<Bytes>(random() % 20000)));
      } catch (const OutOfMemory& error) {
        RC_ASSERT(error.asked() > 0);
      }
    }
    for (void* block : got) program.Free(block);
    // The initial set may come back within the cycle, so the pool may be in step at another place.
    RC_ASSERT(program.pool().stats().in_step);
    program.ExpectReturnWithin(1);
  }));
}

TEST(PoolTest, ServesThreadsThatRaceWithoutOverlap) {
  Program program(SmallNetwork(), 64 * 1024);
  const auto work = [&program](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<void*> got;
    for (int call = 0; call < 5000; ++call) {
      if (got.size() > 8 || (!got.empty() && random() % 2 == 0)) {
        program.Free(got.back());
        got.pop_back();
      } else {
        const PoolStep step = SmallNetwork().steps[random() % 18];
        got.push_back(program.Malloc(step.size_bytes));
      }
      static_cast<void>(program.pool().stats());
    }
    for (void* block : got) program.Free(block);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  program.ExpectReturnWithin(1);
  EXPECT_EQ(program.pool().stats().live_bytes, 1000);
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
//
// Pools under programs that depart from their tables at random, and under threads that race.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/exec/free_space.h"
#include "plimsoll/exec/pool_program_for_test.h"

namespace plimsoll::exec {
namespace {

// Makes RapidCheck's cases the same in every run, unless the user wants others.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=1 max_success=150", 0);

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

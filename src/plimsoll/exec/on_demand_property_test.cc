// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <tuple>
#include <vector>

#include "plimsoll/exec/on_demand_for_test.h"

namespace plimsoll::exec {
namespace {

// What to do, with which block, and how much.
using Action = std::tuple<std::uint8_t, std::uint8_t, std::uint16_t>;

void Do(const Action& action, CheckedMemory* memory) {
  const auto [kind, which, amount] = action;
  const Block a = memory->Nth(which);
  const Block b = memory->Nth(which + 1U + amount % 7U);
  const Block c = memory->Nth(which + 3U + amount % 5U);
  if (a == kNoBlock || kind % 16 < 4) {
    memory->Add(amount % 16 == 0 ? 0 : amount % 6000);
    return;
  }
  switch (kind % 16) {
    case 4:
      return memory->Remove(a);
    case 5:
      return memory->Arrange(/*hand_over=*/false);
    case 6:
      return memory->Arrange(/*hand_over=*/true);
    case 7:
      return memory->memory().Settle();
    case 8:
    case 9:
      return memory->Run({a}, {});
    case 10:
    case 11:
      return memory->Run({a, b}, {c});
    case 12:
      return memory->Run({a, a, c}, {a, b});
    default:
      return memory->Run({}, {a});
  }
}

void CheckSequence(const std::vector<Action>& actions, const CheckedMemory::Options& options) {
  CheckedMemory memory(options);
  std::int64_t refused = 0;
  for (const Action& action : actions) {
    try {
      Do(action, &memory);
    } catch (const OutOfMemory&) {
      // An op too large for the arena, or too many contents for the slab.
      ++refused;
    }
  }
  if (options.host_limit_bytes == kMaxBytes) memory.CheckAll();
  RC_CLASSIFY(refused > 0, "something did not fit");
  RC_CLASSIFY(memory.memory().stats().moves > 0, "blocks were moved");
  RC_CLASSIFY(memory.memory().stats().copies_in > 0, "blocks were fetched");
  RC_ASSERT(!testing::Test::HasFailure());
}

std::vector<Action> ManyActions() {
  return *rc::gen::scale(3.0, rc::gen::arbitrary<std::vector<Action>>());
}

TEST(OnDemandPropertyTest, ContentsAreRightAndTheLimitHolds) {
  EXPECT_TRUE(rc::check([] {
    CheckSequence(ManyActions(), {.capacity_bytes = *rc::gen::inRange<Bytes>(6144, 40'000),
                                  .jitter_ns = 10'000,
                                  .seed = *rc::gen::arbitrary<std::uint8_t>()});
  }));
}

TEST(OnDemandPropertyTest, ContentsAreRightWhereTheSlabIsFull) {
  EXPECT_TRUE(rc::check([] {
    CheckSequence(ManyActions(), {.capacity_bytes = *rc::gen::inRange<Bytes>(6000, 20'000),
                                  .host_limit_bytes = *rc::gen::inRange<Bytes>(0, 60'000),
                                  .seed = *rc::gen::arbitrary<std::uint8_t>()});
  }));
}

// Long runs, each under a new limit.
TEST(OnDemandPropertyTest, LongRunsGrowNothing) {
  for (int i = 0; i < CaseCount(4); ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    TestRandom random(seed);
    CheckedMemory memory({.capacity_bytes = random.Between(8000, 60'000), .seed = seed});
    for (int step = 0; step < 4000; ++step) {
      const auto kind = memory.count() > 30 ? 4 : random.Between(0, 15);
      Do({static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(random.Between(0, 255)),
          static_cast<std::uint16_t>(random.Between(0, 2500))},
         &memory);
    }
    memory.CheckAll();
    // Thirty blocks of less than 2500 bytes, in chunks of 8192.
    EXPECT_LE(memory.slab().reserved_bytes(), 20 * 8192);
  }
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/wheel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

/// The problem of those that take part, where they were placed.
std::vector<Violation> FindViolations(const Problem& problem, const Reduced& reduced,
                                      const Wheel& wheel, Bytes capacity_bytes) {
  Problem part;
  std::vector<Bytes> offsets;
  for (std::size_t k = 0; k < wheel.items().size(); ++k) {
    part.buffers.push_back(problem.buffers[reduced.items[wheel.items()[k]].buffer]);
    offsets.push_back(wheel.offsets()[k] * reduced.unit);
  }
  return FindViolations(part, offsets, capacity_bytes);
}

TEST(WheelTest, FindsTheOptimumOfMostSmallProblems) {
  int found = 0;
  constexpr int kCases = 200;
  for (int k = 0; k < kCases; ++k) {
    TestRandom random(static_cast<std::uint64_t>(k));
    const Problem problem = RandomProblem(
        &random, {.most_buffers = 9, .horizon = random.Between(3, 12), .gaps = random.OneIn(2)});
    const Bytes optimum = OptimalFootprint(problem);
    const Reduced reduced = Reduce(problem);
    Wheel wheel(reduced, optimum / reduced.unit, 1);
    std::int64_t placements = 20'000;
    if (!wheel.Turn(0, &placements)) continue;
    ++found;
    EXPECT_EQ(wheel.items().size(), reduced.items.size());
    EXPECT_TRUE(FindViolations(problem, reduced, wheel, optimum).empty()) << Show(problem);
  }
  EXPECT_GT(found, kCases * 9 / 10);
}

TEST(WheelTest, GivesUpWhenItsPlacementsAreSpent) {
  const Problem problem = {{{"a", {0, 2}, 50}, {"b", {1, 3}, 50}, {"c", {2, 4}, 51}}};
  const Reduced reduced = Reduce(problem);
  Wheel wheel(reduced, 100, 1);
  std::int64_t placements = 10'000;
  EXPECT_FALSE(wheel.Turn(0, &placements));
  EXPECT_GE(placements, 0);
  EXPECT_LT(placements, 3);  // Not enough for one more pass.
}

TEST(WheelTest, GivesUpSoonWhereItIsFarFromFitting) {
  const Problem problem = {{{"a", {0, 2}, 50}, {"b", {1, 3}, 50}, {"c", {2, 4}, 60}}};
  const Reduced reduced = Reduce(problem);
  Wheel wheel(reduced, 100 / reduced.unit, 1);
  std::int64_t placements = 10'000;
  EXPECT_FALSE(wheel.Turn(0, &placements));
  EXPECT_GT(placements, 9'000);
}

TEST(WheelTest, LeavesOutWhatIsSmallAndStacksWhatIsAlwaysThere) {
  const Problem problem = {{
      {"small", {1, 2}, 1},
      {"weight", {0, 9}, 3},
      {"map", {0, 3}, 500},
      {"other map", {2, 9}, 400},
      {"small weight", {0, 9}, 1},
      {"late", {5, 9}, 300},
  }};
  const Reduced reduced = Reduce(problem);
  Wheel wheel(reduced, 1000, 1);
  EXPECT_EQ(wheel.items(), (std::vector<std::size_t>{1, 4, 2, 3, 5}));
  EXPECT_EQ(wheel.small_load(), 1);
  std::int64_t placements = 1000;
  ASSERT_TRUE(wheel.Turn(0, &placements));
  EXPECT_EQ(wheel.offsets()[0], 0);
  EXPECT_EQ(wheel.offsets()[1], 3);
  EXPECT_TRUE(FindViolations(problem, reduced, wheel, 1000).empty());
  // 904 are taken: it may not leave 100 for others.
  EXPECT_FALSE(wheel.Turn(100, &placements));
}

TEST(WheelTest, IsRepeatable) {
  TestRandom random(7);
  const Problem problem = RandomProblem(&random, {.most_buffers = 60, .horizon = 40});
  const Reduced reduced = Reduce(problem);
  std::vector<std::vector<Units>> offsets;
  for (int k = 0; k < 2; ++k) {
    Wheel wheel(reduced, reduced.lower_bound, 3);
    std::int64_t placements = 10'000;
    wheel.Turn(0, &placements);
    offsets.push_back(wheel.offsets());
  }
  EXPECT_EQ(offsets[0], offsets[1]);
}

}  // namespace
}  // namespace plimsoll::place

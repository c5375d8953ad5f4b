// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/smartpool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

using ::testing::ElementsAre;

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

Placement Place(const Problem& problem, Fit fit) {
  Placement placement = fit == Fit::kFirst ? PlaceFirstFit(problem, {}) : PlaceBestFit(problem, {});
  EXPECT_TRUE(FindViolations(problem, placement.offsets).empty());
  return placement;
}

/// Fixed walls around holes at [10, 40), [50, 70) and [80, 100), and a last buffer to be placed.
Problem ThreeHoles(Bytes size, Bytes alignment) {
  return {{
      Live("floor", {0, 9}, 10, 1, 0),
      Live("wall", {0, 9}, 10, 1, 40),
      Live("wall", {0, 9}, 10, 1, 70),
      Live("ceiling", {0, 9}, 10, 1, 100),
      Live("asked", {3, 4}, size, alignment),
  }};
}

TEST(SmartpoolTest, FirstFitTakesTheLowestHoleThatFits) {
  EXPECT_EQ(Place(ThreeHoles(20, 1), Fit::kFirst).offsets[4], 10);
  EXPECT_EQ(Place(ThreeHoles(30, 1), Fit::kFirst).offsets[4], 10);
}

TEST(SmartpoolTest, BestFitTakesTheSmallestHoleThatFitsAndTheLowestOfEquals) {
  EXPECT_EQ(Place(ThreeHoles(19, 1), Fit::kBest).offsets[4], 50);
  EXPECT_EQ(Place(ThreeHoles(20, 1), Fit::kBest).offsets[4], 50);
  EXPECT_EQ(Place(ThreeHoles(21, 1), Fit::kBest).offsets[4], 10);
}

TEST(SmartpoolTest, GoesOnTopIfNoHoleFits) {
  for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
    const Placement placement = Place(ThreeHoles(31, 1), fit);
    EXPECT_EQ(placement.offsets[4], 110);
    EXPECT_EQ(placement.footprint_bytes, 141);
    EXPECT_EQ(Place(ThreeHoles(31, 16), fit).offsets[4], 112);
  }
}

TEST(SmartpoolTest, MeasuresAHoleFromItsFirstAlignedOffset) {
  // Aligned to 16, the holes are [16, 40), [64, 70) and [80, 100).
  EXPECT_EQ(Place(ThreeHoles(20, 16), Fit::kFirst).offsets[4], 16);
  EXPECT_EQ(Place(ThreeHoles(20, 16), Fit::kBest).offsets[4], 80);
  EXPECT_EQ(Place(ThreeHoles(6, 16), Fit::kBest).offsets[4], 64);
  EXPECT_EQ(Place(ThreeHoles(25, 16), Fit::kFirst).offsets[4], 112);
}

TEST(SmartpoolTest, PlacesTheLargestFirstAndEqualsInTheProblemsOrder) {
  const Problem problem = {{
      Live("small", {0, 2}, 10),
      Live("large", {0, 2}, 30),
      Live("small too", {0, 2}, 10),
  }};
  for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
    const Placement placement = Place(problem, fit);
    EXPECT_THAT(placement.offsets, ElementsAre(30, 0, 40));
    EXPECT_EQ(placement.footprint_bytes, 50);
    EXPECT_EQ(placement.lower_bound_bytes, 50);
  }
}

TEST(SmartpoolTest, SharesBytesBetweenLifetimesThatOnlyTouch) {
  const Problem problem = {{Live("a", {0, 2}, 30), Live("b", {2, 4}, 20), Live("c", {1, 3}, 10)}};
  EXPECT_THAT(Place(problem, Fit::kFirst).offsets, ElementsAre(0, 0, 30));
}

TEST(SmartpoolTest, GoesOnTopOfItsNeighboursOnly) {
  const Problem problem = {
      {Live("far", {0, 1}, 90), Live("near", {1, 3}, 20), Live("a", {2, 3}, 5)}};
  EXPECT_THAT(Place(problem, Fit::kBest).offsets, ElementsAre(0, 0, 20));
}

TEST(SmartpoolTest, NeighboursMayOverlapEachOther) {
  // While "asked" lives, "long" is hidden behind the higher top of "short": no hole in between.
  const Problem problem = {{
      Live("short", {0, 2}, 50, 1, 0),
      Live("long", {2, 9}, 10, 1, 0),
      Live("late", {2, 9}, 10, 1, 40),
      Live("asked", {1, 3}, 20),
  }};
  EXPECT_EQ(Place(problem, Fit::kFirst).offsets[3], 50);
}

TEST(SmartpoolTest, UsesTheGapOfAnother) {
  const Problem problem = {{
      Live("around", {0, 10}, 30, 1, {}, {{3, 7}}),
      Live("inside", {3, 7}, 20),
      Live("across", {2, 7}, 10),
  }};
  EXPECT_THAT(Place(problem, Fit::kFirst).offsets, ElementsAre(0, 0, 30));
}

TEST(SmartpoolTest, AvoidsNeighboursInEveryStretchOfALifetimeWithGaps) {
  const Problem problem = {{
      Live("early", {0, 2}, 10, 1, 0),
      Live("in the gap", {4, 6}, 10, 1, 10),
      Live("late", {8, 9}, 10, 1, 20),
      Live("asked", {1, 9}, 10, 1, {}, {{2, 8}}),
  }};
  EXPECT_EQ(Place(problem, Fit::kFirst).offsets[3], 10);
}

TEST(SmartpoolTest, PutsEmptyBuffersAtZeroUnlessTheyAreFixed) {
  const Problem problem = {{
      Live("a", {0, 9}, 10),
      Live("empty", {0, 9}, 0),
      Live("empty and fixed", {0, 9}, 0, 1, 5),
  }};
  EXPECT_THAT(Place(problem, Fit::kBest).offsets, ElementsAre(0, 0, 5));
}

TEST(SmartpoolTest, PlacesInTheOrderGivenAroundObstaclesAndLeavesTheRestOut) {
  Problem problem = {{
      Live("first", {0, 9}, 10),
      Live("obstacle", {0, 9}, 10),
      Live("left out", {0, 9}, 10),
      Live("second", {0, 9}, 20),
  }};
  std::vector<Bytes> offsets = {kUnplaced, 15, kUnplaced, kUnplaced};
  PlaceInOrder(problem, {0, 3}, Fit::kFirst, &offsets);
  EXPECT_THAT(offsets, ElementsAre(0, 15, kUnplaced, 25));
  problem.buffers.erase(problem.buffers.begin() + 2);
  offsets.erase(offsets.begin() + 2);
  EXPECT_TRUE(FindViolations(problem, offsets).empty());
}

bool AreNeighbours(const Buffer& a, const Buffer& b) {
  for (const Interval& x : LiveIntervals(a)) {
    for (const Interval& y : LiveIntervals(b)) {
      if (x.lower < y.upper && y.lower < x.upper) return a.size_bytes > 0 && b.size_bytes > 0;
    }
  }
  return false;
}

/// The obvious algorithm: tries zero and every top, and keeps the best that collides with nothing.
Bytes FindOffsetByTrial(const Problem& problem, const std::vector<Bytes>& offsets,
                        std::size_t asked, Fit fit) {
  const Buffer& buffer = problem.buffers[asked];
  std::vector<std::pair<Bytes, Bytes>> taken;
  std::vector<Bytes> candidates = {0};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] == kUnplaced || !AreNeighbours(buffer, problem.buffers[i])) continue;
    taken.emplace_back(offsets[i], offsets[i] + problem.buffers[i].size_bytes);
    candidates.push_back(AlignUp(taken.back().second, buffer.alignment));
  }
  std::sort(candidates.begin(), candidates.end());
  Bytes best = kUnplaced;
  Bytes best_hole = 0;
  for (const Bytes candidate : candidates) {
    Bytes ceiling = std::numeric_limits<Bytes>::max();
    for (const auto& [lower, upper] : taken) {
      if (upper > candidate) ceiling = std::min(ceiling, lower);
    }
    const Bytes hole = ceiling - candidate;
    if (hole < buffer.size_bytes || (best != kUnplaced && hole >= best_hole)) continue;
    best = candidate;
    best_hole = hole;
    if (fit == Fit::kFirst) break;
  }
  return best;
}

/// Draws from [lower, upper) uniformly; a bare inRange() would begin with small values.
template <typename Number>
Number Draw(Number lower, Number upper) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Number>(lower, upper));
}

/// Many short lifetimes, so that neighbours are both looked up and searched for.
Problem ManyBuffers() {
  const auto count = Draw<std::size_t>(0, 600);
  const auto longest = Draw<Time>(2, 100);
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    const Time lower = Draw<Time>(-300, 300);
    const Time upper = lower + Draw<Time>(1, longest);
    const Bytes size = Draw<Bytes>(0, 40);
    const Bytes alignment = *rc::gen::element<Bytes>(1, 1, 8, 12);
    problem.buffers.push_back(Live("", {lower, upper}, size, alignment));
    if (upper - lower >= 4 && i % 4 == 0) problem.buffers.back().gaps = {{lower + 1, upper - 1}};
  }
  return problem;
}

RC_GTEST_PROP(SmartpoolTest, AgreesWithTheObviousAlgorithm, ()) {
  const Problem problem = ManyBuffers();
  std::vector<std::size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
    std::vector<Bytes> offsets(problem.buffers.size(), kUnplaced);
    PlaceInOrder(problem, order, fit, &offsets);
    RC_ASSERT(FindViolations(problem, offsets).empty());
    std::vector<Bytes> expected(problem.buffers.size(), kUnplaced);
    for (const std::size_t i : order) expected[i] = FindOffsetByTrial(problem, expected, i, fit);
    RC_ASSERT(offsets == expected);
  }
}

RC_GTEST_PROP(SmartpoolTest, LeavesFixedBuffersWhereTheyAre, ()) {
  Problem problem = ManyBuffers();
  const std::vector<Bytes> offsets = PlaceBestFit(problem, {}).offsets;
  for (std::size_t i = 0; i < offsets.size(); i += 3) problem.buffers[i].fixed_offset = offsets[i];
  for (const Fit fit : {Fit::kFirst, Fit::kBest}) {
    const Placement placement = Place(problem, fit);
    RC_ASSERT(placement.footprint_bytes >= placement.lower_bound_bytes);
    RC_ASSERT(FindViolations(problem, placement.offsets, placement.footprint_bytes).empty());
  }
}

}  // namespace
}  // namespace plimsoll::place

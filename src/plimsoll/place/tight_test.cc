// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

/// Runs `tight` and checks what must hold of every answer.
Placement Place(const Problem& problem, const PlannerOptions& options = {}) {
  Placement placement = PlaceTight(problem, options);
  const std::vector<Violation> violations =
      FindViolations(problem, placement.offsets, placement.footprint_bytes);
  for (const Violation& violation : violations) {
    ADD_FAILURE() << violation.message << Show(problem, placement.offsets);
  }
  if (violations.empty()) {
    EXPECT_EQ(placement.footprint_bytes, HighestTop(problem, placement.offsets));
  }
  EXPECT_GE(placement.lower_bound_bytes, LowerBound(problem));
  EXPECT_LE(placement.lower_bound_bytes, placement.footprint_bytes) << Show(problem);
  return placement;
}

/// The kinds of problem that the properties below go through.
RandomProblemOptions RandomOptions(TestRandom* random, std::int64_t most_buffers) {
  static const std::vector<std::vector<Bytes>> kAlignments = {{1}, {512}, {1, 2, 4}, {64, 512}};
  RandomProblemOptions options;
  options.most_buffers = most_buffers;
  options.horizon = random->Between(3, 12);
  options.alignments = random->OneOf(kAlignments);
  options.most_bytes = options.alignments.back() * random->Between(1, 10);
  options.gaps = random->OneIn(2);
  options.fixed = random->OneIn(3);
  options.zero_sizes = random->OneIn(2);
  return options;
}

TEST(TightTest, PlacesNothing) {
  const Placement placement = Place({});
  EXPECT_TRUE(placement.offsets.empty());
  EXPECT_EQ(placement.footprint_bytes, 0);
  EXPECT_EQ(placement.lower_bound_bytes, 0);
}

TEST(TightTest, PlacesBuffersThatHoldNothing) {
  const Problem problem = {{Live("empty", {0, 9}, 0, 512), Live("fixed", {0, 9}, 0, 512, 1024)}};
  EXPECT_EQ(Place(problem).footprint_bytes, 0);
  EXPECT_EQ(Place({{Live("never", {0, 9}, 100, 1, {}, {{0, 9}})}}).footprint_bytes, 100);
}

TEST(TightTest, FindsTheOnlyOrderThatReachesThePeak) {
  // Greedy by size leaves a hole: the best placement has the large one in the middle.
  const Problem problem = {{
      Live("a", {0, 4}, 3),
      Live("b", {0, 6}, 4),
      Live("c", {4, 9}, 3),
      Live("d", {6, 12}, 4),
      Live("e", {9, 12}, 3),
  }};
  EXPECT_EQ(Place(problem).footprint_bytes, OptimalFootprint(problem));
}

TEST(TightTest, PutsTheBufferWithTheMostPaddingOnTop) {
  const Problem problem = {{Live("a", {0, 9}, 500, 512), Live("b", {0, 9}, 100, 512)}};
  EXPECT_EQ(Place(problem).footprint_bytes, 612);
  std::vector<Buffer> turned(problem.buffers.rbegin(), problem.buffers.rend());
  EXPECT_EQ(Place({turned}).footprint_bytes, 612);
}

TEST(TightTest, UsesGaps) {
  const Problem problem = {{
      Live("around", {0, 9}, 10, 1, {}, {{2, 7}}),
      Live("inside", {2, 7}, 10),
  }};
  EXPECT_EQ(Place(problem).footprint_bytes, 10);
}

TEST(TightTest, StopsAsSoonAsTheCapacityIsKept) {
  const Problem problem = GenerateStack({.count = 2000, .seed = 9});
  const Bytes peak = PeakLoad(problem);
  const Placement placement =
      Place(problem, {.capacity_bytes = 2 * peak, .time_budget_seconds = 60});
  EXPECT_LE(placement.footprint_bytes, 2 * peak);
  int calls = 0;
  Place(problem, {.capacity_bytes = 2 * peak,
                  .time_budget_seconds = 60,
                  .on_progress = [&](Bytes, Bytes) { ++calls; }});
  EXPECT_EQ(calls, 1);
}

TEST(TightTest, KeepsTheCapacityWheneverThatIsPossible) {
  for (int c = 0; c < CaseCount(300); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(
        &random, {.most_buffers = 6, .gaps = random.OneIn(2), .fixed = random.OneIn(3)});
    const Bytes optimum = OptimalFootprint(problem);
    const Bytes capacity = optimum + random.Between(0, 2);
    ASSERT_LE(Place(problem, {.capacity_bytes = capacity}).footprint_bytes, capacity)
        << "case " << c << Show(problem);
  }
}

TEST(TightTest, ReturnsAValidPlacementIfTheCapacityIsOutOfReach) {
  for (int c = 0; c < CaseCount(300); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 6));
    const Bytes optimum = OptimalFootprint(problem);
    const Bytes capacity = random.Between(0, std::max<Bytes>(optimum - 1, 0));
    const Placement placement = Place(problem, {.capacity_bytes = capacity});
    ASSERT_LE(placement.lower_bound_bytes, optimum) << "case " << c << Show(problem);
    ASSERT_FALSE(HasFailure()) << "case " << c;
  }
}

TEST(TightTest, ReturnsAValidPlacementWithoutAnyTime) {
  for (int c = 0; c < CaseCount(500); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 30));
    Place(problem, {.time_budget_seconds = 0});
    ASSERT_FALSE(HasFailure()) << "case " << c;
  }
}

TEST(TightTest, KeepsFixedBuffersThatNeverHoldAByteInTheirPlace) {
  // They are no obstacle, but rivals that know no fixed offsets must stay out all the same.
  for (int c = 0; c < CaseCount(300); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    Problem problem = RandomProblem(&random, {.least_buffers = 8, .most_buffers = 30});
    for (Buffer& buffer : problem.buffers) buffer.size_bytes *= 512;
    problem.buffers.push_back(Live("fixed and empty", {0, 9}, 0, 512, 1024));
    if (random.OneIn(2)) {
      problem.buffers.push_back(Live("fixed and never live", {0, 9}, 2, 1, 3, {{0, 9}}));
    }
    Place(problem, {.time_budget_seconds = 0});
    ASSERT_FALSE(HasFailure()) << "case " << c;
  }
}

TEST(TightTest, FindsTheOptimumOfSmallProblems) {
  for (int c = 0; c < CaseCount(1000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    RandomProblemOptions options = RandomOptions(&random, 6);
    // In units: what the rounding of the topmost size leaves is another question, see below.
    options.most_bytes = std::max<Bytes>(options.most_bytes / 512, 2);
    options.fixed = false;
    Problem problem = RandomProblem(&random, options);
    for (Buffer& buffer : problem.buffers) buffer.size_bytes *= 512;
    if (random.OneIn(3)) FixSome(&random, &problem);
    const Bytes optimum = OptimalFootprint(problem);
    const Placement placement = Place(problem);
    ASSERT_EQ(placement.footprint_bytes, optimum) << "case " << c << Show(problem);
    ASSERT_LE(placement.lower_bound_bytes, optimum) << "case " << c << Show(problem);
  }
}

TEST(TightTest, FindsTheOptimumOfAnySmallProblemUpToTheSharedAlignment) {
  for (int c = 0; c < CaseCount(1000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 1'000'000);
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 6));
    Bytes shared = 0;
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.size_bytes > 0) shared = std::gcd(shared, buffer.alignment);
    }
    const Bytes optimum = OptimalFootprint(problem);
    const Placement placement = Place(problem);
    ASSERT_LE(placement.footprint_bytes, AlignUp(optimum, std::max<Bytes>(shared, 1)))
        << "case " << c << Show(problem);
    ASSERT_LE(placement.lower_bound_bytes, optimum) << "case " << c << Show(problem);
  }
}

TEST(TightTest, IsNeverWorseThanAnyOtherPlanner) {
  for (int c = 0; c < CaseCount(200); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 40));
    const bool has_fixed =
        std::any_of(problem.buffers.begin(), problem.buffers.end(),
                    [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
    const Placement placement = Place(problem, {.time_budget_seconds = 0.01});
    for (const Planner& rival : Planners()) {
      if (rival.name == "cudamalloc" || (rival.online && has_fixed)) continue;
      const std::vector<Bytes> offsets =
          rival.place(problem, {.time_budget_seconds = 0.01}).offsets;
      if (rival.name == "tight") continue;
      ASSERT_LE(placement.footprint_bytes, HighestTop(problem, offsets))
          << rival.name << ", case " << c << Show(problem, offsets);
    }
  }
}

TEST(TightTest, ReachesThePeakLoadOfStacks) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Problem problem = GenerateStack({.count = 500, .seed = seed});
    EXPECT_EQ(Place(problem).footprint_bytes, PeakLoad(problem)) << "seed " << seed;
  }
}

TEST(TightTest, GivesTheSamePlacementForTheSameSeed) {
  for (int c = 0; c < CaseCount(100); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 7));
    const PlannerOptions options = {.time_budget_seconds = 100, .seed = 17};
    ASSERT_EQ(Place(problem, options).offsets, Place(problem, options).offsets) << "case " << c;
  }
}

TEST(TightTest, WithABudgetOfNodesAsksNoClock) {
  // Not even a spent time budget matters.
  for (int c = 0; c < CaseCount(100); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 55'000);
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 30));
    for (const std::int64_t nodes : {0, 1, 50, 5000}) {
      PlannerOptions options;
      options.node_budget = nodes;
      const Placement one = Place(problem, options);
      options.time_budget_seconds = 0;
      const Placement two = Place(problem, options);
      ASSERT_EQ(one.offsets, two.offsets) << "case " << c << ", " << nodes << " nodes";
      ASSERT_EQ(one.lower_bound_bytes, two.lower_bound_bytes) << "case " << c;
    }
  }
}

TEST(TightTest, MoreNodesNeverMakeItWorse) {
  int better = 0;
  for (int c = 0; c < CaseCount(200); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 66'000);
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 40));
    PlannerOptions options;
    options.node_budget = 0;
    const Placement greedy = Place(problem, options);
    options.node_budget = 20'000;
    const Placement searched = Place(problem, options);
    ASSERT_LE(searched.footprint_bytes, greedy.footprint_bytes) << "case " << c;
    better += searched.footprint_bytes < greedy.footprint_bytes ? 1 : 0;
  }
  EXPECT_GT(better, 0) << "the search is of use";
}

TEST(TightTest, FindsTheOptimumOfSmallProblemsWithAFewNodes) {
  for (int c = 0; c < CaseCount(100); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 88'000);
    const Problem problem =
        RandomProblem(&random, {.most_buffers = 6, .horizon = 8, .most_bytes = 8});
    PlannerOptions options;
    options.node_budget = 20'000;
    ASSERT_EQ(Place(problem, options).footprint_bytes, OptimalFootprint(problem)) << "case " << c;
  }
}

TEST(TightTest, ReportsProgressThatNeverGetsWorse) {
  const Problem problem = GenerateStack({.count = 3000, .seed = 6});
  Bytes best_so_far = kMaxBytes;
  PlannerOptions options;
  options.time_budget_seconds = 0.2;
  options.on_progress = [&](Bytes best, Bytes lower_bound) {
    EXPECT_LT(best, best_so_far);
    EXPECT_LE(lower_bound, best);
    best_so_far = best;
  };
  EXPECT_EQ(Place(problem, options).footprint_bytes, best_so_far);
}

TEST(TightTest, FitsIntoTheCapacityThatItFindsWithoutOne) {
  TestRandom random(77);
  for (std::int64_t i = 0; i < CaseCount(300); ++i) {
    const Problem problem = RandomProblem(&random, RandomOptions(&random, 25));
    PlannerOptions options;
    options.time_budget_seconds = 0.05;
    options.capacity_bytes = Place(problem, options).footprint_bytes;
    options.time_budget_seconds = 1;
    EXPECT_LE(Place(problem, options).footprint_bytes, options.capacity_bytes) << Show(problem);
  }
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/place/reduced.h"
#include "plimsoll/place/search.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// The optimum of a core, its base included.
Units OptimalHeight(const Core& core) {
  return core.base_height + OptimalHeight(ToBrute(core.problem));
}

/// All items of a core, ascending.
std::set<std::size_t> ItemsOf(const Core& core) {
  std::set<std::size_t> items(core.items.begin(), core.items.end());
  items.insert(core.base.begin(), core.base.end());
  EXPECT_EQ(items.size(), core.items.size() + core.base.size());
  return items;
}

TEST(CoreTest, HoldsWhatCrossesALoadedSectionAndNothingElse) {
  const Problem problem = {{
      {"early", {0, 3}, 2},
      {"through", {0, 20}, 3},
      {"peak", {5, 10}, 6},
      {"peak too", {6, 12}, 4},
      {"late", {15, 20}, 5},
  }};
  const Reduced reduced = Reduce(problem);
  const Core core = ExtractCore(reduced, 13);
  EXPECT_EQ(ItemsOf(core), (std::set<std::size_t>{1, 2, 3}));
  EXPECT_EQ(ItemsOf(ExtractCore(reduced, 8)), (std::set<std::size_t>{1, 2, 3, 4}));
  EXPECT_EQ(ItemsOf(ExtractCore(reduced, 0)), (std::set<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(ItemsOf(ExtractCore(reduced, 14)).empty());
}

TEST(CoreTest, SeesAnOverlapOutsideTheLoadedSections) {
  // "left" and "right" each cross one of the two peaks and meet only in the valley between them.
  const Problem problem = {{
      {"left", {0, 6}, 5},
      {"left peak", {0, 3}, 8},
      {"right", {4, 10}, 5},
      {"right peak", {7, 10}, 8},
      {"valley", {5, 6}, 1},
  }};
  const Reduced reduced = Reduce(problem);
  const Core core = ExtractCore(reduced, 13);
  ASSERT_EQ(core.items, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_TRUE(ToBrute(core.problem).meet[0][2]);
  EXPECT_FALSE(ToBrute(core.problem).meet[1][2]);
  SkylineSearch search(core.problem, 1);
  ASSERT_EQ(search.Run(13, {}, kNoLimit, Deadline::Never()), SearchStatus::kFound);
  const std::vector<Units>& offsets = search.offsets();
  EXPECT_TRUE(offsets[0] + 5 <= offsets[2] || offsets[2] + 5 <= offsets[0]);
}

TEST(CoreTest, StacksWhatCrossesEverythingAtTheBottomLongestFirst) {
  const Problem problem = {{
      {"short base", {3, 9}, 2},
      {"a", {3, 5}, 6},
      {"b", {5, 9}, 6},
      {"long base", {0, 12}, 3},
      {"low", {10, 11}, 1},
  }};
  const Core core = ExtractCore(Reduce(problem), 11);
  EXPECT_EQ(core.base, (std::vector<std::size_t>{3, 0}));
  EXPECT_EQ(core.base_height, 5);
  EXPECT_EQ(core.items, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(core.incidences, 2U);
}

TEST(CoreTest, HasNoBaseWhereOffsetsAreNotFree) {
  const Problem fixed = {{{"base", {0, 9}, 2}, {"a", {0, 4}, 2}, {"b", {4, 9}, 2, 1, 6}}};
  EXPECT_TRUE(ExtractCore(Reduce(fixed), 0).base.empty());
  const Problem aligned = {{{"base", {0, 9}, 1}, {"a", {0, 4}, 2, 8}, {"b", {4, 9}, 2, 4}}};
  EXPECT_TRUE(ExtractCore(Reduce(aligned), 0).base.empty());
}

TEST(CoreTest, DoesNotTakeABufferWithAGapForABase) {
  const Problem problem = {{
      {"gap", {0, 9}, 4, 1, {}, {{3, 6}}},
      {"left", {0, 3}, 4},
      {"in the gap", {3, 6}, 8},
      {"right", {6, 9}, 4},
  }};
  const Core core = ExtractCore(Reduce(problem), 0);
  EXPECT_TRUE(core.base.empty());
  EXPECT_EQ(OptimalHeight(core), 2);  // Of 4 bytes each.
}

TEST(CoreTest, IsTheWholeProblemIfTheThresholdIsZero) {
  for (int c = 0; c < CaseCount(2000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(
        &random, {.most_buffers = 6, .gaps = random.OneIn(2), .fixed = random.OneIn(3)});
    const Reduced reduced = Reduce(problem);
    SearchProblem whole{reduced.section_count, {}};
    for (const Reduced::Item& item : reduced.items) {
      whole.buffers.push_back({item.ranges, item.size, item.alignment, item.fixed_offset});
    }
    const Core core = ExtractCore(reduced, 0);
    ASSERT_EQ(ItemsOf(core).size(), reduced.items.size());
    ASSERT_EQ(OptimalHeight(core), place::OptimalHeight(ToBrute(whole)))
        << "case " << c << Show(problem);
  }
}

TEST(CoreTest, KeepsAllOverlapsAndNeverNeedsMoreThanTheWholeProblem) {
  for (int c = 0; c < CaseCount(3000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(
        &random,
        {.most_buffers = 6, .horizon = 12, .gaps = random.OneIn(2), .fixed = random.OneIn(3)});
    SCOPED_TRACE(Show(problem));
    const Reduced reduced = Reduce(problem);
    const Units threshold = random.Between(0, reduced.lower_bound);
    const Core core = ExtractCore(reduced, threshold);
    const BruteProblem brute = ToBrute(core.problem);
    for (std::size_t i = 0; i < core.items.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        ASSERT_EQ(brute.meet[i][j],
                  OverlapInTime(problem.buffers[reduced.items[core.items[i]].buffer],
                                problem.buffers[reduced.items[core.items[j]].buffer]))
            << "case " << c << ", threshold " << threshold;
      }
    }
    // What is at the bottom meets everything else.
    for (const std::size_t base : core.base) {
      for (const std::size_t item : core.items) {
        ASSERT_TRUE(OverlapInTime(problem.buffers[reduced.items[base].buffer],
                                  problem.buffers[reduced.items[item].buffer]));
      }
    }
    // So that a core that does not fit is a proof.
    ASSERT_LE(OptimalHeight(core) * reduced.unit, OptimalFootprint(problem)) << "case " << c;
  }
}

TEST(CoreTest, CoresGrow) {
  // The load rises with time, so that each threshold lets more buffers in.
  Problem problem;
  for (Time time = 1; time <= 6000; ++time) {
    problem.buffers.push_back({std::to_string(time), {time, time + 2}, time});
  }
  const Reduced reduced = Reduce(problem);
  const std::vector<Core> cores = ExtractCores(reduced, reduced.lower_bound);
  ASSERT_GT(cores.size(), 1U);
  for (std::size_t c = 0; c + 1 < cores.size(); ++c) {
    const std::set<std::size_t> thin = ItemsOf(cores[c]);
    const std::set<std::size_t> thick = ItemsOf(cores[c + 1]);
    EXPECT_LT(thin.size(), thick.size());
    EXPECT_TRUE(std::includes(thick.begin(), thick.end(), thin.begin(), thin.end()));
  }
  EXPECT_EQ(ItemsOf(cores.back()).size(), reduced.items.size());
}

TEST(CoreTest, OneCoreIsEnoughForASmallProblem) {
  const Reduced reduced = Reduce(GenerateStack({.count = 200, .peak_bytes = 1 << 20}));
  const std::vector<Core> cores = ExtractCores(reduced, reduced.lower_bound);
  ASSERT_EQ(cores.size(), 1U);
  EXPECT_EQ(ItemsOf(cores.front()).size(), reduced.items.size());
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/skyline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/load_tree.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

constexpr std::array kKeys = {DiveKey::kArea, DiveKey::kTimeArea, DiveKey::kLength, DiveKey::kTime,
                              DiveKey::kSize};

/// Dives with every key in both modes and returns the footprints of the placements, all valid.
std::vector<Bytes> DiveInEveryWay(const Problem& problem) {
  const Reduced reduced = Reduce(problem);
  SkylineDiver diver(reduced);
  std::vector<Bytes> footprints;
  for (const DiveKey key : kKeys) {
    for (const bool critical_first : {false, true}) {
      const std::vector<Units> dive = diver.Dive(key, critical_first);
      const std::vector<Bytes> offsets = reduced.Expand(problem, dive);
      for (const Violation& violation : FindViolations(problem, offsets)) {
        ADD_FAILURE() << violation.message << " with key " << static_cast<int>(key)
                      << (critical_first ? ", critical first" : "") << Show(problem, offsets);
      }
      footprints.push_back(HighestTop(problem, offsets));
    }
  }
  return footprints;
}

/// A family of lifetimes of which any two are disjoint or one within the other, as of calls.
void AddNest(TestRandom* random, Interval within, int depth, Problem* problem) {
  Time from = within.lower;
  while (from < within.upper) {
    const Interval lifetime{from, random->Between(from + 1, within.upper)};
    problem->buffers.push_back(
        {std::to_string(problem->buffers.size()), lifetime, random->Between(1, 100)});
    if (depth > 0) AddNest(random, lifetime, depth - 1, problem);
    from = lifetime.upper + random->Between(0, 3);
  }
}

TEST(SkylineTest, OfNothingIsNothing) {
  const Reduced reduced = Reduce({});
  SkylineDiver diver(reduced);
  EXPECT_TRUE(diver.Dive(DiveKey::kArea, true).empty());
  EXPECT_TRUE(diver.Dive(DiveKey::kArea, false).empty());
}

TEST(SkylineTest, PlacesTheLargestKeyOnTheLowestPlateauFirst) {
  const Problem problem = {{
      {"long and thin", {0, 10}, 1},
      {"short and thick", {0, 2}, 30},
      {"late", {5, 9}, 2},
  }};
  const Reduced reduced = Reduce(problem);
  SkylineDiver diver(reduced);
  EXPECT_EQ(diver.Dive(DiveKey::kTime, false), (std::vector<Units>{0, 1, 1}));
  EXPECT_EQ(diver.Dive(DiveKey::kSize, false), (std::vector<Units>{30, 0, 0}));
}

TEST(SkylineTest, TakesWhatCrossesTheMostLoadedSectionFirstIfAsked) {
  // The left part is larger, but the right one is where the load peaks.
  const Problem problem = {{
      {"left", {0, 20}, 10},
      {"across", {15, 24}, 3},
      {"right", {22, 30}, 9},
      {"right too", {22, 30}, 8},
  }};
  const Reduced reduced = Reduce(problem);
  SkylineDiver diver(reduced);
  EXPECT_EQ(diver.Dive(DiveKey::kTimeArea, false)[0], 0);
  const std::vector<Units> critical = diver.Dive(DiveKey::kTimeArea, true);
  EXPECT_EQ(critical[2], 0);
  EXPECT_TRUE(FindViolations(problem, reduced.Expand(problem, critical)).empty());
}

TEST(SkylineTest, GivesTheSameAnswerAgain) {
  const Problem problem = GenerateStack({.count = 300, .peak_bytes = 1 << 20});
  EXPECT_EQ(DiveInEveryWay(problem), DiveInEveryWay(problem));
}

TEST(SkylineTest, PlacementsOfRandomProblemsAreValid) {
  const std::vector<std::vector<Bytes>> alignments = {{1}, {4}, {1, 4, 16}, {4, 6}, {1, 512}};
  for (int c = 0; c < CaseCount(500); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, {.most_buffers = 40,
                                                    .horizon = random.Between(2, 30),
                                                    .most_bytes = random.Between(1, 50),
                                                    .alignments = random.OneOf(alignments),
                                                    .gaps = random.OneIn(3),
                                                    .zero_sizes = true});
    DiveInEveryWay(problem);
    ASSERT_FALSE(HasFailure()) << "case " << c;
  }
}

TEST(SkylineTest, PlacementsOfLargeProblemsAreValidAndNotFarAboveTheirPeak) {
  const Problem problem = GenerateStack({.count = 5000, .seed = 3});
  const std::vector<Bytes> footprints = DiveInEveryWay(problem);
  EXPECT_LT(*std::min_element(footprints.begin(), footprints.end()), PeakLoad(problem) * 11 / 10);
}

TEST(SkylineTest, PlacesNestedLifetimesAtTheirPeakLoad) {
  for (int c = 0; c < CaseCount(200); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    Problem problem;
    AddNest(&random, {0, random.Between(5, 60)}, 4, &problem);
    const Reduced reduced = Reduce(problem);
    SkylineDiver diver(reduced);
    // Longest first, a nested family has no holes; other orders may leave some.
    for (const bool critical_first : {false, true}) {
      const std::vector<Bytes> offsets =
          reduced.Expand(problem, diver.Dive(DiveKey::kTime, critical_first));
      ASSERT_TRUE(FindViolations(problem, offsets, PeakLoad(problem)).empty())
          << "case " << c << Show(problem, offsets);
    }
  }
}

/// Buffers of a cycle, many of which live around its end.
Problem RandomCycle(TestRandom* random) {
  static const std::vector<std::vector<Bytes>> kAlignments = {{1}, {4}, {1, 4, 16}};
  const std::vector<Bytes>& alignments = random->OneOf(kAlignments);
  const Time period = random->Between(3, 30);
  Problem problem;
  for (std::int64_t k = random->Between(1, 30); k > 0; --k) {
    Buffer buffer;
    buffer.id = std::to_string(k);
    buffer.size_bytes = random->Between(1, 30);
    buffer.alignment = random->OneOf(alignments);
    const Time begin = random->Between(0, period - 1);
    const Time end = random->Between(0, period);
    buffer.lifetime = begin < end ? Interval{begin, end} : Interval{0, period};
    // Around the end; or, if nothing is left of the gap, all the time.
    if (0 < end && end < begin) buffer.gaps = {{end, begin}};
    problem.buffers.push_back(std::move(buffer));
  }
  return problem;
}

TEST(SkylineTest, StacksWhatLivesAroundTheEndAtTheBottom) {
  //     time     0    2    4    6    8
  //     long     ██████████     ██████      30 bytes, away for [4, 6)
  //     short    █████               ██     20 bytes, away for [2, 7)
  //     middle             ██████           50 bytes in the gap of both: [4, 6)
  //     early         █████                 20 bytes in the gap of the short one: [2, 4)
  const Problem problem = {{
      {"short", {0, 8}, 20, 1, {}, {{2, 7}}},
      {"middle", {4, 6}, 50},
      {"long", {0, 8}, 30, 1, {}, {{4, 6}}},
      {"early", {2, 4}, 20},
  }};
  for (const Bytes footprint : DiveInEveryWay(problem)) EXPECT_EQ(footprint, 50);
  const Reduced reduced = Reduce(problem);
  EXPECT_EQ(SkylineDiver(reduced).Dive(DiveKey::kSize, false), (std::vector<Units>{3, 0, 0, 3}))
      << "in units of ten bytes";
}

TEST(SkylineTest, PlacementsAroundTheEndOfACycleAreValid) {
  for (int c = 0; c < CaseCount(1000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 77'000);
    const Problem problem = RandomCycle(&random);
    const std::vector<Bytes> footprints = DiveInEveryWay(problem);
    ASSERT_FALSE(HasFailure()) << "case " << c;
    ASSERT_GE(*std::min_element(footprints.begin(), footprints.end()), PeakLoad(problem));
  }
}

TEST(SkylineTest, LoadTreeFindsTheLeftmostOfTheHeaviestSectionsAndItsLoad) {
  for (int c = 0; c < CaseCount(300); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    std::vector<Units> loads(static_cast<std::size_t>(random.Between(1, 20)));
    for (Units& load : loads) load = random.Between(0, 9);
    LoadTree tree(loads);
    const auto count = static_cast<SectionIndex>(loads.size());
    for (int step = 0; step < 50; ++step) {
      const auto begin = static_cast<SectionIndex>(random.Between(0, count - 1));
      const auto end = static_cast<SectionIndex>(random.Between(begin + 1, count));
      if (random.OneIn(2)) {
        const Units value = random.Between(-5, 5);
        tree.Add(begin, end, value);
        for (SectionIndex s = begin; s < end; ++s) loads[static_cast<std::size_t>(s)] += value;
      } else {
        const auto heaviest = std::max_element(loads.begin() + begin, loads.begin() + end);
        ASSERT_EQ(tree.HeaviestIn(begin, end), heaviest - loads.begin()) << "case " << c;
        ASSERT_EQ(tree.HighestIn(begin, end), *heaviest) << "case " << c;
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::place

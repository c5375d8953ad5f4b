// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"

namespace plimsoll::place {
namespace {

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

TEST(LoadTest, OfNothingIsZero) {
  EXPECT_EQ(PeakLoad({}), 0);
  EXPECT_EQ(LowerBound({}), 0);
  const Problem empty_buffer = {{Live("empty", {0, 9}, 0, 512)}};
  EXPECT_EQ(PeakLoad(empty_buffer), 0);
  EXPECT_EQ(LowerBound(empty_buffer), 0);
}

TEST(LoadTest, PeakIsTheLargestSumOfSizesAtOneMoment) {
  const Problem problem = {{
      Live("a", {0, 10}, 100),
      Live("b", {1, 4}, 20),
      Live("c", {3, 6}, 30),
      Live("d", {6, 9}, 45),
  }};
  EXPECT_EQ(PeakLoad(problem), 150);
  EXPECT_EQ(LowerBound(problem), 150);
}

TEST(LoadTest, CountsAnEndBeforeAStartAtTheSameTime) {
  EXPECT_EQ(PeakLoad({{Live("a", {0, 5}, 100), Live("b", {5, 9}, 100)}}), 100);
  EXPECT_EQ(PeakLoad({{Live("b", {5, 9}, 100), Live("a", {0, 5}, 100)}}), 100);
}

TEST(LoadTest, DoesNotCountABufferInItsGaps) {
  const Problem problem = {{
      Live("a", {0, 9}, 100, 1, {}, {{2, 4}, {4, 6}}),
      Live("b", {2, 6}, 70),
      Live("never", {0, 9}, 1000, 1, {}, {{0, 9}}),
  }};
  EXPECT_EQ(PeakLoad(problem), 100);
}

TEST(LoadTest, BoundRoundsUpAllButWhatMayLieOnTop) {
  // Whoever is on top, the other two take 512 bytes each; the largest padding, 412, is saved.
  const Problem problem = {{
      Live("a", {0, 9}, 100, 512),
      Live("b", {0, 9}, 500, 512),
      Live("c", {0, 9}, 200, 512),
  }};
  EXPECT_EQ(PeakLoad(problem), 800);
  EXPECT_EQ(LowerBound(problem), 1124);
  EXPECT_EQ(OptimalFootprint(problem), 1124);
}

TEST(LoadTest, BoundUsesTheAlignmentThatAllOffsetsShare) {
  const Problem problem = {{Live("a", {0, 9}, 5, 4), Live("b", {0, 9}, 5, 6)}};
  // All offsets are even, no more can be said.
  EXPECT_EQ(LowerBound(problem), 11);
  EXPECT_EQ(LowerBound({{Live("a", {0, 9}, 5, 4), Live("b", {0, 9}, 5, 1)}}), 10);
}

TEST(LoadTest, BoundForgetsThePaddingOfWhatHasGone) {
  const Problem problem = {{
      Live("thin", {0, 1}, 1, 512),
      Live("a", {1, 9}, 1024, 512),
      Live("b", {1, 9}, 1000, 512),
  }};
  EXPECT_EQ(LowerBound(problem), 2024);
}

TEST(LoadTest, BoundIsAtLeastEveryFixedTop) {
  EXPECT_EQ(LowerBound({{Live("a", {0, 1}, 10, 1, 90), Live("b", {0, 1}, 20)}}), 100);
  EXPECT_EQ(LowerBound({{Live("empty", {0, 1}, 0, 1, 90), Live("b", {0, 1}, 20)}}), 20);
  EXPECT_EQ(LowerBound({{Live("never live", {0, 1}, 10, 1, 90, {{0, 1}})}}), 100);
  EXPECT_EQ(LowerBound({{Live("never live", {0, 1}, 10, 1, {}, {{0, 1}})}}), 10);
}

TEST(LoadTest, PeakIsThatOfTheBusiestMoment) {
  for (int c = 0; c < CaseCount(20000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem =
        RandomProblem(&random, {.most_buffers = 12, .gaps = true, .zero_sizes = true});
    Bytes peak = 0;
    for (Time time = 0; time < 8; ++time) {
      Bytes load = 0;
      for (const Buffer& buffer : problem.buffers) {
        load += IsLiveAt(buffer, time) ? buffer.size_bytes : 0;
      }
      peak = std::max(peak, load);
    }
    ASSERT_EQ(PeakLoad(problem), peak) << "case " << c << Show(problem);
  }
}

TEST(LoadTest, BoundIsBetweenThePeakAndTheBestOfAllPlacements) {
  const std::vector<std::vector<Bytes>> alignments = {{1}, {4}, {2, 4, 8}, {6, 4}, {1, 16}};
  int reached = 0;
  const int cases = CaseCount(20000);
  for (int c = 0; c < cases; ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem problem = RandomProblem(&random, {.most_buffers = 5,
                                                    .most_bytes = 20,
                                                    .alignments = random.OneOf(alignments),
                                                    .gaps = random.OneIn(2),
                                                    .fixed = random.OneIn(2),
                                                    .zero_sizes = true});
    const Bytes bound = LowerBound(problem);
    const Bytes optimum = OptimalFootprint(problem);
    ASSERT_LE(PeakLoad(problem), bound) << "case " << c << Show(problem);
    ASSERT_LE(bound, optimum) << "case " << c << Show(problem);
    reached += bound == optimum ? 1 : 0;
  }
  EXPECT_GT(reached, cases / 2);
}

}  // namespace
}  // namespace plimsoll::place

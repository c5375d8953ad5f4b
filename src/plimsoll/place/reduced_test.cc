// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/reduced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

using Pairs = std::vector<std::pair<SectionIndex, SectionIndex>>;

Pairs RangesOf(const Reduced& reduced, std::size_t item) {
  Pairs ranges;
  for (const SectionRange& range : reduced.items[item].ranges) {
    ranges.emplace_back(range.begin, range.end);
  }
  return ranges;
}

/// The items of each section.
std::vector<std::set<std::size_t>> Members(const Reduced& reduced) {
  std::vector<std::set<std::size_t>> members(static_cast<std::size_t>(reduced.section_count));
  for (std::size_t i = 0; i < reduced.items.size(); ++i) {
    for (const SectionRange& range : reduced.items[i].ranges) {
      for (SectionIndex s = range.begin; s < range.end; ++s) {
        EXPECT_TRUE(members[static_cast<std::size_t>(s)].insert(i).second) << "twice in " << s;
      }
    }
  }
  return members;
}

TEST(ReducedTest, CutsTimeAsThePictureInTheHeaderSays) {
  const Reduced reduced = Reduce({{
      Live("A", {0, 24}, 2),
      Live("B", {0, 9}, 2),
      Live("C", {6, 11}, 2),
      Live("D", {14, 21}, 2),
  }});
  EXPECT_EQ(reduced.section_count, 2);
  EXPECT_EQ(RangesOf(reduced, 0), (Pairs{{0, 2}}));
  EXPECT_EQ(RangesOf(reduced, 1), (Pairs{{0, 1}}));
  EXPECT_EQ(RangesOf(reduced, 2), (Pairs{{0, 1}}));
  EXPECT_EQ(RangesOf(reduced, 3), (Pairs{{1, 2}}));
  EXPECT_EQ(reduced.load, (std::vector<Units>{3, 2}));
  EXPECT_EQ(reduced.lower_bound, 3);
  EXPECT_EQ(reduced.unit, 2);
}

TEST(ReducedTest, GivesABufferOneRangePerLiveInterval) {
  const Reduced reduced = Reduce({{
      Live("a", {0, 9}, 1, 1, {}, {{2, 4}, {4, 6}}),
      Live("b", {3, 5}, 1),
  }});
  EXPECT_EQ(RangesOf(reduced, 0), (Pairs{{0, 1}, {2, 3}}));
  EXPECT_EQ(RangesOf(reduced, 1), (Pairs{{1, 2}}));
  EXPECT_TRUE(reduced.has_gaps);
}

TEST(ReducedTest, DropsBuffersThatNeverHoldAByteAndKeepsTheOrderOfTheOthers) {
  const Problem problem = {{
      Live("empty", {0, 9}, 0, 1024),
      Live("a", {0, 9}, 3),
      Live("never", {0, 9}, 7, 1, {}, {{0, 4}, {4, 9}}),
      Live("b", {0, 9}, 6),
      Live("fixed and empty", {0, 9}, 0, 1, 40),
  }};
  const Reduced reduced = Reduce(problem);
  ASSERT_EQ(reduced.items.size(), 2U);
  EXPECT_EQ(reduced.items[0].buffer, 1U);
  EXPECT_EQ(reduced.items[1].buffer, 3U);
  EXPECT_FALSE(reduced.has_fixed);
  EXPECT_FALSE(reduced.has_gaps);
  const std::vector<Bytes> offsets =
      reduced.Expand(problem, {0, 3 / static_cast<Units>(reduced.unit)});
  EXPECT_EQ(offsets, (std::vector<Bytes>{0, 0, 0, 3, 40}));
  EXPECT_TRUE(FindViolations(problem, offsets).empty());
}

TEST(ReducedTest, OfNothingHasNoSections) {
  const Reduced reduced = Reduce({});
  EXPECT_EQ(reduced.section_count, 0);
  EXPECT_EQ(reduced.lower_bound, 0);
  EXPECT_EQ(reduced.Height({}), 0);
  EXPECT_TRUE(reduced.Expand({}, {}).empty());
}

TEST(ReducedTest, RoundsSizesToTheSharedAlignmentAndDividesByTheCommonDivisor) {
  const Reduced reduced = Reduce({{
      Live("a", {0, 9}, 1000, 512),
      Live("b", {0, 9}, 2048, 512),
      Live("c", {0, 9}, 3000, 512, 4096),
  }});
  EXPECT_EQ(reduced.unit, 1024);
  EXPECT_EQ(reduced.items[0].size, 1);
  EXPECT_EQ(reduced.items[1].size, 2);
  EXPECT_EQ(reduced.items[2].size, 3);
  EXPECT_EQ(reduced.items[2].fixed_offset, 4);
  EXPECT_LT(reduced.items[0].fixed_offset, 0);
  EXPECT_TRUE(reduced.has_fixed);
  EXPECT_TRUE(reduced.uniform_alignment);
  EXPECT_EQ(reduced.lower_bound, 7);
  EXPECT_EQ(reduced.Height({0, 1, 4}), 7);
}

TEST(ReducedTest, KeepsStricterAlignmentsAsWholeUnits) {
  const Reduced reduced = Reduce({{
      Live("a", {0, 9}, 100, 64),
      Live("b", {0, 9}, 1024, 256),
      Live("c", {0, 9}, 64, 64),
  }});
  EXPECT_EQ(reduced.unit, 64);
  EXPECT_FALSE(reduced.uniform_alignment);
  EXPECT_EQ(reduced.items[0].size, 2);
  EXPECT_EQ(reduced.items[0].alignment, 1);
  EXPECT_EQ(reduced.items[1].alignment, 4);
  // Neither alignment is a multiple of the other.
  const Reduced odd = Reduce({{Live("a", {0, 9}, 12, 4), Live("b", {0, 9}, 12, 6)}});
  EXPECT_EQ(odd.unit, 2);
  EXPECT_EQ(odd.items[0].alignment, 2);
  EXPECT_EQ(odd.items[1].alignment, 3);
}

TEST(ReducedTest, CountsAnAlignmentThatDividesEverySizeAsUniform) {
  const Reduced reduced = Reduce({{Live("a", {0, 9}, 512, 64), Live("b", {0, 9}, 1024, 512)}});
  EXPECT_EQ(reduced.unit, 512);
  EXPECT_TRUE(reduced.uniform_alignment);
}

TEST(ReducedTest, TakesLifetimesFromTheBeginningToTheEndOfTime) {
  const Reduced reduced = Reduce({{
      Live("always", {std::numeric_limits<Time>::min(), std::numeric_limits<Time>::max()}, 1),
      Live("a", {0, 9}, 1),
  }});
  EXPECT_EQ(reduced.section_count, 1);
  EXPECT_GT(reduced.items[0].length, reduced.items[1].length);
}

TEST(ReducedTest, BuffersShareASectionExactlyIfTheyOverlapInTime) {
  for (int c = 0; c < CaseCount(5000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const bool gaps = random.OneIn(2);
    const Problem problem = RandomProblem(
        &random, {.most_buffers = 9, .horizon = 12, .gaps = gaps, .zero_sizes = true});
    SCOPED_TRACE(Show(problem));
    const Reduced reduced = Reduce(problem);
    const std::vector<std::set<std::size_t>> members = Members(reduced);
    for (std::size_t i = 0; i < reduced.items.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool share =
            std::any_of(members.begin(), members.end(), [&](const std::set<std::size_t>& section) {
              return section.contains(i) && section.contains(j);
            });
        ASSERT_EQ(share, OverlapInTime(problem.buffers[reduced.items[i].buffer],
                                       problem.buffers[reduced.items[j].buffer]));
      }
    }
    // Every section is the set that is live at some moment, and holds its load.
    for (std::size_t s = 0; s < members.size(); ++s) {
      Units load = 0;
      for (const std::size_t i : members[s]) load += reduced.items[i].size;
      ASSERT_EQ(reduced.load[s], load);
      ASSERT_LE(load, reduced.lower_bound);
      bool exists = false;
      for (Time time = 0; time < 12; ++time) {
        exists = exists || std::all_of(members[s].begin(), members[s].end(), [&](std::size_t i) {
                   return IsLiveAt(problem.buffers[reduced.items[i].buffer], time);
                 });
      }
      ASSERT_TRUE(exists) << "section " << s;
    }
    if (gaps) continue;
    // Without gaps, no section is part of another.
    for (std::size_t s = 0; s < members.size(); ++s) {
      for (std::size_t t = 0; t < members.size(); ++t) {
        ASSERT_TRUE(s == t || !std::includes(members[t].begin(), members[t].end(),
                                             members[s].begin(), members[s].end()));
      }
    }
  }
}

TEST(ReducedTest, LosesNothingIfSizesAreMultiplesOfTheSharedAlignment) {
  const std::vector<std::vector<Bytes>> alignments = {{1}, {4}, {4, 8}, {4, 12, 8}, {8, 12}};
  for (int c = 0; c < CaseCount(3000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    Problem problem = RandomProblem(&random, {.most_buffers = 5,
                                              .alignments = random.OneOf(alignments),
                                              .gaps = random.OneIn(2),
                                              .fixed = false});
    for (Buffer& buffer : problem.buffers) buffer.size_bytes *= 24;
    if (random.OneIn(2)) FixSome(&random, &problem);
    const Reduced reduced = Reduce(problem);
    SearchProblem search{reduced.section_count, {}};
    for (const Reduced::Item& item : reduced.items) {
      search.buffers.push_back({item.ranges, item.size, item.alignment, item.fixed_offset});
    }
    // Buffers that are never live have a top, but nothing to do with the reduced problem.
    std::erase_if(problem.buffers, [](const Buffer& b) { return LiveIntervals(b).empty(); });
    ASSERT_EQ(OptimalHeight(ToBrute(search)) * reduced.unit, OptimalFootprint(problem))
        << "case " << c << Show(problem);
  }
}

}  // namespace
}  // namespace plimsoll::place

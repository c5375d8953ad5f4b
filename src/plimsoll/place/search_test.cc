// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plimsoll/place/brute_force_for_test.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/place/reduced.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::vector<SearchStrategy> AllStrategies() {
  std::vector<SearchStrategy> strategies;
  for (int s = 0; s < kSearchOrders * kSectionRules; ++s) {
    strategies.push_back({static_cast<SearchOrder>(s / kSectionRules),
                          static_cast<SectionRule>(s % kSectionRules), 0});
  }
  return strategies;
}

/// The reduced problem as the search takes it, with nothing left out.
SearchProblem ToSearch(const Reduced& reduced) {
  SearchProblem search{reduced.section_count, {}};
  for (const Reduced::Item& item : reduced.items) {
    search.buffers.push_back(
        {item.ranges, item.size, item.alignment, item.fixed_offset, item.length});
  }
  return search;
}

/// Whether the offsets are a placement of the problem within the capacity.
bool IsPlacement(const SearchProblem& problem, const std::vector<Units>& offsets, Units capacity) {
  const BruteProblem brute = ToBrute(problem);
  if (offsets.size() != brute.items.size()) return false;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const BruteProblem::Item& item = brute.items[i];
    if (offsets[i] < 0 || offsets[i] + item.size > capacity) return false;
    if (offsets[i] % item.alignment != 0) return false;
    if (item.fixed_offset >= 0 && offsets[i] != item.fixed_offset) return false;
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart =
          offsets[i] + item.size <= offsets[j] || offsets[j] + brute.items[j].size <= offsets[i];
      if (brute.meet[i][j] && !apart) return false;
    }
  }
  return true;
}

std::string Show(const SearchProblem& problem) {
  std::string text;
  for (const SearchBuffer& buffer : problem.buffers) {
    text += "\n  {{";
    for (const SectionRange& range : buffer.ranges) {
      text += fmt::format("{{{}, {}}}, ", range.begin, range.end);
    }
    text += "}, " + std::to_string(buffer.size) + ", " + std::to_string(buffer.alignment) + ", " +
            std::to_string(buffer.fixed_offset) + "},";
  }
  return text;
}

/// Runs one strategy without limits and holds the answer against the optimum.
void CheckAnswer(SkylineSearch* search, const SearchProblem& problem, Units optimum, Units capacity,
                 const SearchStrategy& strategy) {
  const SearchStatus status = search->Run(capacity, strategy, kNoLimit, Deadline::Never());
  const SearchStatus right = capacity >= optimum ? SearchStatus::kFound : SearchStatus::kInfeasible;
  ASSERT_EQ(status, right) << "capacity " << capacity << ", optimum " << optimum << ", order "
                           << static_cast<int>(strategy.order) << ", rule "
                           << static_cast<int>(strategy.rule) << Show(problem);
  if (status == SearchStatus::kFound) {
    ASSERT_TRUE(IsPlacement(problem, search->offsets(), capacity))
        << "capacity " << capacity << Show(problem);
  }
}

/// Three sections with loads of 4, but no placement of height 4: the two of size 2 at the ends
/// would have to be at the bottom or at the top, and whichever they are, the chain between breaks.
const SearchProblem kTightChain = {3,
                                   {
                                       {{{0, 1}}, 2, 1, -1, 1},
                                       {{{0, 2}}, 2, 1, -1, 2},
                                       {{{1, 2}}, 2, 1, 1, 1},
                                   }};

TEST(SearchTest, FindsThePlacementOfNothing) {
  SkylineSearch search({0, {}}, 1);
  EXPECT_EQ(search.Run(0, {}, kNoLimit, Deadline::Never()), SearchStatus::kFound);
  EXPECT_TRUE(search.offsets().empty());
}

TEST(SearchTest, FindsOneBufferIfItFits) {
  const SearchProblem problem = {1, {{{{0, 1}}, 5}}};
  SkylineSearch search(problem, 1);
  EXPECT_EQ(search.Run(5, {}, kNoLimit, Deadline::Never()), SearchStatus::kFound);
  EXPECT_EQ(search.offsets(), (std::vector<Units>{0}));
  EXPECT_EQ(search.Run(4, {}, kNoLimit, Deadline::Never()), SearchStatus::kInfeasible);
}

TEST(SearchTest, StepsAroundFixedBuffers) {
  const SearchProblem problem = {1, {{{{0, 1}}, 2, 1, 3}, {{{0, 1}}, 3}, {{{0, 1}}, 4}}};
  SkylineSearch search(problem, 1);
  EXPECT_EQ(search.Run(9, {}, kNoLimit, Deadline::Never()), SearchStatus::kFound);
  EXPECT_EQ(search.offsets(), (std::vector<Units>{3, 0, 5}));
  EXPECT_EQ(search.Run(8, {}, kNoLimit, Deadline::Never()), SearchStatus::kInfeasible);
}

TEST(SearchTest, ProvesThatALoadThatWouldFitDoesNot) {
  for (const SearchStrategy& strategy : AllStrategies()) {
    SkylineSearch search(kTightChain, 1);
    EXPECT_EQ(search.Run(4, strategy, kNoLimit, Deadline::Never()), SearchStatus::kInfeasible);
    EXPECT_EQ(search.Run(5, strategy, kNoLimit, Deadline::Never()), SearchStatus::kFound);
    EXPECT_TRUE(IsPlacement(kTightChain, search.offsets(), 5));
  }
}

TEST(SearchTest, ForgetsThePlacementOfAnEarlierRunOnlyWhenItFindsAnother) {
  SkylineSearch search(kTightChain, 1);
  ASSERT_EQ(search.Run(7, {}, kNoLimit, Deadline::Never()), SearchStatus::kFound);
  const std::vector<Units> offsets = search.offsets();
  ASSERT_EQ(search.Run(4, {}, kNoLimit, Deadline::Never()), SearchStatus::kInfeasible);
  EXPECT_EQ(search.offsets(), offsets);
}

TEST(SearchTest, GivesUpAtTheNodeLimitAndAtTheDeadline) {
  const Reduced reduced = Reduce(GenerateStack({.count = 200, .peak_bytes = 1 << 18, .seed = 5}));
  SkylineSearch search(ToSearch(reduced), 1);
  EXPECT_EQ(search.Run(reduced.lower_bound, {}, 1, Deadline::Never()), SearchStatus::kGaveUp);
  EXPECT_LE(search.nodes(), 2);
  EXPECT_EQ(search.Run(reduced.lower_bound, {}, kNoLimit, Deadline(0)), SearchStatus::kGaveUp);
}

TEST(SearchTest, DoesTheSameForTheSameSeed) {
  const Reduced reduced = Reduce(GenerateStack({.count = 400, .peak_bytes = 1 << 20, .seed = 2}));
  SkylineSearch one(ToSearch(reduced), 7);
  SkylineSearch two(ToSearch(reduced), 7);
  for (const SearchStrategy& strategy : AllStrategies()) {
    SearchStrategy noisy = strategy;
    noisy.noise = 0.1;
    const Units capacity = reduced.lower_bound + reduced.lower_bound / 50;
    ASSERT_EQ(one.Run(capacity, noisy, 2000, Deadline::Never()),
              two.Run(capacity, noisy, 2000, Deadline::Never()));
    EXPECT_EQ(one.nodes(), two.nodes());
    EXPECT_EQ(one.offsets(), two.offsets());
  }
}

TEST(SearchTest, DoesNotRecurseOncePerUnitOfEmptySpace) {
  // The last two can lift the rest by a unit or two at a time, hundreds of thousands of times,
  // before it is clear that nothing helps. Once this overflowed the stack.
  constexpr Units kLarge = 1'000'000;
  const SearchProblem problem = {2,
                                 {
                                     {{{0, 2}}, 4 * kLarge},
                                     {{{0, 1}}, 1 * kLarge, 1, 0},
                                     {{{0, 1}}, 2 * kLarge, 1, 2 * kLarge},
                                     {{{0, 1}}, 5 * kLarge},
                                     {{{1, 2}}, 4 * kLarge},
                                     {{{0, 2}}, 1},
                                     {{{0, 2}}, 2},
                                 }};
  ASSERT_EQ(OptimalHeight(ToBrute(problem)), 13 * kLarge);
  SkylineSearch search(problem, 1);
  for (const SearchStrategy& strategy : AllStrategies()) {
    EXPECT_NE(search.Run(13 * kLarge - 400'000, strategy, 100'000, Deadline::Never()),
              SearchStatus::kFound);
  }
}

TEST(SearchTest, EveryStrategyIsRightOnSmallProblems) {
  const std::vector<SearchStrategy> strategies = AllStrategies();
  for (int c = 0; c < CaseCount(3000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c));
    const Problem original = RandomProblem(
        &random,
        {.most_buffers = 6, .horizon = random.Between(3, 10), .most_bytes = random.Between(2, 12)});
    const SearchProblem problem = ToSearch(Reduce(original));
    const Units optimum = OptimalHeight(ToBrute(problem));
    SkylineSearch search(problem, 1);
    for (const Units slack : {-1, 0, 1}) {
      SearchStrategy strategy = random.OneOf(strategies);
      strategy.noise = random.OneIn(2) ? 0.1 : 0;
      CheckAnswer(&search, problem, optimum, optimum + slack, strategy);
      ASSERT_FALSE(HasFatalFailure()) << "case " << c;
    }
  }
}

TEST(SearchTest, IsRightWithGapsFixedOffsetsAndAlignments) {
  const std::vector<SearchStrategy> strategies = AllStrategies();
  const std::vector<std::vector<Bytes>> alignments = {{1}, {1, 2, 4}, {2, 3}, {1, 8}};
  for (int c = 0; c < CaseCount(6000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 1'000'000);
    const Problem original = RandomProblem(&random, {.most_buffers = 6,
                                                     .horizon = random.Between(3, 10),
                                                     .most_bytes = random.Between(2, 12),
                                                     .alignments = random.OneOf(alignments),
                                                     .gaps = random.OneIn(2),
                                                     .fixed = random.OneIn(2)});
    const SearchProblem problem = ToSearch(Reduce(original));
    const Units optimum = OptimalHeight(ToBrute(problem));
    SkylineSearch search(problem, 1);
    for (const Units slack : {-2, -1, 0, 1, 5}) {
      CheckAnswer(&search, problem, optimum, std::max<Units>(optimum + slack, 0),
                  random.OneOf(strategies));
      ASSERT_FALSE(HasFatalFailure()) << "case " << c;
    }
  }
}

TEST(SearchTest, IsRightWithManyEqualBuffers) {
  // Twins are told apart only by number: the case for which symmetry is broken.
  const std::vector<SearchStrategy> strategies = AllStrategies();
  for (int c = 0; c < CaseCount(1000); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 2'000'000);
    Problem original = RandomProblem(
        &random,
        {.least_buffers = 2, .most_buffers = 4, .horizon = 4, .most_bytes = 4, .gaps = true});
    while (original.buffers.size() < 7) {
      original.buffers.push_back(random.OneOf(original.buffers));
    }
    const SearchProblem problem = ToSearch(Reduce(original));
    const Units optimum = OptimalHeight(ToBrute(problem));
    SkylineSearch search(problem, 1);
    for (const Units slack : {-1, 0}) {
      CheckAnswer(&search, problem, optimum, std::max<Units>(optimum + slack, 0),
                  random.OneOf(strategies));
      ASSERT_FALSE(HasFatalFailure()) << "case " << c;
    }
  }
}

TEST(SearchTest, AllStrategiesThatFinishAgree) {
  const std::vector<SearchStrategy> strategies = AllStrategies();
  for (int c = 0; c < CaseCount(50); ++c) {
    TestRandom random(static_cast<std::uint64_t>(c) + 3'000'000);
    const Problem original = RandomProblem(&random, {.least_buffers = 8,
                                                     .most_buffers = 16,
                                                     .horizon = 14,
                                                     .most_bytes = 20,
                                                     .gaps = random.OneIn(2),
                                                     .fixed = random.OneIn(3)});
    const Reduced reduced = Reduce(original);
    const SearchProblem problem = ToSearch(reduced);
    SkylineSearch search(problem, 1);
    for (const Units capacity : {reduced.lower_bound, reduced.lower_bound + 1}) {
      bool found = false;
      bool infeasible = false;
      for (const SearchStrategy& strategy : strategies) {
        const SearchStatus status = search.Run(capacity, strategy, 20'000, Deadline::Never());
        found = found || status == SearchStatus::kFound;
        infeasible = infeasible || status == SearchStatus::kInfeasible;
        if (status == SearchStatus::kFound) {
          ASSERT_TRUE(IsPlacement(problem, search.offsets(), capacity)) << "case " << c;
        }
      }
      ASSERT_FALSE(found && infeasible)
          << "case " << c << " capacity " << capacity << Show(problem);
    }
  }
}

}  // namespace
}  // namespace plimsoll::place

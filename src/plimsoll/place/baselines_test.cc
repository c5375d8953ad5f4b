// SPDX-License-Identifier: Apache-2.0
//
// The two simplest baselines, the events that online ones replay, the registry, and what holds for
// every planner in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

using ::testing::ElementsAre;

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

Placement Place(PlaceFunction place, const Problem& problem) {
  Placement placement = place(problem, {});
  EXPECT_TRUE(FindViolations(problem, placement.offsets).empty());
  return placement;
}

TEST(BaselinesTest, CudaMallocGivesEachItsOwnAddressesAndTakesThePeakLoad) {
  const Problem problem = {{
      Live("a", {0, 2}, 100),
      Live("empty", {0, 9}, 0, 512),
      Live("b", {2, 4}, 60, 64),
      Live("c", {1, 3}, 20),
  }};
  const Placement placement = Place(PlaceCudaMalloc, problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 0, 128, 188));
  EXPECT_EQ(placement.footprint_bytes, 120);
  EXPECT_EQ(placement.lower_bound_bytes, 120);
}

TEST(BaselinesTest, CaffeSharesNothing) {
  const Problem problem = {{
      Live("a", {0, 1}, 100),
      Live("empty", {0, 9}, 0),
      Live("b", {2, 3}, 60, 64),
      Live("c", {4, 5}, 20),
  }};
  const Placement placement = Place(PlaceCaffe, problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 0, 128, 188));
  EXPECT_EQ(placement.footprint_bytes, 208);
  EXPECT_EQ(placement.lower_bound_bytes, 100);
}

TEST(BaselinesTest, CaffeStacksAboveTheHighestFixedTop) {
  const Problem problem = {{
      Live("a", {0, 1}, 100),
      Live("higher", {2, 3}, 10, 1, 500),
      Live("lower", {4, 5}, 10, 1, 0),
      Live("empty", {6, 7}, 0, 1, 900),
      Live("b", {8, 9}, 20),
  }};
  const Placement placement = Place(PlaceCaffe, problem);
  EXPECT_THAT(placement.offsets, ElementsAre(510, 500, 0, 900, 610));
  EXPECT_EQ(placement.footprint_bytes, 630);
}

TEST(BaselinesTest, ReplayFreesBeforeItAllocatesAndKeepsTheProblemsOrder) {
  const Problem problem = {{
      Live("a", {2, 5}, 1),
      Live("b", {0, 2}, 1),
      Live("empty", {0, 5}, 0),
      Live("c", {0, 2}, 1, 1, {}, {{1, 2}}),
      Live("d", {2, 3}, 1),
  }};
  using Kind = Event::Kind;
  EXPECT_THAT(
      ReplayEvents(problem),
      ElementsAre(Event{0, Kind::kMalloc, 1}, Event{0, Kind::kMalloc, 3}, Event{2, Kind::kFree, 1},
                  Event{2, Kind::kFree, 3}, Event{2, Kind::kMalloc, 0}, Event{2, Kind::kMalloc, 4},
                  Event{3, Kind::kFree, 4}, Event{5, Kind::kFree, 0}));
}

TEST(BaselinesTest, RegistryListsTheBaselinesFirstAndTheDefaultLast) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> online;
  for (const Planner& planner : Planners()) {
    names.push_back(planner.name);
    if (planner.online) online.push_back(planner.name);
    EXPECT_FALSE(planner.summary.empty()) << planner.name;
    EXPECT_FALSE(planner.source.empty()) << planner.name;
    EXPECT_EQ(FindPlanner(planner.name), &planner);
  }
  EXPECT_THAT(names, ElementsAre("cudamalloc", "caffe", "cnmem", "bfc", "caching", "firstfit",
                                 "bestfit", "tight"));
  EXPECT_THAT(online, ElementsAre("cudamalloc", "cnmem", "bfc", "caching"));
}

TEST(BaselinesTest, RegistryEntriesPlaceDifferently) {
  std::set<PlaceFunction> functions;
  for (const Planner& planner : Planners()) functions.insert(planner.place);
  EXPECT_EQ(functions.size(), Planners().size());
  EXPECT_EQ(functions.count(nullptr), 0u);
}

TEST(BaselinesTest, FindPlannerKnowsNoOtherNames) {
  EXPECT_EQ(FindPlanner(""), nullptr);
  EXPECT_EQ(FindPlanner("Tight"), nullptr);
  EXPECT_EQ(FindPlanner("best"), nullptr);
}

TEST(BaselinesTest, EveryPlannerPlacesNothingInNothing) {
  for (const Planner& planner : Planners()) {
    const Placement placement = Place(planner.place, {});
    EXPECT_TRUE(placement.offsets.empty()) << planner.name;
    EXPECT_EQ(placement.footprint_bytes, 0) << planner.name;
  }
}

/// Draws from [lower, upper) uniformly; a bare inRange() would begin with small values.
template <typename Number>
Number Draw(Number lower, Number upper) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Number>(lower, upper));
}

RC_GTEST_PROP(BaselinesTest, EveryPlannerIsValidAndWithinItsBounds, ()) {
  const auto count = Draw<std::size_t>(0, 24);
  const Bytes alignment = *rc::gen::element<Bytes>(1, 512);
  const Bytes largest = *rc::gen::element<Bytes>(4, 3000, Bytes{3} << 20, Bytes{50} << 20);
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    const Time lower = Draw<Time>(-20, 20);
    const Time length = Draw<Time>(1, 20);
    const Bytes size = Draw<Bytes>(0, largest);
    problem.buffers.push_back(Live(std::to_string(i), {lower, lower + length}, size, alignment));
  }
  PlannerOptions options;
  options.time_budget_seconds = 0.02;
  for (const Planner& planner : Planners()) {
    const Placement placement = planner.place(problem, options);
    RC_ASSERT(FindViolations(problem, placement.offsets).empty());
    RC_ASSERT(placement.lower_bound_bytes >= LowerBound(problem));  // Searches may prove more.
    if (planner.name == "cudamalloc") {
      RC_ASSERT(placement.footprint_bytes == PeakLoad(problem));
    } else {
      RC_ASSERT(placement.footprint_bytes >= placement.lower_bound_bytes);
      RC_ASSERT(placement.footprint_bytes >= HighestTop(problem, placement.offsets));
    }
  }
}

}  // namespace
}  // namespace plimsoll::place

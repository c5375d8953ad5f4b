// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/network_for_test.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

using plan::VariableIndex;

constexpr Bytes kUnit = Bytes{1} << 20;

PlannerOptions Options(Bytes limit_bytes) {
  PlannerOptions options;
  options.limit_bytes = limit_bytes;
  options.least_bytes = 1;
  options.evaluations = 300;
  return options;
}

Outcome Plan(std::string_view planner, const plan::Problem& problem, Bytes limit_bytes) {
  return MakePlan(*FindPlanner(planner), problem, plan::OneBytePerNs(), Options(limit_bytes));
}

/// The variables for which a planner makes a choice in any gap.
std::set<VariableIndex> Chosen(std::string_view planner, Choice choice,
                               const plan::Problem& problem, Bytes limit_bytes,
                               const plan::Machine& machine = plan::OneBytePerNs()) {
  const PlannerOptions options = Options(limit_bytes);
  const Question question{problem, machine, options};
  JointEvaluator evaluator(question);
  const Chooser choose = FindPlanner(planner)->choose(question, &evaluator);
  const Offer offer = choose(limit_bytes);
  std::set<VariableIndex> chosen;
  for (std::size_t g = 0; g < offer.choices.size(); ++g) {
    if (offer.choices[g] == choice) chosen.insert(evaluator.gaps()[g].variable);
  }
  return chosen;
}

using Set = std::set<VariableIndex>;

class ChainTest : public testing::TestWithParam<int> {};

TEST_P(ChainTest, MemongerNeedsTheSquareRootForAtMostOneMoreForward) {
  const int layers = GetParam();
  const plan::Problem problem = ChainNetwork(layers, kUnit);
  ASSERT_GE(plan::ProfileLoad(problem).peak_bytes, layers * kUnit);
  const auto root = static_cast<Bytes>(std::sqrt(layers));
  const Outcome outcome = Plan("memonger", problem, (2 * root + 6) * kUnit);
  ASSERT_TRUE(outcome.plan) << outcome.misfit.needed_bytes / kUnit;
  EXPECT_EQ(outcome.plan->host_bytes, 0);
  EXPECT_LE(outcome.timeline.iteration_ns, problem.iteration_ns() + layers * 100);
  EXPECT_GT(outcome.timeline.iteration_ns, problem.iteration_ns());
}

TEST_P(ChainTest, DtrNeedsNoMoreThanTwiceTheSquareRootTwice) {
  const int layers = GetParam();
  const plan::Problem problem = ChainNetwork(layers, kUnit);
  const auto root = static_cast<Bytes>(std::sqrt(layers));
  // Its theorem 3.1: as many more ops as there are layers, up to a constant.
  const Outcome outcome = Plan("dtr", problem, (4 * root + 6) * kUnit);
  ASSERT_TRUE(outcome.plan) << outcome.misfit.needed_bytes / kUnit;
  EXPECT_EQ(outcome.plan->host_bytes, 0);
  EXPECT_LE(outcome.timeline.iteration_ns, problem.iteration_ns() + 3 * layers * 100);
}

INSTANTIATE_TEST_SUITE_P(Layers, ChainTest, testing::Values(25, 64, 144, 256));

TEST(MemongerTest, RecomputesNothingUnderAnAmpleLimit) {
  const plan::Problem problem = ChainNetwork(20, kUnit);
  const Outcome outcome = Plan("memonger", problem, 40 * kUnit);
  ASSERT_TRUE(outcome.plan);
  EXPECT_FALSE(outcome.plan->rewriting);
  EXPECT_EQ(outcome.timeline.iteration_ns, problem.iteration_ns());
}

/// Three variables that backward needs in reverse, and one in between that needs their room.
struct Three {
  Three(Nanoseconds first_ns, Nanoseconds second_ns, Nanoseconds idle_ns) {
    first = network.Forward("relu", first_ns, {0}, 10 * kUnit);
    second = network.Forward("relu", second_ns, {0}, 10 * kUnit);
    third = network.Forward("relu", 50, {0}, kUnit);
    const VariableIndex scratch = network.Forward("relu", idle_ns, {third}, 8 * kUnit);
    network.Backward(1, {scratch}, kUnit);
    network.Backward(1, {third}, kUnit);
    network.Backward(1, {second}, kUnit);
    network.Backward(1, {first}, kUnit);
    problem = network.Finish();
  }
  Network network;
  VariableIndex first = 0;
  VariableIndex second = 0;
  VariableIndex third = 0;
  plan::Problem problem;
};

TEST(DtrTest, DropsWhatIsCheapLargeAndStale) {
  const Three cheap_first(10, 100'000, 10);
  EXPECT_EQ(Chosen("dtr", Choice::kDrop, cheap_first.problem, 22 * kUnit), Set{cheap_first.first});
  const Three cheap_second(100'000, 10, 10);
  EXPECT_EQ(Chosen("dtr", Choice::kDrop, cheap_second.problem, 22 * kUnit),
            Set{cheap_second.second});
  // A little dearer, but idle for longer.
  const Three stale_first(40, 30, 10);
  EXPECT_EQ(Chosen("dtr", Choice::kDrop, stale_first.problem, 22 * kUnit), Set{stale_first.first});
}

TEST(DtrTest, NeverSwaps) {
  const plan::Problem problem = ChainNetwork(30, kUnit);
  for (const Bytes units : {30, 20, 12}) {
    EXPECT_TRUE(Chosen("dtr", Choice::kSwap, problem, units * kUnit).empty());
    EXPECT_FALSE(Chosen("dtr", Choice::kDrop, problem, units * kUnit).empty());
  }
}

/// One large variable that is idle for long on both sides of the peak, and one that is idle only
/// across it. Copies of either take ten units of time.
///
///     time        0   1   ········· 16 17   ········· 32
///     early       ●───────────────────────────────────●
///     late                          ●─┼─●
///     peak                            ▲
struct EarlyAndLate {
  EarlyAndLate() {
    early = network.Forward("relu", kUnit, {0}, 10 * kUnit);
    const VariableIndex wait = network.Forward("relu", 15 * kUnit, {0}, kUnit);
    late = network.Forward("relu", 100, {0}, 10 * kUnit);
    const VariableIndex scratch = network.Forward("relu", 100, {wait}, 8 * kUnit);
    const VariableIndex gradient = network.Backward(100, {scratch}, kUnit);
    network.Backward(15 * kUnit, {late, gradient}, kUnit);
    network.Backward(100, {early}, kUnit);
    problem = network.Finish();
  }
  Network network;
  VariableIndex early = 0;
  VariableIndex late = 0;
  plan::Problem problem;
};

TEST(CapuchinTest, SwapsWhatHidesAndRecomputesTheRest) {
  const EarlyAndLate network;
  EXPECT_EQ(Chosen("capuchin", Choice::kSwap, network.problem, 22 * kUnit), Set{network.early});
  EXPECT_EQ(Chosen("capuchin", Choice::kDrop, network.problem, 22 * kUnit), Set{});
  EXPECT_EQ(Chosen("capuchin", Choice::kSwap, network.problem, 16 * kUnit), Set{network.early});
  EXPECT_EQ(Chosen("capuchin", Choice::kDrop, network.problem, 16 * kUnit), Set{network.late});
}

TEST(CapuchinTest, RecomputesWhatASlowLinkDoesNotHide) {
  const EarlyAndLate network;
  plan::Machine slow = plan::OneBytePerNs();
  slow.out_bytes_per_s = slow.both_out_bytes_per_s = 1e7;
  EXPECT_EQ(Chosen("capuchin", Choice::kSwap, network.problem, 24 * kUnit, slow), Set{});
  EXPECT_EQ(Chosen("capuchin", Choice::kDrop, network.problem, 24 * kUnit, slow), Set{network.late})
      << "saves as much as the other, and takes less time";
}

/// Convolution, normalisation and activation in turn; backward needs all outputs.
struct Layers {
  explicit Layers(int count) {
    std::vector<VariableIndex> maps = {0};
    for (int k = 0; k < count; ++k) {
      maps.push_back(network.Forward("convolution", 10'000'000, {maps.back()}, kUnit));
      expensive.insert(maps.back());
      maps.push_back(network.Forward("batch_norm", 1000, {maps.back()}, kUnit));
      cheap.insert(maps.back());
      maps.push_back(network.Forward("relu", 1000, {maps.back()}, kUnit));
      cheap.insert(maps.back());
    }
    VariableIndex gradient = 0;
    for (std::size_t k = maps.size() - 1; k > 0; --k) {
      gradient = network.Backward(10'000'000, {maps[k], gradient}, kUnit);
    }
    problem = network.Finish();
  }
  Network network;
  Set expensive;
  Set cheap;
  plan::Problem problem;
};

bool Includes(const Set& all, const Set& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

TEST(SuperNeuronsTest, SwapsExpensiveLayersAndRecomputesCheapOnes) {
  const Layers layers(12);
  const Bytes limit = 11 * kUnit;
  const Set swapped = Chosen("superneurons", Choice::kSwap, layers.problem, limit);
  const Set dropped = Chosen("superneurons", Choice::kDrop, layers.problem, limit);
  EXPECT_FALSE(swapped.empty());
  EXPECT_TRUE(Includes(layers.expensive, swapped));
  EXPECT_GE(dropped.size() + 2, layers.cheap.size()) << "all but what backward needs at once";
  EXPECT_TRUE(Includes(layers.cheap, dropped));
  EXPECT_TRUE(Plan("superneurons", layers.problem, limit).plan);
  EXPECT_FALSE(Plan("superneurons-swap", layers.problem, limit).plan);
  EXPECT_FALSE(Plan("superneurons-recompute", layers.problem, limit).plan);
}

TEST(SuperNeuronsTest, TheLeastRecentlyUsedGoFirst) {
  const Layers layers(12);
  const Set swapped = Chosen("superneurons-swap", Choice::kSwap, layers.problem, 33 * kUnit);
  ASSERT_FALSE(swapped.empty());
  ASSERT_LT(swapped.size(), layers.expensive.size());
  auto expected = layers.expensive.begin();
  for (const VariableIndex v : swapped) EXPECT_EQ(v, *expected++);
}

TEST(SuperNeuronsTest, AModeDoesOnlyWhatItSays) {
  const Layers layers(12);
  for (const Bytes units : {30, 14, 5}) {
    EXPECT_TRUE(Chosen("superneurons-swap", Choice::kDrop, layers.problem, units * kUnit).empty());
    EXPECT_TRUE(
        Chosen("superneurons-recompute", Choice::kSwap, layers.problem, units * kUnit).empty());
  }
}

TEST(SuperNeuronsTest, WhatTakesAnExpensiveLayerToRebuildIsNotCheap) {
  Network network;
  const auto a = network.Forward("convolution", 1000, {0}, kUnit);  // Freed in forward.
  const auto b = network.Forward("relu", 10, {a}, kUnit);
  const auto c = network.Forward("relu", 10, {b}, kUnit);
  const auto d = network.Forward("relu", 10, {c}, 4 * kUnit);
  network.Backward(1, {d}, kUnit);
  network.Backward(1, {c}, kUnit);
  network.Backward(1, {b}, kUnit);
  const plan::Problem problem = network.Finish();
  const Set dropped = Chosen("superneurons", Choice::kDrop, problem, 5 * kUnit);
  EXPECT_FALSE(dropped.contains(b));
  EXPECT_TRUE(dropped.contains(c));
}

TEST(CheckpointBlocksTest, KeepsWhatLiesBetweenBlocksAndDropsWhatIsInside) {
  Network network;
  std::vector<VariableIndex> maps;
  Set inside;
  Set between;
  VariableIndex x = network.Forward("convolution", 100, {0}, kUnit);
  maps.push_back(x);
  between.insert(x);
  for (int block = 0; block < 6; ++block) {
    const auto first = network.Forward("convolution", 100, {x}, kUnit);
    const auto second = network.Forward("convolution", 100, {first}, kUnit);
    x = network.Forward("add", 100, {x, second}, kUnit);
    inside.insert({first, second});
    between.insert(x);
    maps.insert(maps.end(), {first, second, x});
  }
  x = network.Forward("mean", 100, {x}, kUnit);
  VariableIndex gradient = x;
  for (auto map = maps.rbegin(); map != maps.rend(); ++map) {
    gradient = network.Backward(200, {*map, gradient}, kUnit);
  }
  const plan::Problem problem = network.Finish();
  EXPECT_EQ(Chosen("checkpoint-blocks", Choice::kDrop, problem, 100 * kUnit), inside);
  EXPECT_EQ(Chosen("checkpoint-blocks", Choice::kDrop, problem, kUnit), inside)
      << "whatever the limit";
}

TEST(CheckpointBlocksTest, APlainChainIsDividedEvenly) {
  const plan::Problem problem = ChainNetwork(36, kUnit);
  const Set dropped = Chosen("checkpoint-blocks", Choice::kDrop, problem, kUnit);
  EXPECT_GE(dropped.size(), 28U);
  EXPECT_LE(dropped.size(), 31U);
  const Outcome outcome = Plan("checkpoint-blocks", problem, 18 * kUnit);
  EXPECT_TRUE(outcome.plan) << outcome.misfit.needed_bytes / kUnit;
}

plan::Problem Read(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
}

TEST(ChoicesTest, EqualQuestionsHaveEqualAnswers) {
  const plan::Problem problem = Read("resnet18_b100");
  const Bytes limit = plan::ProfileLoad(problem).peak_bytes * 7 / 10;
  int planners = 0;
  for (const Planner& planner : Planners()) {
    if (planner.choose == nullptr) continue;
    const Outcome one = Plan(planner.name, problem, limit);
    const Outcome two = Plan(planner.name, problem, limit);
    EXPECT_EQ(one.plan, two.plan) << planner.name;
    if (one.plan) ++planners;
  }
  EXPECT_GE(planners, 4) << "fit at this limit";
}

TEST(ChoicesTest, ARivalIsConsideredAsItIsPlanned) {
  const plan::Problem problem = Read("resnet18_b100");
  const plan::Machine machine = plan::OneBytePerNs();
  const Bytes peak = plan::ProfileLoad(problem).peak_bytes;
  const PlannerOptions options = Options(peak * 7 / 10);
  const Question question{problem, machine, options};
  JointEvaluator evaluator(question);
  const JointState state = ConsiderRival(*FindPlanner("dtr"), question, peak * 6 / 10, &evaluator);
  EXPECT_EQ(evaluator.target(), peak * 6 / 10);
  EXPECT_EQ(state.excess, 0);
  ASSERT_LT(state.time_ns, kNever);
  const Attempt attempt = evaluator.Make(state);
  ASSERT_NE(attempt.plan(), nullptr);
  EXPECT_TRUE(plan::CheckPlan(*attempt.plan()).empty());
  EXPECT_EQ(static_cast<double>(sim::Simulate(*attempt.plan()).iteration_ns), state.time_ns);
}

TEST(ChoicesTest, WhatCannotBeRebuiltStays) {
  Network network;
  const auto a = network.Forward("rnn", 10, {0}, kUnit);
  network.last_op().traits.replayable = false;
  const auto b = network.Forward("relu", 10, {a}, kUnit);
  const auto c = network.Forward("relu", 10, {b}, kUnit);
  network.Backward(1, {c}, kUnit);
  network.Backward(1, {b}, kUnit);
  network.Backward(1, {a}, kUnit);
  const plan::Problem problem = network.Finish();
  const plan::Machine machine = plan::OneBytePerNs();
  const PlannerOptions options = Options(100 * kUnit);
  const Question question{problem, machine, options};
  JointEvaluator evaluator(question);
  Offer offer{std::vector<Choice>(evaluator.gaps().size(), Choice::kDrop)};
  const JointState state = Consider(offer, options.limit_bytes, &evaluator);
  EXPECT_EQ(state.choices, KeepAll(evaluator).choices);
  EXPECT_EQ(state.time_ns, static_cast<double>(problem.iteration_ns()));
}

}  // namespace
}  // namespace plimsoll::planners

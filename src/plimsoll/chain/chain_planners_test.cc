// SPDX-License-Identifier: Apache-2.0
// What every planner of chains owes, and what each is known for.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/reader.h"

namespace plimsoll::chain {
namespace {

/// Short searches: the tests are about what holds after any of them.
PlannerOptions Quick() {
  PlannerOptions options;
  options.time_budget_seconds = 0.01;
  return options;
}

std::set<std::int32_t> Offloaded(const Schedule& schedule) {
  std::set<std::int32_t> result;
  for (const TimedTransfer& timed : schedule.transfers) result.insert(timed.transfer.activation);
  return result;
}

TEST(ChainPlannersTest, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Planner& planner : Planners()) {
    EXPECT_TRUE(names.insert(planner.name).second) << planner.name;
    EXPECT_EQ(FindPlanner(planner.name), &planner);
    EXPECT_FALSE(planner.summary.empty());
    EXPECT_FALSE(planner.source.empty());
  }
  EXPECT_EQ(FindPlanner("nobody"), nullptr);
  EXPECT_EQ(Planners().back().name, "pofo");
}

TEST(ChainPlannersTest, EverySchedulePassesTheJudgeAndNoneBeatsTheBounds) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    const Chain chain = RandomChain({.most_stages = 12}, &random);
    const Model model = MakeModel(chain, kByteLink / DrawBetween(1, 4, &random));
    const Question question = {chain, model, RandomLimit(model, &random)};
    const Nanoseconds bound = LowerBound(model, question.limit_bytes);
    const Nanoseconds relaxed = FractionalOptimum(chain, model, question.limit_bytes);
    EXPECT_LE(bound, relaxed);
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    Nanoseconds last = 0;
    for (const Planner& planner : Planners()) {
      const auto schedule = planner.plan(question, Quick());
      if (planner.recomputes) {  // The bounds are about offloading.
        if (schedule) ExpectValid(question, *schedule, std::string(planner.name));
        continue;
      }
      if (planner.name == "tflms" && !schedule) continue;  // It cannot wait for memory.
      ASSERT_TRUE(schedule) << planner.name << " in round " << round;
      ExpectValid(question, *schedule, std::string(planner.name));
      EXPECT_GE(schedule->iteration_ns(), relaxed) << planner.name << " in round " << round;
      last = schedule->iteration_ns();
      least = std::min(least, last);
    }
    EXPECT_EQ(last, least) << "chainsearch is worse than another planner in round " << round;
  }
}

TEST(ChainPlannersTest, EveryPlannerKeepsToMeasuredChains) {
  for (const char* name : {"resnet18_b32_s224", "vit_b_16_b64_s224", "densenet121_b32_s224"}) {
    const Chain chain = ReadChain(std::string(PLIMSOLL_DATA_DIR "/chains/") + name + ".json");
    const Model model = MakeModel(chain, 12'200'000'000);
    for (const int part : {0, 1, 2, 3, 4}) {
      const Bytes limit =
          model.smallest_limit_bytes + part * (model.peak_bytes - model.smallest_limit_bytes) / 4;
      const Question question = {chain, model, limit};
      for (const Planner& planner : Planners()) {
        const auto schedule = planner.plan(question, Quick());
        if (schedule) ExpectValid(question, *schedule, std::string(planner.name));
        if (part < 4) continue;
        ASSERT_TRUE(schedule) << planner.name;
        EXPECT_EQ(schedule->iteration_ns(), model.compute_ns) << planner.name;
      }
    }
  }
}

TEST(ChainPlannersTest, GreedyOffloadsTheSmallestPrefix) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 500; ++round) {
    const Chain chain = RandomChain({.most_stages = 10}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Bytes limit = RandomLimit(model, &random);
    const auto schedule = PlanGreedy({chain, model, limit}, {});
    ASSERT_TRUE(schedule);
    const std::set<std::int32_t> offloaded = Offloaded(*schedule);
    Bytes sum = 0;
    Bytes last = 0;
    for (std::size_t i = 0; i < offloaded.size(); ++i) {
      EXPECT_TRUE(offloaded.contains(static_cast<std::int32_t>(i)));
      last = model.activation_bytes[i];
      sum += last;
    }
    EXPECT_GE(sum, model.peak_bytes - limit);
    if (!offloaded.empty()) {
      EXPECT_LT(sum - last, model.peak_bytes - limit);
    }
  }
}

TEST(ChainPlannersTest, TflmsNeverWaitsForMemory) {
  std::mt19937_64 random(7);
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    const Chain chain = RandomChain({.most_stages = 8}, &random);
    const Model model = MakeModel(chain, 4 * kByteLink);
    const Bytes limit = RandomLimit(model, &random);
    const auto schedule = PlanTflms({chain, model, limit}, {});
    if (!schedule) continue;
    ++found;
    ExpectValid({chain, model, limit}, *schedule, "tflms");
    for (std::size_t op = 1; op < model.stages; ++op) {
      EXPECT_EQ(schedule->ops[op].start_ns, schedule->ops[op - 1].end_ns);
    }
  }
  EXPECT_GT(found, 50);
}

TEST(ChainPlannersTest, SearchIsRepeatable) {
  std::mt19937_64 random(8);
  const Chain chain = RandomChain({.least_stages = 12, .most_stages = 12}, &random);
  const Model model = MakeModel(chain, kByteLink / 3);
  const Question question = {chain, model, (model.smallest_limit_bytes + model.peak_bytes) / 2};
  PlannerOptions options;
  options.time_budget_seconds = 100;  // The work ends before.
  Nanoseconds reported = std::numeric_limits<Nanoseconds>::max();
  options.on_progress = [&reported](Nanoseconds best, Nanoseconds bound) {
    EXPECT_LE(best, reported);
    EXPECT_LE(bound, best);
    reported = best;
  };
  const auto first = PlanChainSearch(question, options);
  options.on_progress = {};
  const auto second = PlanChainSearch(question, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->ops, second->ops);
  EXPECT_EQ(first->transfers, second->transfers);
  EXPECT_EQ(first->iteration_ns(), reported);
  ExpectValid(question, *first, "chainsearch");
}

}  // namespace
}  // namespace plimsoll::chain

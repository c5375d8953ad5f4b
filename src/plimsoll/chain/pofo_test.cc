// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/pofo_internal.h"
#include "plimsoll/chain/reader.h"

namespace plimsoll::chain {
namespace {

PlannerOptions Quick() {
  PlannerOptions options;
  options.time_budget_seconds = 0.05;
  return options;
}

TEST(PofoTest, IsNeverBehindAnotherPlannerOnRandomChains) {
  std::mt19937_64 random(31);
  int ahead = 0;
  for (int round = 0; round < 120; ++round) {
    const Chain chain = RandomChain({.most_stages = 9, .insides = true}, &random);
    const Model model = MakeModel(chain, kByteLink / DrawBetween(1, 4, &random));
    const Question question = {chain, model, RandomLimit(model, &random)};
    const auto pofo = PlanPofo(question, Quick());
    ASSERT_TRUE(pofo) << round;
    ExpectValid(question, *pofo, "pofo in round " + std::to_string(round));
    bool is_ahead = true;
    for (const Planner& planner : Planners()) {
      if (planner.plan == PlanPofo) continue;
      const auto schedule = planner.plan(question, Quick());
      if (!schedule) continue;
      EXPECT_LE(pofo->iteration_ns(), schedule->iteration_ns()) << planner.name << ", " << round;
      is_ahead = is_ahead && pofo->iteration_ns() < schedule->iteration_ns();
    }
    ahead += is_ahead ? 1 : 0;
  }
  EXPECT_GT(ahead, 20);
}

/// Two long stages and a short one, of which the first keeps much that is quick to carry.
TEST(PofoTest, OffloadsOneAndRecomputesTheOther) {
  Chain chain;
  chain.name = "mixed";
  chain.input_bytes = 1;
  // Ten bytes of the first stage leave while the others run; those of the second could not, but
  // are made again in no time.
  chain.stages = {{"far", 50, 50, 10, 0, 0, 0, 0},
                  {"near", 1, 40, 10, 0, 0, 0, 9},
                  {"end", 40, 40, 10, 0, 0, 0, 0}};
  const Model model = MakeModel(chain, kByteLink);
  ASSERT_EQ(model.peak_bytes, 31);
  const Question question = {chain, model, 22};
  const auto schedule = PlanPofo(question, Quick());
  ASSERT_TRUE(schedule);
  ExpectValid(question, *schedule, "mixed");
  EXPECT_LE(schedule->iteration_ns(), model.compute_ns + 1);
  EXPECT_LT(schedule->iteration_ns(), PlanChainSearch(question, Quick())->iteration_ns());
}

TEST(PofoTest, TheDynamicProgramProposesWhatCanBePlayed) {
  std::mt19937_64 random(33);
  int proposed = 0;
  int played = 0;
  for (int round = 0; round < 100; ++round) {
    const Chain chain =
        RandomChain({.least_stages = 4, .most_stages = 9, .insides = true}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Question question = {chain, model, RandomLimit(model, &random)};
    const RotorTable table = MakeRotorTable(question, 500);
    const Kitchen kitchen(question, table);
    for (const Recipe& recipe : ProposeRecipes(question, table, 4 * model.compute_ns, 5)) {
      ++proposed;
      ASSERT_EQ(recipe.blocks.front().first, 0U);
      ASSERT_EQ(recipe.blocks.back().last + 1, model.stages);
      const Nanoseconds time = kitchen.Time(recipe);
      if (time == Kitchen::kNever) continue;
      ++played;
      const auto schedule = kitchen.Play(recipe);
      ASSERT_TRUE(schedule);
      EXPECT_EQ(schedule->iteration_ns(), time);
      ExpectValid(question, *schedule, "proposed in round " + std::to_string(round));
    }
  }
  EXPECT_GT(proposed, 300);
  EXPECT_GT(2 * played, proposed) << played << " of " << proposed;
}

TEST(PofoTest, BeatsBothPartsOnAMeasuredChain) {
  const Chain chain = ReadChain(PLIMSOLL_DATA_DIR "/chains/vit_b_16_b64_s224.json");
  const Model model = MakeModel(chain, 55'000'000'000);
  const Question question = {chain, model, model.peak_bytes * 36 / 100};
  const auto pofo = PlanPofo(question, {});
  ASSERT_TRUE(pofo);
  ExpectValid(question, *pofo, "pofo");
  EXPECT_LT(1.05 * static_cast<double>(pofo->iteration_ns()),
            static_cast<double>(PlanRotor(question, {})->iteration_ns()));
  EXPECT_LT(1.05 * static_cast<double>(pofo->iteration_ns()),
            static_cast<double>(PlanChainSearch(question, {})->iteration_ns()));
}

}  // namespace
}  // namespace plimsoll::chain

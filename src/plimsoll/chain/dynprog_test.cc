// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/dynprog.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

std::vector<double> Amounts(const Model& model, const std::vector<char>& offloaded) {
  std::vector<double> amounts;
  for (std::size_t i = 0; i < model.stages; ++i) {
    amounts.push_back(offloaded[i] != 0 ? static_cast<double>(model.activation_bytes[i]) : 0);
  }
  return amounts;
}

/// The best set for interruptible transfers, by trying all of them.
double BestInterruptible(const Question& question) {
  const Terms<double> terms = RealTerms(question.chain, question.model, question.limit_bytes);
  double best = std::numeric_limits<double>::infinity();
  const std::size_t n = question.model.stages;
  for (std::size_t set = 0; set < std::size_t{1} << n; ++set) {
    std::vector<char> offloaded(n, 0);
    for (std::size_t i = 0; i < n; ++i) offloaded[i] = static_cast<char>(set >> i & 1U);
    const auto makespan =
        InterruptibleMakespan(terms, question.model, Amounts(question.model, offloaded));
    if (makespan) best = std::min(best, *makespan);
  }
  return best;
}

TEST(DynProgTest, EqualsBruteForceIfSlotsAreBytes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2'000; ++round) {
    const Chain chain = RandomChain({.most_stages = 8}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Question question = {chain, model, RandomLimit(model, &random)};
    const auto offloaded = DynProgSet(question, question.limit_bytes);
    ASSERT_TRUE(offloaded) << "round " << round;
    const auto makespan = InterruptibleMakespan(RealTerms(chain, model, question.limit_bytes),
                                                model, Amounts(model, *offloaded));
    ASSERT_TRUE(makespan);
    EXPECT_NEAR(*makespan, BestInterruptible(question), 0.01) << "round " << round;
  }
}

TEST(DynProgTest, RoundingCostsLittleWithManySlots) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const Chain chain =
        RandomChain({.most_stages = 8, .most_bytes = 100'000, .most_ns = 100'000}, &random);
    const Model model = MakeModel(chain, kByteLink);
    const Question question = {chain, model, RandomLimit(model, &random)};
    const auto offloaded = DynProgSet(question, 5'000);
    ASSERT_TRUE(offloaded) << "round " << round;
    const auto makespan = InterruptibleMakespan(RealTerms(chain, model, question.limit_bytes),
                                                model, Amounts(model, *offloaded));
    ASSERT_TRUE(makespan);
    EXPECT_LE(*makespan, 1.02 * BestInterruptible(question)) << "round " << round;
  }
}

TEST(DynProgTest, FitsAtTheSmallestLimitThoughSizesAreRoundedUp) {
  const Chain chain = ReadChain(PLIMSOLL_DATA_DIR "/chains/inception_v3_b32_s299.json");
  const Model model = MakeModel(chain, 12'200'000'000);
  for (const std::int64_t slots : {20, 100, 500, 2'000}) {
    const Question question = {chain, model, model.smallest_limit_bytes};
    const auto offloaded = DynProgSet(question, slots);
    ASSERT_TRUE(offloaded) << slots;
    const auto schedule = Simulator(model, question.limit_bytes).Play(OrderedDecision(*offloaded));
    ASSERT_TRUE(schedule) << slots;
    ExpectValid(question, *schedule, "dynprog");
  }
}

TEST(DynProgTest, OffloadsNothingAtThePeak) {
  const Chain chain = SmallChain();
  const Model model = MakeModel(chain, kByteLink);
  const auto offloaded = DynProgSet({chain, model, model.peak_bytes}, kDynProgSlots);
  EXPECT_EQ(offloaded, std::vector<char>({0, 0, 0}));
}

}  // namespace
}  // namespace plimsoll::chain

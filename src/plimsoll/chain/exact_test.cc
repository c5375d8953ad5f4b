// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/chain/exact.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

PlannerOptions Patient() {
  PlannerOptions options;
  options.time_budget_seconds = 60;
  return options;
}

/// Every set, every order. With `mixed`, transfers in may come before transfers out.
class BruteForce {
 public:
  BruteForce(const Question& question, bool mixed)
      : n_(question.model.stages),
        mixed_(mixed),
        simulator_(question.model, question.limit_bytes),
        state_(n_, 0) {}

  Nanoseconds Run() {
    Extend();
    return best_;
  }

 private:
  void Extend() {
    const bool closed = std::none_of(state_.begin(), state_.end(), [](int s) { return s == 1; });
    if (closed) {
      if (const auto makespan = simulator_.Makespan(decision_)) best_ = std::min(best_, *makespan);
    }
    const bool any_in = std::any_of(state_.begin(), state_.end(), [](int s) { return s == 2; });
    for (std::size_t i = 0; i < n_; ++i) {
      if (state_[i] == 2 || (state_[i] == 0 && any_in && !mixed_)) continue;
      const Direction direction = state_[i] == 0 ? Direction::kOut : Direction::kIn;
      ++state_[i];
      decision_.push_back({static_cast<std::int32_t>(i), direction});
      Extend();
      decision_.pop_back();
      --state_[i];
    }
  }

  const std::size_t n_;
  const bool mixed_;
  Simulator simulator_;
  std::vector<int> state_;  // 0 here, 1 away, 2 back.
  Decision decision_;
  Nanoseconds best_ = std::numeric_limits<Nanoseconds>::max();
};

TEST(ExactTest, EqualsBruteForceOverSetsAndOrders) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2'000; ++round) {
    const Chain chain = RandomChain({.most_stages = 4}, &random);
    const Model model = MakeModel(chain, kByteLink / DrawBetween(1, 3, &random));
    const Question question = {chain, model, RandomLimit(model, &random)};
    // Greedy is often far off, so that the solver has to find the optimum itself.
    const ExactAnswer answer = SolveExactly(question, Patient(), PlanGreedy(question, {}));
    ASSERT_TRUE(answer.schedule && answer.proven) << "round " << round;
    ExpectValid(question, *answer.schedule, "exact");
    EXPECT_EQ(answer.schedule->iteration_ns(), BruteForce(question, false).Run())
        << "round " << round;
  }
}

TEST(ExactTest, TransfersInBeforeTransfersOutDoNotHelp) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 2'000; ++round) {
    const Chain chain = RandomChain({.most_stages = 4}, &random);
    const Model model = MakeModel(chain, kByteLink / DrawBetween(1, 3, &random));
    const Question question = {chain, model, RandomLimit(model, &random)};
    EXPECT_EQ(BruteForce(question, true).Run(), BruteForce(question, false).Run())
        << "round " << round;
  }
}

TEST(ExactTest, OrderedTransfersAreNotAlwaysBest) {
  std::mt19937_64 random(3);
  int better = 0;
  for (int round = 0; round < 200; ++round) {
    const Chain chain = RandomChain({.least_stages = 4, .most_stages = 5}, &random);
    const Model model = MakeModel(chain, kByteLink / 2);
    const Question question = {chain, model, RandomLimit(model, &random)};
    const ExactAnswer answer = SolveExactly(question, Patient(), PlanGreedy(question, {}));
    ASSERT_TRUE(answer.proven);
    Nanoseconds ordered = std::numeric_limits<Nanoseconds>::max();
    for (std::size_t set = 0; set < std::size_t{1} << model.stages; ++set) {
      std::vector<char> offloaded(model.stages, 0);
      for (std::size_t i = 0; i < model.stages; ++i) {
        offloaded[i] = static_cast<char>(set >> i & 1U);
      }
      const auto makespan =
          Simulator(model, question.limit_bytes).Makespan(OrderedDecision(offloaded));
      if (makespan) ordered = std::min(ordered, *makespan);
    }
    ASSERT_LE(answer.schedule->iteration_ns(), ordered);
    if (answer.schedule->iteration_ns() < ordered) ++better;
  }
  EXPECT_GT(better, 0);
}

RC_GTEST_PROP(ExactTest, LiesBetweenTheFractionalOptimumAndChainSearch, ()) {
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const Chain chain = RandomChain(
      {.least_stages = 2, .most_stages = 10, .most_bytes = 1'000, .most_ns = 1'000}, &random);
  const Model model = MakeModel(chain, kByteLink / DrawBetween(1, 4, &random));
  const Question question = {chain, model, RandomLimit(model, &random)};
  const auto searched = PlanChainSearch(question, Patient());
  const ExactAnswer exact = SolveExactly(question, Patient(), PlanDynProg(question, {}));
  RC_ASSERT(searched && exact.schedule && exact.proven);
  ExpectValid(question, *exact.schedule, "exact");
  ExpectValid(question, *searched, "chainsearch");
  const Nanoseconds best = exact.schedule->iteration_ns();
  RC_ASSERT(best <= searched->iteration_ns());
  RC_ASSERT(FractionalOptimum(chain, model, question.limit_bytes) <= best);
  RC_ASSERT(static_cast<double>(searched->iteration_ns()) <= 1.01 * static_cast<double>(best));
}

TEST(ExactTest, ChainSearchIsWithinAHundredthOnMeasuredChains) {
  for (const char* name : {"resnet18_b32_s224", "vit_b_16_b64_s224", "resnet50_b32_s224"}) {
    const Chain chain = ReadChain(std::string(PLIMSOLL_DATA_DIR "/chains/") + name + ".json");
    const Model model = MakeModel(chain, 12'200'000'000);
    for (const int part : {10, 60}) {
      SCOPED_TRACE(std::string(name) + " at " + std::to_string(part));
      const Bytes range = model.peak_bytes - model.smallest_limit_bytes;
      const Question question = {chain, model, model.smallest_limit_bytes + part * range / 100};
      const auto searched = PlanChainSearch(question, Patient());
      const ExactAnswer exact = SolveExactly(question, Patient(), PlanGreedy(question, {}));
      ASSERT_TRUE(searched && exact.schedule && exact.proven);
      ExpectValid(question, *exact.schedule, "exact");
      EXPECT_LE(static_cast<double>(searched->iteration_ns()),
                1.01 * static_cast<double>(exact.schedule->iteration_ns()));
    }
  }
}

TEST(ExactTest, WorkCutsTheSearchTheSameWayEachTime) {
  std::mt19937_64 random(9);
  const Chain chain = RandomChain(
      {.least_stages = 14, .most_stages = 14, .most_bytes = 100'000, .most_ns = 100'000}, &random);
  const Model model = MakeModel(chain, kByteLink / 3);
  const Question question = {chain, model, (model.smallest_limit_bytes + model.peak_bytes) / 2};
  const auto start = PlanGreedy(question, {});
  const ExactAnswer whole = SolveExactly(question, Patient(), start);
  ASSERT_TRUE(whole.proven);
  Nanoseconds before = start->iteration_ns();
  for (const std::int64_t work : {0, 1'000, 10'000, 100'000}) {
    const ExactAnswer first = SolveExactly(question, Patient(), start, work);
    const ExactAnswer again = SolveExactly(question, Patient(), start, work);
    EXPECT_EQ(first.schedule->transfers, again.schedule->transfers) << work;
    EXPECT_EQ(first.lower_bound_ns, again.lower_bound_ns) << work;
    EXPECT_LE(first.lower_bound_ns, whole.schedule->iteration_ns()) << work;
    EXPECT_LE(first.schedule->iteration_ns(), before) << work;
    before = first.schedule->iteration_ns();
  }
  EXPECT_FALSE(SolveExactly(question, Patient(), start, 0).proven);
}

TEST(ExactTest, SaysWhenTimeRanOut) {
  std::mt19937_64 random(4);
  const Chain chain = RandomChain(
      {.least_stages = 18, .most_stages = 18, .most_bytes = 100'000, .most_ns = 100'000}, &random);
  const Model model = MakeModel(chain, kByteLink / 3);
  const Question question = {chain, model, (model.smallest_limit_bytes + model.peak_bytes) / 2};
  PlannerOptions options;
  options.time_budget_seconds = 0;
  const ExactAnswer answer = SolveExactly(question, options, PlanGreedy(question, {}));
  ASSERT_TRUE(answer.schedule);
  EXPECT_FALSE(answer.proven);
  EXPECT_LT(answer.lower_bound_ns, answer.schedule->iteration_ns());
  ExpectValid(question, *answer.schedule, "exact without time");
}

}  // namespace
}  // namespace plimsoll::chain

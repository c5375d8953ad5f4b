// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/to_trace.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/planners/chain_plan.h"
#include "plimsoll/planners/chain_start_internal.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Problem ProblemOf(const chain::Chain& chain) {
  const trace::Trace trace = chain::ToTrace(chain, 1);
  return plan::TakeStretch(trace, 0, static_cast<trace::EventIndex>(trace.events.size()));
}

void ExpectSafe(const plan::Plan& plan) {
  for (const plan::PlanViolation& violation : plan::CheckPlan(plan)) {
    ADD_FAILURE() << plan::Name(violation.law) << ": " << violation.message;
  }
}

TEST(ChainViewTest, FindsTheChainInItsTrace) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    // Large enough that nothing is too small to count.
    chain::Chain chain = chain::RandomChain(
        {.least_stages = 3, .most_stages = 9, .most_bytes = 30, .insides = true}, &random);
    for (chain::Stage& stage : chain.stages) stage.inside_bytes = stage.kept_bytes / 2;
    const auto view = ViewAsChain(ProblemOf(chain), 1);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->chain.stages.size(), chain.stages.size() + 1);  // The loss is one.
    EXPECT_EQ(view->base_bytes, 0);
    EXPECT_EQ(view->chain.input_bytes, chain.input_bytes);
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      const chain::Stage& seen = view->chain.stages[i];
      EXPECT_EQ(seen.forward_ns, chain.stages[i].forward_ns);
      EXPECT_EQ(seen.backward_ns, chain.stages[i].backward_ns);
      EXPECT_EQ(seen.kept_bytes, chain.stages[i].kept_bytes);
      if (i > 0) {
        EXPECT_GE(seen.input_gradient_bytes, chain.stages[i].input_gradient_bytes);
      }
    }
    const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
    EXPECT_GE(chain::MakeModel(view->chain, chain::kByteLink).peak_bytes, model.peak_bytes);
  }
}

TEST(ChainStartTest, PlansOfRandomChainsAreSafe) {
  std::mt19937_64 random(43);
  int fits = 0;
  int asked = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const chain::Chain chain = chain::RandomChain(
        {.least_stages = 4, .most_stages = 9, .most_bytes = 40, .insides = true}, &random);
    const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
    const plan::Problem problem = ProblemOf(chain);
    const plan::Machine machine = ChainMachine(model);
    PlannerOptions options;
    options.limit_bytes = chain::RandomLimit(model, &random);
    options.least_bytes = 1;
    options.alignment = 1;
    options.time_budget_seconds = 0.1;
    const Question question = {problem, machine, options};
    ++asked;
    if (const auto attempt = PlanAsChain(question)) {
      ++fits;
      ASSERT_NE(attempt->plan(), nullptr);
      ExpectSafe(*attempt->plan());
      EXPECT_LE(attempt->plan()->footprint_bytes, options.limit_bytes);
      EXPECT_FALSE(sim::Simulate(*attempt->plan()).deadlocked);
    }
    const auto view = ViewAsChain(problem, 1);
    ASSERT_TRUE(view);
    const auto start = StartAsChain(*view, question, chain::PlanPofo, options.limit_bytes);
    if (!start) continue;
    EXPECT_EQ(start->choices.size(), plan::ListGaps(problem, 1).size());
    EXPECT_GE(start->predicted_ns, problem.iteration_ns());
  }
  EXPECT_GT(2 * fits, asked) << fits << " of " << asked;
}

TEST(ChainStartTest, PlansARecordedNetworkByItsBlocks) {
  for (const char* name : {"resnet18_b100", "vgg16_cifar_b100"}) {
    SCOPED_TRACE(name);
    const plan::Problem problem = plan::ProblemToPlan(plan::MakeProblem(
        trace::ReadTrace(std::string(PLIMSOLL_DATA_DIR "/traces/") + name + ".trace.gz")));
    const auto view = ViewAsChain(problem, kDefaultAlignment);
    ASSERT_TRUE(view);
    EXPECT_GE(view->chain.stages.size(), 5U);
    const chain::Model model = chain::MakeModel(view->chain, chain::kByteLink);
    PlannerOptions options;
    options.limit_bytes = (view->base_bytes + model.peak_bytes) * 7 / 10;
    options.time_budget_seconds = 0.5;
    const plan::Machine machine = *plan::FindMachine("h200");
    const auto attempt = PlanAsChain({problem, machine, options});
    ASSERT_TRUE(attempt);
    ExpectSafe(*attempt->plan());
    EXPECT_LE(attempt->plan()->footprint_bytes, options.limit_bytes);
  }
}

}  // namespace
}  // namespace plimsoll::planners

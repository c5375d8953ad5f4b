// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/planner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Problem Read(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
}

PlannerOptions AtPercent(const plan::Problem& problem, int percent) {
  PlannerOptions options;
  options.limit_bytes = plan::ProfileLoad(problem).peak_bytes * percent / 100;
  options.evaluations = 300;
  return options;
}

Outcome Plan(std::string_view planner, const plan::Problem& problem, const PlannerOptions& options,
             std::string_view machine = "h200") {
  return MakePlan(*FindPlanner(planner), problem, *plan::FindMachine(machine), options);
}

class PlannerTraceTest : public testing::TestWithParam<const char*> {};

TEST_P(PlannerTraceTest, EveryPlannerFitsOrSaysWhatItNeeds) {
  const plan::Problem problem = Read(GetParam());
  for (const int percent : {80, 60}) {
    const PlannerOptions options = AtPercent(problem, percent);
    for (const Planner& planner : Planners()) {
      SCOPED_TRACE(std::string(planner.name) + " at " + std::to_string(percent) + " %");
      const Outcome outcome = Plan(planner.name, problem, options);
      if (!outcome.plan) {
        EXPECT_GT(outcome.misfit.needed_bytes, options.limit_bytes);
        EXPECT_LT(outcome.misfit.needed_bytes, kMaxBytes);
        continue;
      }
      EXPECT_EQ(outcome.plan->planner, planner.name);
      EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes);
      EXPECT_GE(outcome.timeline.iteration_ns, problem.iteration_ns());
      EXPECT_TRUE(plan::CheckPlan(*outcome.plan).empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, PlannerTraceTest,
                         testing::Values("vgg11_cifar_b100", "resnet18_b100", "kmeans_1m"));

TEST(PlannerTest, SwapsNothingUnderAnAmpleLimit) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const Outcome outcome = Plan("autoswap-swdoa", problem, AtPercent(problem, 110));
  ASSERT_TRUE(outcome.plan);
  EXPECT_EQ(outcome.plan->host_bytes, 0);
  EXPECT_EQ(outcome.timeline.iteration_ns, problem.iteration_ns());
}

TEST(PlannerTest, WithoutSwapsThePeakLoadIsNeeded) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const Outcome outcome = Plan("none", problem, AtPercent(problem, 60));
  ASSERT_FALSE(outcome.plan);
  EXPECT_GE(outcome.misfit.needed_bytes, plan::ProfileLoad(problem).peak_bytes);
}

TEST(PlannerTest, BayesianOptimisationIsNeverSlowerThanASingleScore) {
  const plan::Problem problem = Read("resnet18_b100");
  PlannerOptions options = AtPercent(problem, 90);
  Nanoseconds best_ns = 0;
  options.on_progress = [&](Nanoseconds ns) { best_ns = ns; };
  const Outcome combined = Plan("autoswap-bo", problem, options);
  ASSERT_TRUE(combined.plan);
  EXPECT_EQ(combined.timeline.iteration_ns, best_ns);
  for (const char* single : {"autoswap-doa", "autoswap-aoa", "autoswap-wdoa", "autoswap-swdoa"}) {
    const Outcome outcome = Plan(single, problem, options);
    ASSERT_TRUE(outcome.plan) << single;
    EXPECT_LE(combined.timeline.iteration_ns, outcome.timeline.iteration_ns) << single;
  }
}

TEST(PlannerTest, AStoppedSearchKeepsTheBestSoFar) {
  const plan::Problem problem = Read("resnet18_b100");
  PlannerOptions options = AtPercent(problem, 90);
  int evaluations = 0;
  options.stop = [&] { return ++evaluations > 1; };
  const Outcome stopped = Plan("autoswap-bo", problem, options);
  ASSERT_TRUE(stopped.plan);
  EXPECT_LE(evaluations, 3) << "no question after the search has ended";
  const Outcome first = Plan("autoswap-doa", problem, options);
  EXPECT_EQ(stopped.timeline.iteration_ns, first.timeline.iteration_ns);
}

TEST(PlannerTest, WhatIsTooSmallToLookAtDependsOnThePeak) {
  EXPECT_EQ(LeastBytesFor(Read("resnet18_b100")), Bytes{1} << 20);
  plan::Problem problem;
  plan::AddVariable(70'000'000, 0, 2, &problem);
  plan::AddVariable(50'000'000, 1, 3, &problem);
  problem.period = 4;
  EXPECT_EQ(LeastBytesFor(problem), 120'000);
  EXPECT_EQ(LeastBytesFor({}), 1);
}

TEST(PlannerTest, WhoHasAPlanIsOfferedOnlyFasterOnes) {
  const plan::Problem problem = Read("resnet18_b100");
  const plan::Machine machine = *plan::FindMachine("h200");
  const PlannerOptions options = AtPercent(problem, 80);
  const Question question{problem, machine, options};
  const Nanoseconds alone_ns = Plan("autoswap-doa", problem, options).timeline.iteration_ns;
  const auto never = [] { return false; };
  const auto found = MakeFaster(question, DecideDoa(question), alone_ns + 1, never);
  ASSERT_TRUE(found);
  EXPECT_EQ(sim::Simulate(*found->plan()).iteration_ns, alone_ns);
  EXPECT_FALSE(MakeFaster(question, DecideDoa(question), alone_ns, never));
  EXPECT_FALSE(MakeFaster(question, DecideDoa(question), alone_ns + 1, [] { return true; }));

  const auto combined = PlanBayesBelow(question, alone_ns);
  ASSERT_TRUE(combined) << "mixtures of the scores are faster than this one alone";
  EXPECT_LT(sim::Simulate(*combined->plan()).iteration_ns, alone_ns);
  EXPECT_TRUE(plan::CheckPlan(*combined->plan()).empty());
  EXPECT_FALSE(PlanBayesBelow(question, problem.iteration_ns()));
}

TEST(PlannerTest, EqualQuestionsHaveEqualAnswers) {
  const plan::Problem problem = Read("resnet18_b100");
  PlannerOptions options = AtPercent(problem, 60);
  for (const char* planner : {"autoswap-aoa", "autoswap-wdoa", "tflms", "vdnn-all"}) {
    const Outcome one = Plan(planner, problem, options);
    const Outcome two = Plan(planner, problem, options);
    ASSERT_TRUE(one.plan && two.plan) << planner;
    EXPECT_EQ(one.timeline.iteration_ns, two.timeline.iteration_ns) << planner;
    ASSERT_EQ(one.plan->residencies.size(), two.plan->residencies.size()) << planner;
    for (std::size_t r = 0; r < one.plan->residencies.size(); ++r) {
      EXPECT_EQ(one.plan->residencies[r].offset, two.plan->residencies[r].offset) << planner;
    }
  }
}

}  // namespace
}  // namespace plimsoll::planners

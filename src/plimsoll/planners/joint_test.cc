// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Problem Read(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
}

PlannerOptions AtPercent(const plan::Problem& problem, int percent, std::int64_t evaluations) {
  PlannerOptions options;
  options.limit_bytes = plan::ProfileLoad(problem).peak_bytes * percent / 100;
  options.evaluations = evaluations;
  return options;
}

Outcome Plan(std::string_view planner, const plan::Problem& problem,
             const PlannerOptions& options) {
  return MakePlan(*FindPlanner(planner), problem, *plan::FindMachine("h200"), options);
}

double Overhead(const Outcome& outcome, const plan::Problem& problem) {
  return static_cast<double>(outcome.timeline.iteration_ns) /
             static_cast<double>(problem.iteration_ns()) -
         1;
}

TEST(JointTest, HalfTheMemoryOfAResNetCostsAFewPercent) {
  const plan::Problem problem = Read("resnet50_b64");
  const PlannerOptions options = AtPercent(problem, 50, 3000);
  const Outcome outcome = Plan("joint", problem, options);
  ASSERT_TRUE(outcome.plan);
  EXPECT_TRUE(plan::CheckPlan(*outcome.plan).empty());
  EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes);
  // Swapping alone costs twice the iteration.
  EXPECT_LT(Overhead(outcome, problem), 0.12);
  ASSERT_TRUE(outcome.plan->rewriting);
  EXPECT_EQ(outcome.plan->rewriting->original, problem);
}

/// Which variables the optimizer alone touches, of 64 KiB to 1 MiB.
std::vector<bool> FindSmallMoments(const plan::Problem& problem) {
  std::vector<bool> moments;
  for (const plan::Variable& variable : problem.variables) {
    const Bytes size = variable.size_bytes;
    moments.push_back(variable.persistent() && size >= 64 << 10 && size < 1 << 20);
  }
  for (const plan::Op& op : problem.ops) {
    if (op.phase == trace::Phase::kUpdate) continue;
    for (const plan::Operand& x : problem.reads(op)) {
      moments[static_cast<std::size_t>(x.variable)] = false;
    }
  }
  return moments;
}

TEST(JointTest, MomentsLeaveIfThatIsOfUse) {
  const plan::Problem problem = Read("resnet50_b64");
  for (const int percent : {50, 110}) {
    SCOPED_TRACE(percent);
    const Outcome outcome = Plan("joint", problem, AtPercent(problem, percent, 1000));
    ASSERT_TRUE(outcome.plan);
    const std::vector<bool> moments = FindSmallMoments(outcome.plan->problem);
    const auto count = std::count(moments.begin(), moments.end(), true);
    EXPECT_GT(count, 0);
    std::ptrdiff_t gone = 0;
    for (const plan::Residency& residency : outcome.plan->residencies) {
      if (moments[static_cast<std::size_t>(residency.variable)] && residency.copy_out >= 0) ++gone;
    }
    EXPECT_EQ(gone, percent > 100 ? 0 : count);
  }
}

TEST(JointTest, IsNotBehindSwappingAlone) {
  for (const char* name : {"resnet18_b100", "vgg11_cifar_b100", "unet_b8_256", "alexnet_b256"}) {
    const plan::Problem problem = Read(name);
    for (const int percent : {90, 70}) {
      SCOPED_TRACE(std::string(name) + " at " + std::to_string(percent) + " %");
      const PlannerOptions options = AtPercent(problem, percent, 1500);
      const Outcome joint = Plan("joint", problem, options);
      for (const char* rival : {"autoswap-swdoa", "autoswap-doa", "vdnn-conv", "tflms"}) {
        const Outcome other = Plan(rival, problem, options);
        if (!other.plan) continue;
        ASSERT_TRUE(joint.plan) << rival;
        EXPECT_LE(joint.timeline.iteration_ns, other.timeline.iteration_ns) << rival;
      }
    }
  }
}

TEST(JointTest, EqualEvaluationsGiveEqualPlans) {
  const plan::Problem problem = Read("resnet18_b100");
  const PlannerOptions options = AtPercent(problem, 60, 800);
  const Outcome one = Plan("joint", problem, options);
  const Outcome two = Plan("joint", problem, options);
  ASSERT_TRUE(one.plan && two.plan);
  EXPECT_EQ(*one.plan, *two.plan);
}

TEST(JointTest, EqualEvaluationsGiveEqualPlansOnAnyNumberOfThreads) {
  const plan::Problem problem = Read("resnet18_b100");
  PlannerOptions options = AtPercent(problem, 60, 800);
  options.threads = 1;
  const Outcome one = Plan("joint", problem, options);
  options.threads = 4;
  const Outcome four = Plan("joint", problem, options);
  ASSERT_TRUE(one.plan && four.plan);
  EXPECT_EQ(*one.plan, *four.plan);
}

TEST(JointTest, SeveralThreadsCallNobodyButByTheirCaller) {
  const plan::Problem problem = Read("unet_b8_256");
  PlannerOptions options = AtPercent(problem, 60, 0);
  options.time_budget_seconds = 2;
  options.threads = 4;
  const std::thread::id caller = std::this_thread::get_id();
  Nanoseconds best_ns = std::numeric_limits<Nanoseconds>::max();
  std::atomic<int> strangers = 0;
  options.on_progress = [&](Nanoseconds ns) {
    if (std::this_thread::get_id() != caller) ++strangers;
    EXPECT_LT(ns, best_ns);
    best_ns = ns;
  };
  options.stop = [&] {
    if (std::this_thread::get_id() != caller) ++strangers;
    return false;
  };
  const Outcome outcome = Plan("joint", problem, options);
  ASSERT_TRUE(outcome.plan);
  EXPECT_TRUE(plan::CheckPlan(*outcome.plan).empty());
  EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes);
  EXPECT_EQ(outcome.timeline.iteration_ns, best_ns);
  EXPECT_EQ(strangers, 0);
}

TEST(JointTest, SeveralThreadsStopSoon) {
  const plan::Problem problem = Read("unet_b8_256");
  PlannerOptions options = AtPercent(problem, 60, 0);
  options.time_budget_seconds = 600;
  options.threads = 3;
  const Stopwatch watch;
  options.stop = [&] { return watch.seconds() > 1.5; };
  const Outcome outcome = Plan("joint", problem, options);
  EXPECT_LT(watch.seconds(), 60);
  ASSERT_TRUE(outcome.plan);
  EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes);
}

TEST(JointTest, AnExceptionOfTheCallerEndsAllThreads) {
  const plan::Problem problem = Read("unet_b8_256");
  PlannerOptions options = AtPercent(problem, 60, 0);
  options.time_budget_seconds = 600;
  options.threads = 3;
  const Stopwatch watch;
  options.stop = [&]() -> bool {
    if (watch.seconds() > 1.5) throw std::runtime_error("enough");
    return false;
  };
  EXPECT_THROW(Plan("joint", problem, options), std::runtime_error);
  EXPECT_LT(watch.seconds(), 60);
}

TEST(JointTest, WithoutTimeThereIsTheFirstPlan) {
  const plan::Problem problem = Read("resnet18_b100");
  PlannerOptions options = AtPercent(problem, 60, 0);
  options.time_budget_seconds = 0;
  const Outcome outcome = Plan("joint", problem, options);
  ASSERT_TRUE(outcome.plan);
  EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes);
}

TEST(JointTest, AnAmpleLimitCostsNothing) {
  const plan::Problem problem = Read("vgg11_cifar_b100");
  const Outcome outcome = Plan("joint", problem, AtPercent(problem, 110, 0));
  ASSERT_TRUE(outcome.plan);
  EXPECT_FALSE(outcome.plan->rewriting);
  EXPECT_EQ(outcome.timeline.iteration_ns, problem.iteration_ns());
}

}  // namespace
}  // namespace plimsoll::planners

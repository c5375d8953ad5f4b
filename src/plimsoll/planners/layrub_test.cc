// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Problem Read(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::Unroll(plan::MakeProblem(trace::ReadTrace(path)));
}

Outcome Plan(std::string_view planner, const plan::Problem& problem, Bytes limit_bytes,
             std::string_view machine = "gtx1080ti") {
  PlannerOptions options;
  options.limit_bytes = limit_bytes;
  return MakePlan(*FindPlanner(planner), problem, *plan::FindMachine(machine), options);
}

class LayrubTest : public testing::TestWithParam<const char*> {};

TEST_P(LayrubTest, ReuseWithinLayersIsFreeAndMigrationGoesFurther) {
  const plan::Problem problem = Read(GetParam());
  const Bytes ample = 4 * plan::ProfileLoad(problem).peak_bytes;
  const Outcome intra = Plan("layrub-intra", problem, ample);
  const Outcome inter = Plan("layrub-inter", problem, ample);
  const Outcome hybrid = Plan("layrub-hybrid", problem, ample);
  ASSERT_TRUE(intra.plan && inter.plan && hybrid.plan);
  EXPECT_EQ(intra.plan->host_bytes, 0);
  EXPECT_EQ(intra.timeline.iteration_ns, problem.iteration_ns());
  EXPECT_GT(hybrid.plan->host_bytes, 0);
  EXPECT_LT(hybrid.plan->footprint_bytes, intra.plan->footprint_bytes);
  EXPECT_LE(hybrid.plan->footprint_bytes, inter.plan->footprint_bytes);
  EXPECT_GT(hybrid.timeline.iteration_ns, problem.iteration_ns());
}

TEST_P(LayrubTest, SaysWhatItNeedsAndFitsThere) {
  const plan::Problem problem = Read(GetParam());
  for (const char* planner : {"layrub-intra", "layrub-inter", "layrub-hybrid"}) {
    const Outcome small = Plan(planner, problem, 1000);
    ASSERT_FALSE(small.plan) << planner;
    const Bytes needed = small.misfit.needed_bytes;
    const Outcome fits = Plan(planner, problem, needed);
    ASSERT_TRUE(fits.plan) << planner;
    EXPECT_EQ(fits.plan->footprint_bytes, needed) << planner;
    EXPECT_TRUE(plan::CheckPlan(*fits.plan).empty()) << planner;
  }
}

TEST_P(LayrubTest, ALayerWaitsForWhatWasToLeaveDuringTheOneBeforeIt) {
  const plan::Problem problem = Read(GetParam());
  const Outcome outcome =
      Plan("layrub-hybrid", problem, 4 * plan::ProfileLoad(problem).peak_bytes, "v100");
  ASSERT_TRUE(outcome.plan);
  const plan::Plan& plan = *outcome.plan;
  const auto accesses = plan::ListAccesses(plan.problem);
  std::int64_t checked = 0;
  for (const plan::Residency& residency : plan.residencies) {
    if (residency.copy_out < 0) continue;
    plan::OpIndex last = -1;
    for (const plan::Access& access : accesses[At(residency.variable)]) {
      if (access.time < residency.end) last = access.op;
    }
    // Ops of forward are layers.
    const auto next = At(last) + 2;
    ASSERT_LT(next, plan.problem.ops.size());
    if (plan.problem.ops[next].phase != trace::Phase::kForward) continue;
    EXPECT_GE(outcome.timeline.spans[next].start_ns,
              outcome.timeline.spans[At(residency.copy_out)].end_ns);
    ++checked;
  }
  EXPECT_GT(checked, 3);
}

TEST_P(LayrubTest, TheHostLimitHolds) {
  const plan::Problem problem = Read(GetParam());
  PlannerOptions options;
  options.limit_bytes = kMaxBytes / 4;
  options.host_limit_bytes = 1000;
  const Outcome outcome =
      MakePlan(*FindPlanner("layrub-hybrid"), problem, *plan::FindMachine("h200"), options);
  ASSERT_FALSE(outcome.plan);
  EXPECT_TRUE(outcome.misfit.host);
}

INSTANTIATE_TEST_SUITE_P(Traces, LayrubTest, testing::Values("vgg11_cifar_b100", "resnet18_b100"));

}  // namespace
}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/smallest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

plan::Machine Link() { return *plan::FindMachine("h200"); }

plan::Problem ReadProblem(const std::string& name) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/" + name + ".trace.gz";
  return plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
}

TEST(SmallestTest, JointHasAPlanAtTheSmallestLimit) {
  for (const char* name : {"vgg11_cifar_b100", "unet_b8_256", "resnet18_b100"}) {
    const plan::Problem problem = ReadProblem(name);
    PlannerOptions options;
    options.limit_bytes = SmallestLimit(problem, Link(), options);
    options.evaluations = 50;
    const Outcome outcome = MakePlan(*FindPlanner("joint"), problem, Link(), options);
    ASSERT_TRUE(outcome.plan) << name;
    EXPECT_LE(outcome.plan->footprint_bytes, options.limit_bytes) << name;
    EXPECT_TRUE(plan::CheckPlan(*outcome.plan).empty()) << name;
  }
}

TEST(SmallestTest, RecomputationGoesBelowWhatSwappingReaches) {
  const plan::Problem problem = ReadProblem("unet_b8_256");
  const Bytes smallest = SmallestLimit(problem, Link(), {});
  EXPECT_LT(smallest, SmallestBySwapping(problem, Link(), {}));
  const std::vector<plan::OpLoad> loads = plan::LoadOps(problem);
  EXPECT_GE(smallest, loads[At(plan::FindLargestOp(loads))].needed_bytes());
}

TEST(SmallestTest, LimitsInTheOptionsDoNotMatter) {
  const plan::Problem problem = ReadProblem("vgg11_cifar_b100");
  PlannerOptions tight;
  tight.limit_bytes = 1;
  tight.host_limit_bytes = 1;
  EXPECT_EQ(SmallestLimit(problem, Link(), tight), SmallestLimit(problem, Link(), {}));
}

}  // namespace
}  // namespace plimsoll::planners

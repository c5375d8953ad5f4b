// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/signature.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

/// Two ops and two variables, by hand.
Problem Example() {
  Problem problem;
  problem.period = 5;
  problem.op_names = {"convolution", "relu"};
  problem.variables = {{.id = 3, .size_bytes = 100, .end = 5, .kind = VariableKind::kPersistent},
                       {.id = 9, .size_bytes = 20, .begin = 1, .end = 4}};
  problem.operands = {{0, 0}, {1, 0}, {1, 0}};
  problem.ops = {{.name = 0, .duration_ns = 7, .position = 2, .read_count = 1, .write_count = 1},
                 {.name = 1, .position = 3, .first_operand = 2, .read_count = 1}};
  return problem;
}

TEST(SignatureTest, ChangesWithAllThatAPlanDependsOn) {
  const std::vector<std::function<void(Problem*)>> changes = {
      [](Problem* x) { x->cyclic = false; },
      [](Problem* x) { x->period = 6; },
      [](Problem* x) { x->variables[1].size_bytes = 21; },
      [](Problem* x) { x->variables[1].begin = 0; },
      [](Problem* x) { x->variables[1].end = 5; },
      [](Problem* x) { x->variables[1].kind = VariableKind::kGradient; },
      [](Problem* x) { x->variables.push_back(x->variables[1]); },
      [](Problem* x) { x->ops[1].name = 0; },
      [](Problem* x) { x->op_names[1] = "tanh"; },
      [](Problem* x) { x->ops[1].position = 4; },
      [](Problem* x) { x->ops.pop_back(); },
      [](Problem* x) { x->operands[2].variable = 0; },
      [](Problem* x) { x->operands[2].age = 1; },
      [](Problem* x) { x->ops[0].read_count = 2, x->ops[0].write_count = 0; },
  };
  const std::uint64_t signature = Signature(Example());
  for (std::size_t k = 0; k < changes.size(); ++k) {
    Problem changed = Example();
    changes[k](&changed);
    EXPECT_NE(Signature(changed), signature) << "change " << k;
  }
}

TEST(SignatureTest, DoesNotChangeWithTheRest) {
  Problem other = Example();
  other.variables[0].id = 77;
  other.ops[0].duration_ns = 1'000'000;
  other.iterations = 12;
  other.first_event = 4000;
  other.op_names = {"unused", "relu", "convolution"};
  other.ops[0].name = 2;
  EXPECT_EQ(Signature(other), Signature(Example()));
}

TEST(SignatureTest, IsPinned) {
  // Plan files have it: it must not change from release to release.
  EXPECT_EQ(Signature(Example()), 781294352561446172U);
}

TEST(SignatureTest, TellsRandomProblemsApart) {
  PlanRandom random(1);
  std::vector<std::uint64_t> seen;
  for (int k = 0; k < 500; ++k) seen.push_back(Signature(RandomProblem(&random).Make()));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace plimsoll::plan

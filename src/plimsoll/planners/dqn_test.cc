// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/planners/dqn_environment_internal.h"
#include "plimsoll/planners/dqn_internal.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

/// Gives mallocs and frees positions of their own, before and behind the op that they stand at, and
/// lets every op run again. The first ops are the forward phase.
void Finish(plan::OpIndex forward_ops, plan::Problem* problem) {
  problem->op_names = {"op"};
  problem->period *= 3;
  for (plan::Variable& variable : problem->variables) {
    variable.begin *= 3;
    variable.end = 3 * variable.end - 1;
  }
  for (plan::Op& op : problem->ops) {
    op.phase = op.position < forward_ops ? trace::Phase::kForward : trace::Phase::kBackward;
    op.traits.replayable = true;
    op.position = 3 * op.position + 1;
  }
}

/// Ops of 10 ns; x and y are made first, z is all that fits beside them, and then they are needed:
///
///     op         0   1   2   3   4   5 │ 6   7   backward
///     x, 15 B    W                     │ R
///     y, 15 B        W                 │     R
///     z, 40 B                    W   R │
plan::Problem MakeSmallProblem() {
  plan::Problem problem;
  problem.cyclic = false;
  plan::AddTimedOp(10, {}, {0}, &problem);
  plan::AddTimedOp(10, {}, {1}, &problem);
  plan::AddTimedOp(10, {}, {}, &problem);
  plan::AddTimedOp(10, {}, {}, &problem);
  plan::AddTimedOp(10, {}, {2}, &problem);
  plan::AddTimedOp(10, {2}, {}, &problem);
  plan::AddTimedOp(10, {0}, {}, &problem);
  plan::AddTimedOp(10, {1}, {}, &problem);
  plan::AddVariable(15, 0, 7, &problem);
  plan::AddVariable(15, 1, 8, &problem);
  plan::AddVariable(40, 4, 6, &problem);
  Finish(6, &problem);
  return problem;
}

PlannerOptions WithLimit(Bytes limit_bytes) {
  PlannerOptions options;
  options.limit_bytes = limit_bytes;
  options.least_bytes = 1;
  options.alignment = 1;
  return options;
}

/// The node of an action on a variable.
learn::NodeIndex NodeOf(const DqnEnvironment& environment, learn::ActionKind kind,
                        plan::VariableIndex variable) {
  const learn::OperationGraph& graph = environment.graph();
  for (const learn::Action& action : graph.actions) {
    const auto node = static_cast<std::size_t>(action.node);
    const bool same = kind == learn::ActionKind::kNothing || graph.nodes[node].variable == variable;
    if (action.kind == kind && same) return action.node;
  }
  return -1;
}

bool IsValid(const DqnEnvironment& environment, learn::NodeIndex node) {
  return std::ranges::count(environment.state().valid, node) == 1;
}

class DqnEnvironmentTest : public testing::Test {
 protected:
  static constexpr learn::ActionKind kNothing = learn::ActionKind::kNothing;
  static constexpr learn::ActionKind kSwap = learn::ActionKind::kSwap;
  static constexpr learn::ActionKind kRemove = learn::ActionKind::kRemove;

  const plan::Problem problem_ = MakeSmallProblem();
  const plan::Machine machine_ = plan::OneBytePerNs();
  const PlannerOptions options_ = WithLimit(41);  // z and next to nothing.
  const Question question_{problem_, machine_, options_};
};

TEST_F(DqnEnvironmentTest, ASwapTakesTheAgentToTheOpBehindItsCopy) {
  DqnEnvironment environment(question_, true);
  environment.Reset(options_.limit_bytes, plan::kPrefetchEarly);
  EXPECT_EQ(environment.op(), 0) << "where the first gap begins";
  EXPECT_TRUE(IsValid(environment, NodeOf(environment, kNothing, 0)));
  EXPECT_TRUE(IsValid(environment, NodeOf(environment, kRemove, 0)));
  EXPECT_FALSE(IsValid(environment, NodeOf(environment, kSwap, 1))) << "y is not there yet";
  // The copy out, of 15 ns, is hidden. Nothing comes back before z goes, at 60: op 6 waits for 15
  // ns of 80. The agent goes to op 2, one and a half rounded up.
  EXPECT_NEAR(environment.Take(NodeOf(environment, kSwap, 0)), -18.75, 1e-9);
  EXPECT_FALSE(environment.terminal());
  EXPECT_FALSE(IsValid(environment, NodeOf(environment, kSwap, 0)));
  EXPECT_FALSE(IsValid(environment, NodeOf(environment, kRemove, 0))) << "it is swapped";
  EXPECT_EQ(environment.op(), 3) << "no gap begins from op 2 on; op 4 has no room";
}

TEST_F(DqnEnvironmentTest, RewardsAddUpToTheOverhead) {
  DqnEnvironment environment(question_, false);
  environment.Reset(options_.limit_bytes, plan::kPrefetchEarly);
  double sum = environment.Take(NodeOf(environment, kSwap, 0));
  sum += environment.Take(NodeOf(environment, kSwap, 1));
  ASSERT_TRUE(environment.terminal());
  EXPECT_FALSE(environment.failed());
  // z is there until 60. Then x comes back until 75, op 6 runs until 85, y is back at 90: the last
  // op ends at 100, in the place of 80.
  EXPECT_EQ(environment.time_ns(), 100);
  EXPECT_NEAR(sum, -25, 1e-9);
}

TEST_F(DqnEnvironmentTest, ARemovalCostsWhatRunsAgain) {
  DqnEnvironment environment(question_, true);
  environment.Reset(options_.limit_bytes, plan::kPrefetchEarly);
  EXPECT_NEAR(environment.Take(NodeOf(environment, kRemove, 0)), -12.5, 1e-9);
  EXPECT_EQ(environment.op(), 1) << "a removal takes no time";
  EXPECT_NEAR(environment.Take(NodeOf(environment, kRemove, 1)), -12.5, 1e-9);
  ASSERT_TRUE(environment.terminal());
  EXPECT_EQ(environment.time_ns(), 100);
}

TEST_F(DqnEnvironmentTest, TheAgentMustActBeforeAnOpThatHasNoRoom) {
  DqnEnvironment environment(question_, true);
  environment.Reset(options_.limit_bytes, plan::kPrefetchEarly);
  EXPECT_EQ(environment.Take(NodeOf(environment, kNothing, 0)), 0);
  EXPECT_EQ(environment.op(), 1);
  EXPECT_EQ(environment.Take(NodeOf(environment, kNothing, 0)), 0);
  EXPECT_EQ(environment.op(), 3);
  EXPECT_FALSE(IsValid(environment, NodeOf(environment, kNothing, 0)));
  EXPECT_TRUE(IsValid(environment, NodeOf(environment, kSwap, 0)));
  EXPECT_TRUE(IsValid(environment, NodeOf(environment, kSwap, 1)));
}

TEST_F(DqnEnvironmentTest, WithoutRemovalsThereAreOnlySwaps) {
  const DqnEnvironment environment(question_, false);
  EXPECT_GE(NodeOf(environment, kSwap, 0), 0);
  EXPECT_EQ(NodeOf(environment, kRemove, 0), -1);
}

/// A chain of layers whose outputs are needed again in reverse order.
plan::Problem MakeChain(int layers) {
  plan::Problem problem;
  problem.cyclic = false;
  for (int k = 0; k < layers; ++k) {
    if (k == 0) {
      plan::AddTimedOp(10, {}, {0}, &problem);
    } else {
      plan::AddTimedOp(10 + 7 * (k % 3), {k - 1}, {k}, &problem);
    }
  }
  for (int k = layers; k-- > 0;) plan::AddTimedOp(20, {k}, {}, &problem);
  for (int k = 0; k < layers; ++k) {
    plan::AddVariable(12 + 9 * (k % 2), k, 2 * layers - k, &problem);
  }
  Finish(layers, &problem);
  return problem;
}

/// The time of the best choice of all for a target.
double FindBest(const Question& question, Bytes target) {
  JointEvaluator evaluator(question);
  evaluator.set_target(target);
  double best = kNever;
  const std::size_t count = evaluator.gaps().size();
  for (int code = 0; code < std::pow(3, count); ++code) {
    JointState state;
    for (int rest = code; state.choices.size() < count; rest /= 3) {
      state.choices.push_back(static_cast<Choice>(rest % 3));
    }
    if (!evaluator.Evaluate(&state) || state.excess > 0) continue;
    evaluator.Rehearse(&state);
    best = std::min(best, state.time_ns);
  }
  return best;
}

TEST(DqnTest, FindsTheOptimumOfASmallChain) {
  const plan::Problem problem = MakeChain(7);
  const plan::Machine machine = plan::OneBytePerNs();
  PlannerOptions options = WithLimit(plan::ProfileLoad(problem).peak_bytes * 45 / 100);
  options.evaluations = 2000;
  const Question question{problem, machine, options};
  const double best = FindBest(question, options.limit_bytes);
  ASSERT_LT(best, kNever);
  EXPECT_GT(best, problem.iteration_ns()) << "too easy";
  double first = 0;
  double last = 0;
  const Attempt attempt = TrainDqn(question, true, [&](const DqnEpisode& episode) {
    if (episode.number == 1) first = episode.time_ns;
    last = episode.best_ns;
  });
  ASSERT_NE(attempt.plan(), nullptr);
  EXPECT_TRUE(plan::CheckPlan(*attempt.plan()).empty());
  EXPECT_EQ(last, best);
  EXPECT_GT(first, best) << "found by chance";
}

class DqnTraceTest : public testing::Test {
 protected:
  static plan::Problem Read() {
    return plan::ProblemToPlan(
        plan::MakeProblem(trace::ReadTrace(PLIMSOLL_DATA_DIR "/traces/resnet18_b100.trace.gz")));
  }
  static PlannerOptions Options(const plan::Problem& problem, std::int64_t evaluations) {
    PlannerOptions options;
    options.limit_bytes = plan::ProfileLoad(problem).peak_bytes * 6 / 10;
    options.evaluations = evaluations;
    return options;
  }
  static Outcome Plan(const plan::Problem& problem, const PlannerOptions& options) {
    return MakePlan(*FindPlanner("dqn"), problem, *plan::FindMachine("gtx1080ti"), options);
  }
};

TEST_F(DqnTraceTest, EqualEvaluationsGiveEqualPlansAndWeights) {
  const plan::Problem problem = Read();
  PlannerOptions options = Options(problem, 200);
  learn::Policy policies[2];
  Outcome outcomes[2];
  for (int k = 0; k < 2; ++k) {
    options.on_policy = [&](const learn::Policy& policy) { policies[k] = policy; };
    outcomes[k] = Plan(problem, options);
    ASSERT_TRUE(outcomes[k].plan);
    EXPECT_LE(outcomes[k].plan->footprint_bytes, options.limit_bytes);
  }
  EXPECT_EQ(*outcomes[0].plan, *outcomes[1].plan);
  EXPECT_EQ(policies[0], policies[1]);
  EXPECT_EQ(policies[0].values.size(), learn::PolicySize(learn::kWidth));
}

TEST_F(DqnTraceTest, StartsFromTheWeightsThatItIsGiven) {
  const plan::Problem problem = Read();
  PlannerOptions options = Options(problem, 200);
  // A network of zeros has no gradient: it stays as it is.
  const learn::Policy zeros{.values = std::vector<float>(learn::PolicySize(learn::kWidth), 0)};
  learn::Policy learned;
  options.policy = &zeros;
  options.on_policy = [&](const learn::Policy& policy) { learned = policy; };
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  std::vector<double> shares;
  TrainDqn({problem, machine, options}, true,
           [&](const DqnEpisode& episode) { shares.push_back(episode.share); });
  EXPECT_EQ(learned, zeros);
  ASSERT_GE(shares.size(), 2);
  EXPECT_EQ(shares[0], 0) << "what the weights know is seen first";
  EXPECT_LE(shares[1], 0.25);
}

TEST_F(DqnTraceTest, AStoppedTrainingKeepsTheBestPlanAndItsWeights) {
  const plan::Problem problem = Read();
  PlannerOptions options = Options(problem, 100'000'000);
  bool handed = false;
  Nanoseconds best_ns = 0;
  options.on_policy = [&](const learn::Policy&) { handed = true; };
  options.on_progress = [&](Nanoseconds ns) { best_ns = ns; };
  options.stop = [&] { return best_ns > 0; };
  const Outcome outcome = Plan(problem, options);
  ASSERT_TRUE(outcome.plan);
  EXPECT_EQ(outcome.timeline.iteration_ns, best_ns);
  EXPECT_TRUE(handed);
}

TEST_F(DqnTraceTest, TrainingThatIsStoppedBeforeAnythingFitsEndsAtOnce) {
  const plan::Problem problem = Read();
  PlannerOptions options = Options(problem, 100'000'000);
  options.stop = [] { return true; };
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  int episodes = 0;
  const Attempt attempt =
      TrainDqn({problem, machine, options}, true, [&](const DqnEpisode&) { ++episodes; });
  EXPECT_EQ(episodes, 0);
  ASSERT_NE(attempt.plan(), nullptr) << "what can be made without learning";
  EXPECT_TRUE(plan::CheckPlan(*attempt.plan()).empty());
}

TEST_F(DqnTraceTest, BeyondItsBudgetTrainingOnlyLooksForWhatFits) {
  const plan::Problem problem = Read();
  const PlannerOptions options = Options(problem, 1);
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  learn::Policy before;
  PlannerOptions untrained = options;
  untrained.stop = [] { return true; };
  untrained.on_policy = [&](const learn::Policy& policy) { before = policy; };
  TrainDqn({problem, machine, untrained}, true);
  learn::Policy after;
  PlannerOptions late = options;
  late.on_policy = [&](const learn::Policy& policy) { after = policy; };
  TrainDqn({problem, machine, late}, true);
  EXPECT_EQ(before, after) << "one choice is too few to learn from";
}

}  // namespace
}  // namespace plimsoll::planners

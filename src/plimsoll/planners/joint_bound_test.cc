// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_bound.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::planners {
namespace {

using plan::OneBytePerNs;

/// Variable 0 is made by the first op and used by the last; in between, `other` bytes are needed
/// for a moment.
plan::Problem OneAway(Bytes other = 1000) {
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(100, {}, {0}, &problem);
  plan::AddTimedOp(0, {}, {1}, &problem);
  plan::AddTimedOp(0, {1}, {}, &problem);
  plan::AddTimedOp(200, {0}, {}, &problem);
  problem.variables.clear();
  problem.period = 8;
  const std::initializer_list<plan::Position> positions = {1, 3, 4, 6};
  std::size_t k = 0;
  for (const plan::Position position : positions) problem.ops[k++].position = position;
  plan::AddVariable(1000, 0, 7, &problem);
  plan::AddVariable(other, 2, 5, &problem);
  return problem;
}

PlannerOptions Options(Bytes limit_bytes) {
  PlannerOptions options;
  options.limit_bytes = limit_bytes;
  options.least_bytes = 1;
  options.alignment = 1;
  options.evaluations = 20;
  return options;
}

Nanoseconds Planned(const plan::Problem& problem, const plan::Machine& machine, Bytes limit_bytes) {
  const Outcome outcome = MakePlan(*FindPlanner("joint"), problem, machine, Options(limit_bytes));
  EXPECT_TRUE(outcome.plan);
  return outcome.timeline.iteration_ns;
}

TEST(JointBoundTest, IsTheSumOfTheOpsWhereEverythingFits) {
  EXPECT_EQ(JointBound(OneAway(), OneBytePerNs(), 2000), 300);
}

TEST(JointBoundTest, IsExactWhereOneVariableMustBeSwapped) {
  // It goes out behind the op that makes it, and comes in before the one that needs it.
  const plan::Problem problem = OneAway();
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 1000)), 2300, 1);
  EXPECT_EQ(Planned(problem, OneBytePerNs(), 1000), 2300);
}

TEST(JointBoundTest, IsExactWhereOneVariableIsRecomputed) {
  plan::Problem problem = OneAway();
  problem.ops[0].traits.replayable = true;
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 1000)), 400, 1);
  EXPECT_EQ(Planned(problem, OneBytePerNs(), 1000), 400);
}

TEST(JointBoundTest, IsHigherForPlansThatOnlySwap) {
  plan::Problem problem = OneAway();
  problem.ops[0].traits.replayable = true;
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 1000, false)), 2300, 1);
}

TEST(JointBoundTest, RunsEveryWriterAgain) {
  plan::Problem problem = OneAway();
  // The second op updates the variable in place; 1 is needed by the third alone.
  problem.operands[static_cast<std::size_t>(problem.ops[1].first_operand)].variable = 0;
  for (plan::Op& op : problem.ops) op.traits.replayable = true;
  problem.ops[1].duration_ns = 70;
  problem.variables[1].begin = 3;
  problem.ops[1].position = 2;
  // Over a link too slow to carry anything on the side.
  const plan::Machine slow = {"test", 0, 0, 1e6, 1e6, 1e6, 1e6};
  EXPECT_NEAR(static_cast<double>(JointBound(problem, slow, 1000)), 100 + 70 + 200 + 170, 1);
}

TEST(JointBoundTest, SharesAnOpAmongAllThatItWrites) {
  // One op writes two variables, both of which are away: it runs again once.
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(100, {}, {0, 1}, &problem);
  plan::AddTimedOp(0, {}, {2}, &problem);
  plan::AddTimedOp(100, {0, 1}, {}, &problem);
  problem.ops[0].traits.replayable = true;
  plan::AddVariable(1000, 0, 3, &problem);
  plan::AddVariable(3000, 0, 3, &problem);
  plan::AddVariable(4000, 1, 2, &problem);
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 4000)), 300, 1);
  // Half of it is charged for half of the bytes.
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 6000)), 250, 1);
}

/// Variable 1 is made of 0, which nobody else reads, and is away while the third op runs.
plan::Problem MadeOfTheDead(Bytes dead_bytes) {
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(70, {}, {0}, &problem);
  plan::AddTimedOp(10, {0}, {1}, &problem);
  plan::AddTimedOp(100, {}, {2}, &problem);
  plan::AddTimedOp(100, {1}, {}, &problem);
  for (plan::Op& op : problem.ops) op.position = 3 * op.position + 1;
  problem.period = 12;
  for (plan::Op& op : problem.ops) op.traits.replayable = true;
  plan::AddVariable(dead_bytes, 0, 5, &problem);
  plan::AddVariable(1000, 3, 11, &problem);
  plan::AddVariable(3000, 6, 8, &problem);
  return problem;
}

TEST(JointBoundTest, RebuildsDeadInputsThatAreTooLargeToHold) {
  const plan::Machine slow = {"test", 0, 0, 1e6, 1e6, 1e6, 1e6};
  const plan::Problem problem = MadeOfTheDead(2000);
  EXPECT_NEAR(static_cast<double>(JointBound(problem, slow, 3000)), 280 + 10 + 70, 1);
  EXPECT_EQ(Planned(problem, slow, 3000), 360);
}

TEST(JointBoundTest, HoldsDeadInputsThatAreSmall) {
  const plan::Machine slow = {"test", 0, 0, 1e6, 1e6, 1e6, 1e6};
  const plan::Problem problem = MadeOfTheDead(100);
  EXPECT_NEAR(static_cast<double>(JointBound(problem, slow, 3100)), 280 + 10, 1);
  EXPECT_EQ(Planned(problem, slow, 3100), 290);
}

TEST(JointBoundTest, HoldsADeadInputOnceForAllThatIsMadeOfIt) {
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(70, {}, {0}, &problem);
  plan::AddTimedOp(10, {0}, {1}, &problem);
  plan::AddTimedOp(10, {0}, {2}, &problem);
  plan::AddTimedOp(100, {}, {3}, &problem);
  plan::AddTimedOp(100, {1, 2}, {}, &problem);
  for (plan::Op& op : problem.ops) op.position = 3 * op.position + 1;
  problem.period = 15;
  for (plan::Op& op : problem.ops) op.traits.replayable = true;
  plan::AddVariable(1000, 0, 8, &problem);
  plan::AddVariable(1000, 3, 14, &problem);
  plan::AddVariable(1000, 6, 14, &problem);
  plan::AddVariable(3000, 9, 11, &problem);
  const plan::Machine slow = {"test", 0, 0, 1e6, 1e6, 1e6, 1e6};
  // One of both must go; both are rebuilt from what is held in their place.
  EXPECT_NEAR(static_cast<double>(JointBound(problem, slow, 4000)), 290 + 20, 1);
  EXPECT_EQ(Planned(problem, slow, 4000), 310);
}

TEST(JointBoundTest, WeightsAreAwayForNothingButTheLink) {
  plan::Problem problem = OneAway();
  plan::AddPersistent(1000, &problem);
  // Weights that the first op reads are back by the next iteration.
  problem.operands.insert(problem.operands.begin(), {2, 0});
  problem.ops[0].read_count = 1;
  for (std::size_t i = 1; i < problem.ops.size(); ++i) ++problem.ops[i].first_operand;
  EXPECT_EQ(JointBound(problem, OneBytePerNs(), 2000), 1000 - 1);
}

TEST(JointBoundTest, WeightsThatAreReadLaterComeInBeforeThat) {
  plan::Problem problem = OneAway();
  plan::AddPersistent(1000, &problem);
  problem.operands.push_back({2, 0});
  problem.ops[3].read_count = 2;
  // 100 before the first op that has no room for them, 1000 to bring them in, 200 to use them.
  EXPECT_NEAR(static_cast<double>(JointBound(problem, OneBytePerNs(), 2000)), 1300, 1);
}

/// Lets the first op that touches a variable write it, as programs do.
void WriteFirst(plan::Problem* problem) {
  const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(*problem);
  std::vector<plan::Operand> operands;
  for (std::size_t i = 0; i < problem->ops.size(); ++i) {
    plan::Op& op = problem->ops[i];
    const auto first = static_cast<std::int64_t>(operands.size());
    for (const plan::Operand& x : problem->reads(op)) operands.push_back(x);
    for (const plan::Operand& x : problem->writes(op)) operands.push_back(x);
    for (const plan::Operand& x : problem->reads(op)) {
      const plan::Access& own = accesses[static_cast<std::size_t>(x.variable)].front();
      const bool persistent = problem->variables[static_cast<std::size_t>(x.variable)].persistent();
      if (persistent || own.op != static_cast<plan::OpIndex>(i) || own.writes) continue;
      if (x.age * problem->period + op.position != own.time) continue;
      operands.push_back(x);
    }
    op.first_operand = first;
    op.write_count = static_cast<std::int32_t>(static_cast<std::int64_t>(operands.size()) - first) -
                     op.read_count;
  }
  problem->operands = operands;
}

/// Sets traits, and makes bytes and times large enough for rounding not to matter.
plan::Problem WithTraits(plan::Problem problem, plan::PlanRandom* random) {
  for (plan::Variable& variable : problem.variables) variable.size_bytes *= 1000;
  for (plan::Op& op : problem.ops) {
    op.duration_ns *= random->Between(1, 100);
    op.traits.replayable = !random->OneIn(5);
  }
  return problem;
}

/// Small networks: forward ops that make one or two feature maps or update one in place, and as
/// many backward ops that read them in reverse.
class RandomNetwork {
 public:
  explicit RandomNetwork(plan::PlanRandom* random) : random_(*random) {}

  plan::Problem Make() {
    const std::int64_t layers = random_.Between(2, 7);
    for (std::int64_t k = 0; k < layers; ++k) AddForward();
    for (std::int64_t k = layers - 1; k >= 0; --k) AddBackward(static_cast<std::size_t>(k));
    Place();
    return std::move(problem_);
  }

 private:
  plan::VariableIndex New() {
    problem_.variables.push_back({.id = next_, .size_bytes = random_.Between(1, 8)});
    return next_++;
  }
  void Add(const std::vector<plan::VariableIndex>& reads,
           const std::vector<plan::VariableIndex>& writes) {
    plan::AddTimedOp(random_.Between(0, 80), {}, {}, &problem_);
    plan::Op& op = problem_.ops.back();
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = static_cast<std::int32_t>(writes.size());
    for (const plan::VariableIndex v : reads) problem_.operands.push_back({v, 0});
    for (const plan::VariableIndex v : writes) problem_.operands.push_back({v, 0});
  }
  void AddForward() {
    std::vector<plan::VariableIndex> reads;
    if (!maps_.empty()) reads.push_back(maps_.back().back());
    if (!maps_.empty() && random_.OneIn(4)) {  // In place.
      Add(reads, reads);
      maps_.push_back(reads);
      return;
    }
    maps_.push_back({New()});
    if (random_.OneIn(3)) maps_.back().push_back(New());
    Add(reads, maps_.back());
  }
  void AddBackward(std::size_t layer) {
    std::vector<plan::VariableIndex> reads = maps_[layer];
    if (gradient_ >= 0) reads.push_back(gradient_);
    gradient_ = New();
    Add(reads, {gradient_});
    problem_.ops.back().phase = trace::Phase::kBackward;
  }
  /// Mallocs right before the first op that touches a variable, frees right behind the last.
  void Place() {
    problem_.op_names = {"op"};
    const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem_);
    plan::Position position = 0;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const auto op = static_cast<plan::OpIndex>(i);
      for (std::size_t v = 0; v < accesses.size(); ++v) {
        if (accesses[v].front().op == op) problem_.variables[v].begin = position++;
      }
      problem_.ops[i].position = position++;
      for (std::size_t v = 0; v < accesses.size(); ++v) {
        if (accesses[v].back().op == op) problem_.variables[v].end = position++;
      }
    }
    problem_.period = position;
  }

  plan::PlanRandom& random_;
  plan::Problem problem_;
  std::vector<std::vector<plan::VariableIndex>> maps_;  // By layer.
  plan::VariableIndex gradient_ = -1;
  plan::VariableIndex next_ = 0;
};

plan::Problem RandomCase(plan::PlanRandom* random) {
  if (random->OneIn(2)) return WithTraits(RandomNetwork(random).Make(), random);
  plan::Problem problem = plan::Unroll(plan::RandomProblem(random).Make());
  WriteFirst(&problem);
  return WithTraits(std::move(problem), random);
}

/// Counts of what a random test has seen.
struct Seen {
  int binding = 0;     ///< The bound is above the sum of the ops.
  int near = 0;        ///< A plan is within a tenth of it.
  int recomputed = 0;  ///< The plan recomputes.
};

void ExpectBound(const plan::Problem& problem, const plan::Machine& machine, Bytes limit_bytes,
                 const Planner& planner, Seen* seen) {
  const Outcome outcome = MakePlan(planner, problem, machine, Options(limit_bytes));
  if (!outcome.plan) return;
  const bool may_recompute = outcome.plan->rewriting.has_value();
  const Nanoseconds bound = JointBound(problem, machine, limit_bytes, may_recompute);
  ASSERT_LE(JointBound(problem, machine, limit_bytes), bound);
  const auto copies =
      static_cast<Nanoseconds>(outcome.plan->queues[1].size() + outcome.plan->queues[2].size());
  ASSERT_GE(outcome.timeline.iteration_ns + 1 + copies, bound) << planner.name << "\n"
                                                               << plan::Dump(*outcome.plan);
  if (bound == problem.iteration_ns()) return;
  ++seen->binding;
  if (outcome.timeline.iteration_ns < bound + bound / 10) ++seen->near;
  if (outcome.plan->rewriting) ++seen->recomputed;
}

TEST(JointBoundTest, NoPlanBeatsIt) {
  plan::PlanRandom random(21);
  Seen seen;
  for (int k = 0; k < plan::PlanCaseCount(500); ++k) {
    const plan::Problem problem = RandomCase(&random);
    plan::Machine machine = plan::RandomMachine(&random);
    machine.both_in_bytes_per_s *= static_cast<double>(random.Between(1, 10)) / 10;
    machine.both_out_bytes_per_s *= static_cast<double>(random.Between(1, 10)) / 10;
    const Bytes peak = plan::LeastPeak(problem, {});
    const Bytes least = plan::LeastPeak(problem, {plan::ListGaps(problem, 1)});
    if (peak == least) continue;
    const Bytes limit = random.Between(least, peak - 1);
    for (const Planner& planner : Planners()) {
      // Slow, and no more than the others.
      if (planner.name == "autoswap-bo" || planner.name.starts_with("dqn")) continue;
      ExpectBound(problem, machine, limit, planner, &seen);
      if (HasFatalFailure()) FAIL() << "case " << k;
    }
  }
  EXPECT_GT(seen.binding, 100);
  EXPECT_GT(seen.near, 10);
  EXPECT_GT(seen.recomputed, 10);
}

TEST(JointBoundTest, RisesAsTheLimitFallsAndHoldsOnTraces) {
  const std::string path = PLIMSOLL_DATA_DIR "/traces/resnet18_b100.trace.gz";
  const plan::Problem problem = plan::ProblemToPlan(plan::MakeProblem(trace::ReadTrace(path)));
  const plan::Machine machine = *plan::FindMachine("v100");
  Nanoseconds before = JointBound(problem, machine, kMaxBytes);
  EXPECT_EQ(before, problem.iteration_ns());
  for (const Bytes limit : {Bytes{4} << 30, Bytes{1} << 30, Bytes{700} << 20}) {
    const Nanoseconds bound = JointBound(problem, machine, limit);
    EXPECT_GE(bound, before) << limit;
    before = bound;
    PlannerOptions options;
    options.limit_bytes = limit;
    options.evaluations = 20;
    const Outcome outcome = MakePlan(*FindPlanner("joint"), problem, machine, options);
    if (!outcome.plan) continue;
    EXPECT_GE(outcome.timeline.iteration_ns, bound) << limit;
  }
  EXPECT_GT(before, problem.iteration_ns());
}

}  // namespace
}  // namespace plimsoll::planners

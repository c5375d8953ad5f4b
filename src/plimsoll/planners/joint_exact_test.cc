// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/joint_relaxation.h"
#include "plimsoll/planners/small_network_for_test.h"

namespace plimsoll::planners {
namespace {

using plan::OneBytePerNs;

/// Variable 0 is made by the first op and used by the last; in between, as many bytes are needed
/// for a moment.
plan::Problem OneAway(bool replayable) {
  plan::Problem problem;
  problem.op_names = {"op"};
  plan::AddTimedOp(100, {}, {0}, &problem);
  plan::AddTimedOp(50, {}, {1}, &problem);
  plan::AddTimedOp(50, {1}, {}, &problem);
  plan::AddTimedOp(200, {0}, {}, &problem);
  problem.ops[0].traits.replayable = replayable;
  plan::Position position = 1;
  for (plan::Op& op : problem.ops) op.position = position, position += 2;
  plan::AddVariable(1000, 0, 8, &problem);
  plan::AddVariable(1000, 2, 6, &problem);
  problem.period = 9;
  return problem;
}

PlannerOptions Options(Bytes limit_bytes) {
  PlannerOptions options;
  options.limit_bytes = limit_bytes;
  options.least_bytes = 1;
  options.alignment = 1;
  options.evaluations = 2000;
  return options;
}

Nanoseconds Exact(const plan::Problem& problem, Bytes limit_bytes) {
  const PlannerOptions options = Options(limit_bytes);
  const plan::Machine machine = OneBytePerNs();
  const auto answer = ExactJoint({problem, machine, options});
  return answer ? answer->iteration_ns : -1;
}

TEST(JointExactTest, IsTheSumOfTheOpsWhereEverythingFits) {
  EXPECT_EQ(Exact(OneAway(true), 2000), 400);
  EXPECT_EQ(LeastScheduleNs(OneAway(true), OneBytePerNs(), 2000), 400);
}

TEST(JointExactTest, SwapsWhereNothingMayRunAgain) {
  EXPECT_EQ(Exact(OneAway(false), 1000), 100 + 1000 + 100 + 1000 + 200);
  EXPECT_EQ(LeastScheduleNs(OneAway(false), OneBytePerNs(), 1000), 2400);
}

TEST(JointExactTest, RecomputesWhereThatIsFaster) {
  EXPECT_EQ(Exact(OneAway(true), 1000), 500);
  EXPECT_EQ(LeastScheduleNs(OneAway(true), OneBytePerNs(), 1000), 500);
}

TEST(JointExactTest, HasNoAnswerWhereNothingFits) {
  EXPECT_EQ(Exact(OneAway(true), 999), -1);
  EXPECT_EQ(LeastScheduleNs(OneAway(true), OneBytePerNs(), 999), std::nullopt);
}

TEST(JointExactTest, LooksOnlyForWhatIsFaster) {
  const PlannerOptions options = Options(1000);
  const plan::Problem problem = OneAway(true);
  const plan::Machine machine = OneBytePerNs();
  EXPECT_FALSE(ExactJoint({problem, machine, options}, 500));
  EXPECT_TRUE(ExactJoint({problem, machine, options}, 501));
}

/// What a random test has seen.
struct Seen {
  int cases = 0;
  int binding = 0;          ///< The best plan takes longer than the ops.
  int relaxed = 0;          ///< The least schedule is known.
  int plan_is_least = 0;    ///< And no schedule is shorter than the best plan.
  int missed = 0;           ///< `joint` finds no plan, though there is one.
  int near = 0;             ///< `joint` is within 2 % of the best plan.
  int equal = 0;            ///< It is the best plan.
  double worst = 1;         ///< The largest ratio of `joint` to the best plan.
  double bound_gap = 0;     ///< Sum of what the bound is below the best plan by, of that.
  double schedule_gap = 0;  ///< Sum of what it is below the least schedule by, where known.
};

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// A problem with its limit, and what became of it.
struct Case {
  plan::Problem problem;
  plan::Machine machine;
  Bytes limit_bytes = 0;
};

double Ratio(Nanoseconds a, Nanoseconds b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

void Compare(const Case& x, bool has_weights, Seen* seen) {
  const PlannerOptions options = Options(x.limit_bytes);
  const Outcome joint = MakePlan(*FindPlanner("joint"), x.problem, x.machine, options);
  const auto exact = ExactJoint({x.problem, x.machine, options});
  if (!joint.plan && !exact) return;
  const Nanoseconds joint_ns = joint.plan ? joint.timeline.iteration_ns : kNever;
  const Nanoseconds best_ns = exact ? std::min(exact->iteration_ns, joint_ns) : joint_ns;
  const Nanoseconds bound_ns = JointBound(x.problem, x.machine, x.limit_bytes);
  ASSERT_LE(bound_ns, best_ns);
  ++seen->cases;
  seen->missed += joint.plan ? 0 : 1;
  seen->near += joint_ns <= best_ns + best_ns / 50 ? 1 : 0;
  seen->equal += joint_ns == best_ns ? 1 : 0;
  if (joint.plan) seen->worst = std::max(seen->worst, Ratio(joint_ns, best_ns));
  if (best_ns == x.problem.iteration_ns()) return;
  ++seen->binding;
  seen->bound_gap += 1 - Ratio(bound_ns, best_ns);
  if (has_weights) return;
  const auto least_ns = LeastScheduleNs(x.problem, x.machine, x.limit_bytes);
  if (!least_ns) return;
  ASSERT_LE(bound_ns, *least_ns);
  ASSERT_LE(*least_ns, best_ns);
  ++seen->relaxed;
  seen->plan_is_least += *least_ns == best_ns ? 1 : 0;
  seen->schedule_gap += 1 - Ratio(bound_ns, *least_ns);
}

/// Makes a problem with a limit that asks for something; nothing if there is none, or too much.
std::optional<Case> RandomCase(bool with_weights, plan::PlanRandom* random) {
  Case made{SmallNetwork(random).Make(with_weights), SmallMachine(random)};
  const std::vector<plan::Gap> gaps = plan::ListGaps(made.problem, 1);
  if (gaps.size() > (with_weights ? 6 : 8)) return std::nullopt;
  const Bytes peak = plan::LeastPeak(made.problem, {});
  const Bytes least = plan::LeastPeak(made.problem, {gaps});
  if (peak == least) return std::nullopt;
  made.limit_bytes = random->Between(least / 1000, peak / 1000 - 1) * 1000;
  return made;
}

Seen CompareRandom(bool with_weights, std::uint64_t seed, int cases) {
  plan::PlanRandom random(seed);
  Seen seen;
  for (int k = 0; seen.cases < cases; ++k) {
    const std::optional<Case> made = RandomCase(with_weights, &random);
    if (!made) continue;
    Compare(*made, with_weights, &seen);
    if (testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "case " << k;
      break;
    }
  }
  return seen;
}

/// `least_percent`: of the problems, on which `joint` must be near the best plan.
void Expect(const Seen& seen, int least_percent) {
  testing::Test::RecordProperty("cases", seen.cases);
  testing::Test::RecordProperty("binding", seen.binding);
  testing::Test::RecordProperty("missed", seen.missed);
  testing::Test::RecordProperty("within_2_percent", seen.near);
  testing::Test::RecordProperty("equal", seen.equal);
  testing::Test::RecordProperty("worst_ratio", std::to_string(seen.worst));
  testing::Test::RecordProperty("bound_gap", std::to_string(seen.bound_gap / seen.binding));
  testing::Test::RecordProperty("least_schedule_known", seen.relaxed);
  testing::Test::RecordProperty("plan_is_least_schedule", seen.plan_is_least);
  testing::Test::RecordProperty("bound_gap_to_least_schedule",
                                std::to_string(seen.schedule_gap / std::max(seen.relaxed, 1)));
  EXPECT_GT(seen.binding, seen.cases / 2);
  EXPECT_GE(seen.near * 100, seen.cases * least_percent) << "worst: " << seen.worst;
}

TEST(JointExactTest, NoBoundIsAboveTheBestAndJointIsNearIt) {
  const Seen seen = CompareRandom(false, 31, plan::PlanCaseCount(150));
  EXPECT_EQ(seen.missed, 0);
  Expect(seen, 92);
  EXPECT_GT(seen.relaxed * 100, seen.binding * 95);
}

/// At any limit, also where plans of ours do not go.
TEST(JointExactTest, NoBoundIsAboveTheLeastSchedule) {
  plan::PlanRandom random(33);
  int binding = 0;
  for (int k = 0; k < plan::PlanCaseCount(2000); ++k) {
    plan::Problem problem = SmallNetwork(&random).Make(false);
    const plan::Machine machine = SmallMachine(&random);
    const bool may_recompute = !random.OneIn(4);
    for (plan::Op& op : problem.ops) op.traits.replayable &= may_recompute;
    const std::vector<plan::OpLoad> loads = plan::LoadOps(problem);
    const Bytes least = loads[At(plan::FindLargestOp(loads))].needed_bytes();
    const Bytes peak = plan::LeastPeak(problem, {});
    const Bytes limit = random.Between(least / 1000, peak / 1000) * 1000;
    const auto least_ns = LeastScheduleNs(problem, machine, limit, 200'000);
    if (!least_ns) continue;
    const Nanoseconds bound_ns = JointBound(problem, machine, limit, may_recompute);
    ASSERT_LE(bound_ns, *least_ns) << "case " << k << ", limit " << limit;
    binding += bound_ns > problem.iteration_ns() ? 1 : 0;
  }
  EXPECT_GT(binding * 5, plan::PlanCaseCount(2000));
}

/// Weights that leave and come back stay around the end, where little can be placed; `joint` lowers
/// its target then, and finds less than there is.
TEST(JointExactTest, NoBoundIsAboveTheBestWithWeights) {
  Expect(CompareRandom(true, 32, plan::PlanCaseCount(50)), 75);
}

}  // namespace
}  // namespace plimsoll::planners

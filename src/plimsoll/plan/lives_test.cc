// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/lives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem_for_test.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan {
namespace {

/// Five ops with room for mallocs and frees around them, at positions 2, 5, 8, 11 and 14 of 17; op
/// k writes variable k, and op k + 1 reads it.
Problem FiveOps() {
  Problem problem;
  for (VariableIndex k = 0; k < 5; ++k) {
    if (k == 0) {
      AddTimedOp(10, {}, {k}, &problem);
    } else {
      AddTimedOp(10, {k - 1}, {k}, &problem);
    }
    problem.ops.back().position = 3 * k + 2;
  }
  problem.period = 17;
  return problem;
}

/// The op before which a variable comes, and the one behind which it goes.
std::pair<std::int64_t, std::int64_t> OpsOf(const Problem& problem, VariableIndex v) {
  const Variable& x = problem.variables[At(v)];
  const auto before = [&](Position position) {
    return std::count_if(problem.ops.begin(), problem.ops.end(),
                         [&](const Op& op) { return op.position < position; });
  };
  return {before(x.begin), before(x.end) - 1};
}

TEST(TrimLivesTest, EndsBehindTheLastUse) {
  Problem problem = FiveOps();
  AddVariable(100, 1, 16, &problem);
  for (Position k = 1; k < 5; ++k) AddVariable(10, 3 * k, 3 * k + 5, &problem);
  const Problem trimmed = TrimLives(problem);
  EXPECT_EQ(OpsOf(trimmed, 0), (std::pair<std::int64_t, std::int64_t>(0, 1)));
  EXPECT_EQ(OpsOf(trimmed, 3), (std::pair<std::int64_t, std::int64_t>(3, 4)));
}

TEST(TrimLivesTest, BeginsBeforeTheFirstUse) {
  Problem problem = FiveOps();
  for (Position k = 0; k < 5; ++k) AddVariable(10, k == 3 ? 0 : 3 * k + 1, 16, &problem);
  EXPECT_EQ(OpsOf(problem, 3).first, 0);
  EXPECT_EQ(OpsOf(TrimLives(problem), 3), (std::pair<std::int64_t, std::int64_t>(3, 4)));
}

TEST(TrimLivesTest, WhatIsFreedInTheNextIterationNeedNotLiveAroundTheEnd) {
  Problem problem = FiveOps();
  for (Position k = 0; k < 5; ++k) AddVariable(10, 3 * k + 1, 3 * k + 4 + 17, &problem);
  for (Variable& variable : problem.variables) variable.instances = 2;
  const Problem trimmed = TrimLives(problem);
  for (const Variable& variable : trimmed.variables) {
    EXPECT_EQ(variable.instances, 1);
    EXPECT_LE(variable.end, trimmed.period);
  }
  EXPECT_EQ(ProblemToPlan(problem).laps, 1);
}

TEST(TrimLivesTest, WhatTheNextIterationReadsLivesUpToThere) {
  Problem problem = FiveOps();
  for (Position k = 0; k < 5; ++k) AddVariable(10, 3 * k + 1, 3 * k + 4 + 17, &problem);
  problem.operands[At(problem.ops[1].first_operand)].age = 1;
  const Problem trimmed = TrimLives(problem);
  const Variable& read_later = trimmed.variables[0];
  EXPECT_EQ(read_later.end, trimmed.ops[1].position + 1 + trimmed.period);
  EXPECT_EQ(read_later.instances, 2);
}

TEST(TrimLivesTest, ScratchStaysTogetherWithWhatItsOpWrites) {
  // Malloc of 2, long before op 2; malloc and free of scratch right before the op.
  Problem problem = FiveOps();
  for (Position k = 0; k < 5; ++k) AddVariable(10, k == 2 ? 0 : 3 * k, 16, &problem);
  AddVariable(50, 6, 7, &problem);
  problem.variables.back().kind = VariableKind::kWorkspace;
  const Problem trimmed = TrimLives(problem);
  EXPECT_EQ(OpsOf(trimmed, 2).first, 2);
  EXPECT_LT(trimmed.variables[2].begin, trimmed.variables[5].begin);
  EXPECT_LT(trimmed.variables[5].end, trimmed.ops[2].position);
}

TEST(TrimLivesTest, OfWhatRunsOnceBeginningAndEndStay) {
  Problem problem = FiveOps();
  problem.cyclic = false;
  for (Position k = 0; k < 5; ++k) AddVariable(10, 3 * k + 1, 16, &problem);
  problem.variables[1].begin = 0;
  problem.variables[2].end = problem.period;
  const Problem trimmed = TrimLives(problem);
  EXPECT_EQ(trimmed.variables[1].begin, 0);
  EXPECT_EQ(trimmed.variables[2].end, trimmed.period);
  EXPECT_EQ(OpsOf(trimmed, 0), (std::pair<std::int64_t, std::int64_t>(0, 1)));
}

TEST(TrimLivesTest, WithoutOpsThereIsNothingToTrim) {
  Problem problem;
  problem.period = 4;
  AddVariable(10, 0, 3, &problem);
  EXPECT_EQ(TrimLives(problem), problem);
}

/// Whether an instance of one variable and the instance of another that is `laps` younger are ever
/// there together.
bool Meet(const Problem& problem, std::size_t v, std::size_t w, std::int64_t laps) {
  const Variable& x = problem.variables[v];
  const Variable& y = problem.variables[w];
  const Position shift = laps * problem.period;
  return x.begin < y.end + shift && y.begin + shift < x.end;
}

/// Fails unless a problem has the ops of another, all they touch is there, and nothing more is.
void ExpectTrimmed(const Problem& recorded, const Problem& trimmed) {
  ASSERT_EQ(trimmed.operands, recorded.operands);
  ASSERT_EQ(trimmed.ops.size(), recorded.ops.size());
  for (const Op& op : trimmed.ops) {
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& x = trimmed.operands[At(op.first_operand + k)];
      const Position time = op.position + x.age * trimmed.period;
      ASSERT_LE(trimmed.variables[At(x.variable)].begin, time);
      ASSERT_LT(time, trimmed.variables[At(x.variable)].end);
    }
  }
  for (std::size_t v = 0; v < trimmed.variables.size(); ++v) {
    for (std::size_t w = 0; w < trimmed.variables.size(); ++w) {
      for (std::int64_t laps = -3; laps <= 3; ++laps) {
        ASSERT_TRUE(Meet(recorded, v, w, laps) || !Meet(trimmed, v, w, laps)) << v << " " << w;
      }
    }
  }
}

TEST(TrimLivesTest, RandomProblemsKeepTheirOpsAndGetNoNewNeighbours) {
  int lower = 0;
  for (int c = 0; c < PlanCaseCount(2000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 31'000'000'000);
    const Problem recorded = RandomProblem(&random).Make();
    const Problem trimmed = TrimLives(recorded);
    ExpectTrimmed(recorded, trimmed);
    if (HasFatalFailure()) FAIL() << "case " << c;
    const Bytes before = ProfileLoad(recorded).peak_bytes;
    const Bytes after = ProfileLoad(trimmed).peak_bytes;
    ASSERT_LE(after, before) << "case " << c;
    lower += after < before ? 1 : 0;
    ASSERT_EQ(ProfileLoad(TrimLives(trimmed)).peak_bytes, after) << "case " << c;
  }
  EXPECT_GT(lower, 0);
}

TEST(TrimLivesTest, PlansOfTrimmedProblemsAreSafe) {
  int made = 0;
  for (int c = 0; c < PlanCaseCount(1000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 32'000'000'000);
    const std::optional<Plan> plan =
        RandomPlanOf(ProblemToPlan(RandomProblem(&random).Make()), &random);
    if (!plan) continue;
    ++made;
    ASSERT_TRUE(CheckPlan(*plan).empty()) << "case " << c << "\n" << Dump(*plan);
  }
  EXPECT_GT(made, 0);
}

/// Whether the same variables live around the end of both.
bool SameAround(const Problem& a, const Problem& b) {
  for (std::size_t v = 0; v < a.variables.size(); ++v) {
    if ((a.variables[v].end > a.period) != (b.variables[v].end > b.period)) return false;
  }
  return a.laps == b.laps;
}

TEST(TrimLivesTest, TheJudgeOfReplaysSeesTheRecordedIteration) {
  int judged = 0;
  for (int c = 0; c < PlanCaseCount(1000); ++c) {
    PlanRandom random(static_cast<std::uint64_t>(c) + 33'000'000'000);
    const Problem recorded = Unroll(RandomProblem(&random).Make());
    const Problem trimmed = TrimLives(recorded);
    if (!SameAround(recorded, trimmed)) continue;
    std::optional<Plan> plan = RandomPlanOf(trimmed, &random);
    if (!plan) continue;
    plan->rewriting = Rewriting{recorded, {}, std::vector<std::uint8_t>(recorded.ops.size()), {}};
    for (std::size_t i = 0; i < recorded.ops.size(); ++i) {
      plan->rewriting->op_source.push_back(static_cast<OpIndex>(i));
    }
    for (std::size_t v = 0; v < recorded.variables.size(); ++v) {
      plan->rewriting->variable_source.push_back(static_cast<VariableIndex>(v));
    }
    ++judged;
    for (const PlanViolation& x : CheckPlan(*plan)) FAIL() << "case " << c << ": " << x.message;
  }
  EXPECT_GT(judged, 100);
}

}  // namespace
}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/chain_plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "plimsoll/chain/chain_for_test.h"
#include "plimsoll/chain/fractional.h"
#include "plimsoll/chain/reader.h"
#include "plimsoll/chain/simulate.h"
#include "plimsoll/chain/to_trace.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::planners {
namespace {

using chain::Question;

chain::PlannerOptions Quick() {
  chain::PlannerOptions options;
  options.time_budget_seconds = 0.02;
  return options;
}

ChainPlanOptions Bytewise() {
  ChainPlanOptions options;
  options.alignment = 1;
  options.place_seconds = 0.05;
  return options;
}

void ExpectSafe(const plan::Plan& plan) {
  for (const plan::PlanViolation& violation : plan::CheckPlan(plan)) {
    ADD_FAILURE() << plan::Name(violation.law) << ": " << violation.message;
  }
}

/// Expects that no copy out runs while a copy in does.
void ExpectHalfDuplex(const plan::Plan& plan, const sim::Timeline& timeline) {
  for (const plan::CommandIndex out : plan.queues[1]) {
    for (const plan::CommandIndex in : plan.queues[2]) {
      const sim::Span& a = timeline.spans[static_cast<std::size_t>(out)];
      const sim::Span& b = timeline.spans[static_cast<std::size_t>(in)];
      EXPECT_TRUE(a.end_ns <= b.start_ns || b.end_ns <= a.start_ns) << out << " and " << in;
    }
  }
}

/// Expects a plan that is safe, keeps the link's order, and is as fast as its schedule, but for a
/// nanosecond a copy, to which times are rounded; and not faster than anything can be.
void ExpectFaithful(const Question& question, const chain::Schedule& schedule,
                    const plan::Plan& plan, bool half_duplex = true) {
  ExpectSafe(plan);
  EXPECT_LE(plan.footprint_bytes, question.limit_bytes);
  const sim::Timeline timeline = sim::Simulate(plan);
  ASSERT_FALSE(timeline.deadlocked);
  if (half_duplex) ExpectHalfDuplex(plan, timeline);
  const auto copies = static_cast<Nanoseconds>(plan.queues[1].size() + plan.queues[2].size());
  EXPECT_LE(timeline.iteration_ns, schedule.iteration_ns() + copies);
  const chain::Model model = chain::ModelOf(question.chain, question.model, schedule);
  EXPECT_GE(timeline.iteration_ns, model.compute_ns);
  if (schedule.order.empty()) {
    EXPECT_GE(timeline.iteration_ns + copies,
              chain::FractionalOptimum(question.chain, question.model, question.limit_bytes));
  }
  std::size_t out = 0;
  std::size_t in = 0;
  for (const chain::TimedTransfer& timed : schedule.transfers) {
    const bool leaves = timed.transfer.direction == chain::Direction::kOut;
    const auto i = static_cast<std::size_t>(timed.transfer.activation);
    // The output, and the inside if it goes along.
    Bytes left = model.activation_bytes[i];
    const int parts = left == question.chain.OutputBytes(i) ? 1 : 2;
    for (int part = 0; part < parts; ++part) {
      const plan::CommandIndex copy = leaves ? plan.queues[1].at(out++) : plan.queues[2].at(in++);
      const auto& command = plan.commands[static_cast<std::size_t>(copy)];
      const auto& residency = plan.residencies[static_cast<std::size_t>(command.residency)];
      left -= plan.problem.variables[static_cast<std::size_t>(residency.variable)].size_bytes;
    }
    EXPECT_EQ(left, 0);
  }
  EXPECT_EQ(out, plan.queues[1].size());
  EXPECT_EQ(in, plan.queues[2].size());
}

TEST(ChainPlanTest, PlansOfRandomChainsAreSafeAndAsFastAsTheirSchedules) {
  std::mt19937_64 random(11);
  int fitted = 0;
  int asked = 0;
  for (int round = 0; round < 150; ++round) {
    const chain::Chain chain = chain::RandomChain({.most_stages = 10, .insides = true}, &random);
    const chain::Model model =
        chain::MakeModel(chain, chain::kByteLink / chain::DrawBetween(1, 4, &random));
    const Question question = {chain, model, chain::RandomLimit(model, &random)};
    for (const chain::Planner& planner : chain::Planners()) {
      const auto schedule = planner.plan(question, Quick());
      if (!schedule) continue;
      SCOPED_TRACE(std::string(planner.name) + " in round " + std::to_string(round));
      ++asked;
      const auto made = ToPlan(question, *schedule, Bytewise());
      if (const auto* plan = std::get_if<plan::Plan>(&made)) {
        ++fitted;
        ExpectFaithful(question, *schedule, *plan);
      } else {
        EXPECT_GT(std::get<plan::Misfit>(made).needed_bytes, question.limit_bytes);
      }
    }
  }
  EXPECT_GT(2 * fitted, asked) << fitted << " of " << asked;
}

TEST(ChainPlanTest, OpsAndCopiesOfNoTimeDoNotLockUp) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    chain::Chain chain =
        chain::RandomChain({.most_stages = 8, .most_bytes = 3, .most_ns = 3}, &random);
    for (chain::Stage& stage : chain.stages) {
      stage.forward_ns -= 1;
      stage.backward_ns -= 1;
      stage.kept_bytes -= 1;
    }
    const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
    const Question question = {chain, model, chain::RandomLimit(model, &random)};
    const auto schedule = chain::PlanVdnn(question, {});
    ASSERT_TRUE(schedule);
    // A roomy arena: this is about the order alone.
    const Question roomy = {chain, model, 2 * question.limit_bytes};
    const auto made = ToPlan(roomy, *schedule, Bytewise());
    ASSERT_TRUE(std::holds_alternative<plan::Plan>(made));
    ExpectFaithful(roomy, *schedule, std::get<plan::Plan>(made));
  }
}

TEST(ChainPlanTest, TheProblemOfAMeasuredChainIsItsModel) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_DATA_DIR "/chains")) {
    SCOPED_TRACE(entry.path().string());
    const chain::Chain chain = chain::ReadChain(entry.path().string());
    const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
    const plan::Problem problem = plan::MakeProblem(chain::ToTrace(chain));
    EXPECT_TRUE(problem.cyclic);
    EXPECT_EQ(problem.iterations, 3);
    EXPECT_EQ(plan::ProfileLoad(problem).peak_bytes, model.peak_bytes);
    EXPECT_EQ(problem.iteration_ns(), model.compute_ns);
    const chain::TraceLayout layout{model.stages};
    ASSERT_EQ(problem.ops.size(), layout.ops());
    for (std::size_t op = 0; op < model.ops(); ++op) {
      EXPECT_EQ(problem.ops[layout.Op(op)].duration_ns, model.op_ns[op]);
    }
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(ChainPlanTest, MeasuredChainsFitAtLimitsBetween) {
  for (const char* name : {"resnet18_b32_s224", "vit_b_16_b64_s224", "densenet121_b32_s224"}) {
    const chain::Chain chain =
        chain::ReadChain(std::string(PLIMSOLL_DATA_DIR "/chains/") + name + ".json");
    const chain::Model model = chain::MakeModel(chain, 12'200'000'000);
    for (const int part : {25, 50, 75, 100}) {
      SCOPED_TRACE(std::string(name) + " at " + std::to_string(part));
      const Bytes limit = model.smallest_limit_bytes +
                          part * (model.peak_bytes - model.smallest_limit_bytes) / 100 + 4096;
      const Question question = {chain, model, limit};
      ChainPlanOptions options;
      options.place_seconds = 0.2;
      for (const char* planner : {"dynprog", "rotor", "pofo"}) {
        const auto made = PlanChain(*chain::FindPlanner(planner), question, {}, options);
        ASSERT_TRUE(std::holds_alternative<plan::Plan>(made))
            << "needs " << std::get<plan::Misfit>(made).needed_bytes << " of " << limit;
        const auto& plan = std::get<plan::Plan>(made);
        ExpectSafe(plan);
        EXPECT_EQ(plan.planner, planner);
        EXPECT_LE(plan.footprint_bytes, limit);
        EXPECT_GE(sim::Simulate(plan).iteration_ns, model.compute_ns);
        EXPECT_EQ(plan.rewriting.has_value(), plan.problem.ops.size() > 2 * model.stages + 2);
      }
    }
  }
}

TEST(ChainPlanTest, BothDirectionsAtOnceAreNotSlower) {
  const chain::Chain chain = chain::ReadChain(PLIMSOLL_DATA_DIR "/chains/resnet50_b32_s224.json");
  const chain::Model model = chain::MakeModel(chain, 12'200'000'000);
  const Question question = {chain, model, (model.smallest_limit_bytes + model.peak_bytes) / 2};
  const auto schedule = chain::PlanDynProg(question, {});
  ASSERT_TRUE(schedule);
  const Question roomy = {chain, model, model.peak_bytes};
  ChainPlanOptions options;
  const auto one = ToPlan(roomy, *schedule, options);
  options.half_duplex = false;
  const auto both = ToPlan(roomy, *schedule, options);
  ASSERT_TRUE(std::holds_alternative<plan::Plan>(one));
  ASSERT_TRUE(std::holds_alternative<plan::Plan>(both));
  ExpectSafe(std::get<plan::Plan>(both));
  EXPECT_LE(sim::Simulate(std::get<plan::Plan>(both)).iteration_ns,
            sim::Simulate(std::get<plan::Plan>(one)).iteration_ns);
}

TEST(ChainPlanTest, BytesOfTheHostAreUsedAgainInOrder) {
  const chain::Chain chain = chain::SmallChain();
  const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
  const Question question = {chain, model, 2 * model.peak_bytes};
  using chain::Direction;
  const auto schedule = chain::Simulator(model, question.limit_bytes)
                            .Play({{0, Direction::kOut},
                                   {0, Direction::kIn},
                                   {1, Direction::kOut},
                                   {1, Direction::kIn}});
  ASSERT_TRUE(schedule);
  for (const bool half_duplex : {true, false}) {
    ChainPlanOptions options = Bytewise();
    options.half_duplex = half_duplex;
    options.host_limit_bytes = 6;  // Of x_1, in the place of x_0, which takes 4.
    const auto made = ToPlan(question, *schedule, options);
    ASSERT_TRUE(std::holds_alternative<plan::Plan>(made));
    ExpectFaithful(question, *schedule, std::get<plan::Plan>(made), half_duplex);
    EXPECT_EQ(std::get<plan::Plan>(made).host_bytes, 6);
  }
}

TEST(ChainPlanTest, SaysWhatItNeeds) {
  const chain::Chain chain = chain::SmallChain();
  const chain::Model model = chain::MakeModel(chain, chain::kByteLink);
  const Question question = {chain, model, model.smallest_limit_bytes};
  // Aligned to 512 bytes, nothing of a few bytes fits into a few bytes.
  const auto made = PlanChain(*chain::FindPlanner("greedy"), question, {}, {});
  ASSERT_TRUE(std::holds_alternative<plan::Misfit>(made));
  EXPECT_GT(std::get<plan::Misfit>(made).needed_bytes, question.limit_bytes);
  ChainPlanOptions hostless = Bytewise();
  hostless.host_limit_bytes = 1;
  const auto no_host = PlanChain(*chain::FindPlanner("greedy"), question, {}, hostless);
  ASSERT_TRUE(std::holds_alternative<plan::Misfit>(no_host));
  EXPECT_TRUE(std::get<plan::Misfit>(no_host).host);
}

}  // namespace
}  // namespace plimsoll::planners

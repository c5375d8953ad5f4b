// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/plan/check_for_test.h"
#include "plimsoll/plan/replay_mutations_for_test.h"
#include "plimsoll/plan/replays_for_test.h"

namespace plimsoll::plan {
namespace {

using replays::ComputesTheSame;
using replays::PlainPlan;
using replays::Replayed;

constexpr OpTraits kPure = {.replayable = true};
constexpr OpTraits kNorm = {.replayable = true, .state_reads = 0b10};

/// Adds an op; `name` is one of the five of Recorded().
void Add(std::int32_t name, Position position, const OpTraits& traits,
         std::initializer_list<Operand> reads, std::initializer_list<Operand> writes,
         Problem* problem) {
  Op op;
  op.name = name;
  op.position = position;
  op.duration_ns = 10 + name;
  op.first_operand = static_cast<std::int64_t>(problem->operands.size());
  op.read_count = static_cast<std::int32_t>(reads.size());
  op.write_count = static_cast<std::int32_t>(writes.size());
  op.traits = traits;
  problem->operands.insert(problem->operands.end(), reads);
  problem->operands.insert(problem->operands.end(), writes);
  problem->ops.push_back(op);
}

/// Norm updates the mean on the side, and has a workspace; relu_ is in place.
///
///     position   0   1    2   3    4   5    6   7    8    9    10  11
///     compute        conv          norm     relu_    loss back
///     mean       ├────────────────────────────────────────────────┤  0, persistent
///     x          ├─────────────────────────────────────────────┤     1
///     workspace           ├────────────┤                             2
///     y                       ├────────────────────────────────────┤ 3
///     z                                         ├──────────────────┤ 4
Problem Recorded() {
  Problem problem;
  problem.period = 12;
  problem.op_names = {"conv", "norm", "relu_", "loss", "back"};
  problem.variables = {{.size_bytes = 1, .begin = 0, .end = 12, .kind = VariableKind::kPersistent},
                       {.size_bytes = 4, .begin = 0, .end = 10},
                       {.size_bytes = 2, .begin = 2, .end = 5, .kind = VariableKind::kWorkspace},
                       {.size_bytes = 4, .begin = 3, .end = 11},
                       {.size_bytes = 4, .begin = 7, .end = 11}};
  Add(0, 1, kPure, {}, {{1, 0}}, &problem);
  Add(1, 4, kNorm, {{1, 0}, {0, 0}}, {{3, 0}}, &problem);
  Add(2, 6, kPure, {{3, 0}}, {{3, 0}}, &problem);
  Add(3, 8, {}, {}, {{4, 0}}, &problem);
  Add(4, 9, {}, {{3, 0}, {4, 0}}, {{0, 0}}, &problem);
  return problem;
}

/// The same, with y dropped before loss and rebuilt after it, as variable 5.
///
///     position   ...  8    9   10   11   12   13    14   15
///     compute         loss               norm relu_ back
///     y'                   ├──────────────────────────┤      5
///     mean'                    ├──────────┤                  6
///     workspace'                    ├─────┤                  7
Replayed Rebuilt() {
  Replayed replayed;
  Problem& problem = replayed.problem;
  problem.period = 17;
  problem.op_names = {"conv", "norm", "relu_", "loss", "back"};
  problem.variables = {{.size_bytes = 1, .begin = 0, .end = 17, .kind = VariableKind::kPersistent},
                       {.size_bytes = 4, .begin = 0, .end = 15},
                       {.size_bytes = 2, .begin = 2, .end = 5, .kind = VariableKind::kWorkspace},
                       {.size_bytes = 4, .begin = 3, .end = 7},
                       {.size_bytes = 4, .begin = 7, .end = 16},
                       {.size_bytes = 4, .begin = 9, .end = 16},
                       {.size_bytes = 1, .begin = 10, .end = 13},
                       {.size_bytes = 2, .begin = 11, .end = 13, .kind = VariableKind::kWorkspace}};
  Add(0, 1, kPure, {}, {{1, 0}}, &problem);
  Add(1, 4, kNorm, {{1, 0}, {0, 0}}, {{3, 0}}, &problem);
  Add(2, 6, kPure, {{3, 0}}, {{3, 0}}, &problem);
  Add(3, 8, {}, {}, {{4, 0}}, &problem);
  Add(1, 12, kNorm, {{1, 0}, {6, 0}}, {{5, 0}}, &problem);
  Add(2, 13, kPure, {{5, 0}}, {{5, 0}}, &problem);
  Add(4, 14, {}, {{5, 0}, {4, 0}}, {{0, 0}}, &problem);
  replayed.rewriting = {
      Recorded(), {0, 1, 2, 3, 1, 2, 4}, {0, 0, 0, 0, 1, 1, 0}, {0, 1, 2, 3, 4, 3, 0, 2}};
  return replayed;
}

/// Expects a refusal by the law of replays, with these words, if it is not another law's.
void Refuse(const Replayed& replayed, std::initializer_list<std::string> words,
            PlanLaw law = PlanLaw::kReplay) {
  ExpectRefused(PlainPlan(replayed), law, words);
}

TEST(CheckReplayTest, AcceptsReplaysThatRebuildWhatWasThere) {
  Replayed replayed = Rebuilt();
  ExpectAccepted(PlainPlan(replayed));
  EXPECT_TRUE(ComputesTheSame(replayed));
  replayed.problem.cyclic = replayed.rewriting.original.cyclic = false;
  ExpectAccepted(PlainPlan(replayed));
}

TEST(CheckReplayTest, AcceptsARewritingThatChangesNothing) {
  Replayed replayed;
  replayed.problem = Recorded();
  replayed.rewriting = {Recorded(), {0, 1, 2, 3, 4}, {0, 0, 0, 0, 0}, {0, 1, 2, 3, 4}};
  ExpectAccepted(PlainPlan(replayed));
}

TEST(CheckReplayTest, RefusesVersionsThatAreOffByOne) {
  Replayed replayed = Rebuilt();
  replays::RemoveOp(5, &replayed);
  Refuse(replayed, {"op 5 (back) finds version 1 of variable 5", "left by replay 4 of op 1 (norm)",
                    "found version 2"});
  replays::RemoveOp(4, &replayed);
  Refuse(replayed, {"op 4 (back) finds version 0 of variable 5", "found version 2"});
  replayed = Rebuilt();
  replays::ExchangeOps(4, 5, &replayed);
  Refuse(replayed, {"replay 4 of op 2 (relu_) finds version 0 of variable 5",
                    "op 2 (relu_) found version 1"});
}

TEST(CheckReplayTest, RefusesAReplayOfWhatHasGoneOn) {
  Replayed replayed = Rebuilt();
  replays::Rename(5, 5, 3, &replayed);
  Refuse(replayed, {"replay 5 of op 2 (relu_) finds version 2 of variable 3",
                    "left by op 2 (relu_)", "found version 1"});
  replayed = Rebuilt();
  replays::Rename(4, 5, 3, &replayed);
  Refuse(replayed, {"replay 4 of op 1 (norm) finds version 2 of variable 3", "op 2 (relu_)"});
}

TEST(CheckReplayTest, RefusesAReplayOfAnotherOp) {
  Replayed replayed = Rebuilt();
  replayed.rewriting.op_source[5] = 1;
  Refuse(replayed, {"replay 5 of op 1 (norm)", "recorded op 1 (norm)"});
}

TEST(CheckReplayTest, RefusesAReplayBeforeItsOp) {
  Replayed replayed = Rebuilt();
  replays::MoveOp(4, 1, &replayed);
  Refuse(replayed, {"replay 1 of op 2 (norm)", "before recorded op 1"});
}

TEST(CheckReplayTest, RefusesReplaysThatTraitsDoNotAllow) {
  Replayed replayed = Rebuilt();
  replays::ChangeTraits(2, {}, &replayed);
  Refuse(replayed, {"replay 5 of op 2 (relu_) may not run again"});
  replayed = Rebuilt();
  replayed.problem.ops[5].traits.random = true;
  Refuse(replayed, {"replay 5 of op 2 (relu_) is not what recorded op 2 (relu_) is"});
}

TEST(CheckReplayTest, RefusesToUpdateStateTwice) {
  Replayed replayed = Rebuilt();
  replays::Rename(4, 6, 0, &replayed);
  Refuse(replayed, {"replay 4 of op 1 (norm) updates variable 0 once more", "op 1 (norm)"});
}

TEST(CheckReplayTest, RefusesToReadScratchThatStoodInForState) {
  Replayed replayed = Rebuilt();
  replays::Rename(6, 0, 6, &replayed);
  Refuse(replayed, {"op 6 (back) finds scratch in place of variable 6",
                    "left by replay 4 of op 1 (norm)", "found version 1"});
}

TEST(CheckReplayTest, RefusesScratchForStateThatIsAlsoAnOperand) {
  Replayed replayed = Rebuilt();
  for (Problem* problem : {&replayed.problem, &replayed.rewriting.original}) {
    for (std::size_t i = 0; i < problem->ops.size(); ++i) {
      if (problem->ops[i].name != 1) continue;
      replays::InsertOperand(problem->reads(problem->ops[i])[1], false, i, problem);
    }
  }
  Refuse(replayed, {"replay 4 of op 1 (norm) finds scratch in place of variable 6"});
}

TEST(CheckReplayTest, CountsStateAsWrittenEvenIfNoWriteSaysSo) {
  Replayed replayed = Rebuilt();  // Relu_ reads the mean that norm leaves, conv what it finds.
  replays::InsertOperand({0, 0}, false, 0, &replayed.rewriting.original);
  replays::InsertOperand({0, 0}, false, 0, &replayed.problem);
  ExpectAccepted(PlainPlan(replayed));
  replayed.problem.variables.push_back({.size_bytes = 4, .begin = 15, .end = 16});
  replayed.rewriting.variable_source.push_back(1);
  replayed.rewriting.op_source.push_back(0);
  replayed.rewriting.is_replay.push_back(1);
  Add(0, 15, kPure, {{0, 0}}, {{8, 0}}, &replayed.problem);
  Refuse(replayed, {"replay 7 of op 0 (conv) finds version 2 of variable 0", "left by op 6 (back)",
                    "op 0 (conv) found version 0"});
}

TEST(CheckReplayTest, RefusesVariablesThatAreNotTheirSources) {
  Replayed replayed = Rebuilt();
  replayed.rewriting.variable_source[5] = 1;
  Refuse(replayed, {"replay 4 of op 1 (norm) has variable 5", "recorded op 1 has variable 3"});
  replayed = Rebuilt();
  replayed.problem.variables[5].size_bytes = 8;
  Refuse(replayed, {"variable 5 has 8 bytes, its source 3 has 4"});
  replayed = Rebuilt();
  replayed.problem.operands[At(replayed.problem.ops[5].first_operand)].variable = 3;
  replayed.problem.variables[3].end = 16;
  Refuse(replayed, {"replay 5 of op 2 (relu_) has variables 3 and 5 in place of one"});
}

TEST(CheckReplayTest, RefusesAnotherSetOfPersistentVariables) {
  Replayed replayed = Rebuilt();
  replayed.problem.variables[6] = replayed.problem.variables[0];
  Refuse(replayed, {"variables 0 and 6 both stand for variable 0"});
  replayed = Rebuilt();
  replayed.problem.variables[0].kind = VariableKind::kTemporary;
  Refuse(replayed, {"recorded variable 0", "no variable stands for it"});
  replayed = Rebuilt();
  replayed.problem.variables[5].end = 20;
  Refuse(replayed, {"variable 5 lives around the end", "its source 3"});
}

TEST(CheckReplayTest, RefusesOtherRecordedOps) {
  Replayed replayed = Rebuilt();
  replays::RemoveOp(3, &replayed);
  Refuse(replayed, {"op 5 (back) runs recorded op 4", "recorded op 3 should"});
  replayed = Rebuilt();
  replays::RemoveOp(6, &replayed);
  Refuse(replayed, {"recorded op 4 (back) never runs"});
  replayed = Rebuilt();
  replays::ExchangeOps(2, 3, &replayed);
  Refuse(replayed, {"op 2 (loss) runs recorded op 3", "recorded op 2 should"});
  replayed = Rebuilt();
  replayed.rewriting.is_replay[4] = 0;
  Refuse(replayed, {"op 4 (norm) runs recorded op 1", "recorded op 4 should"});
  replayed = Rebuilt();
  replayed.rewriting.is_replay[3] = 1;
  Refuse(replayed, {"replay 3 of recorded op 3 comes before recorded op 3"});
  replayed = Rebuilt();
  replayed.problem.ops[3].duration_ns = 0;
  Refuse(replayed, {"op 3 (loss)", "recorded op 3 (loss)"});
}

TEST(CheckReplayTest, RefusesAnotherKindOfIteration) {
  Replayed replayed = Rebuilt();
  replayed.problem.laps = 2;
  Refuse(replayed, {"1 laps", "of 2"});
  replayed = Rebuilt();
  replayed.problem.cyclic = false;
  Refuse(replayed, {"cyclic", "run once"});
}

TEST(CheckReplayTest, RefusesAReplayWithoutItsScratch) {
  Replayed replayed = Rebuilt();
  replayed.problem.variables[7].begin = 13;
  replayed.problem.variables[7].end = 14;
  Refuse(replayed, {"replay 4 of op 1 (norm) has no scratch in place of variable 2"});
  replayed = Rebuilt();
  replayed.problem.variables[7].end = 12;
  Refuse(replayed, {"variable 7, scratch of replay 4 of op 1 (norm)", "freed before it runs"});
}

TEST(CheckReplayTest, RefusesScratchThatMeetsOperandsItNeverMet) {
  Replayed replayed = Rebuilt();
  replayed.rewriting.original.variables[2].end = 4;  // Behind the malloc of y, before norm.
  replayed.problem.variables[7].end = 12;
  ExpectAccepted(PlainPlan(replayed));
  replayed.problem.variables[5].begin = 12;
  Refuse(replayed, {"variable 7, scratch of replay 4 of op 1 (norm)", "before variable 5 comes"});
  replayed.rewriting.original.variables[2].end = 3;  // Before y comes.
  ExpectAccepted(PlainPlan(replayed));
}

/// A variable that lives around the end: step reads what the iteration before has left.
///
///     position   0   1    2   3   4   5    6
///     compute        step             make      │
///     x          ────────┤        ├────────────── 0
///     y          ├───────────┤                    1
Replayed AroundTheEnd() {
  Replayed replayed;
  Problem problem;
  problem.period = 7;
  problem.op_names = {"step", "make"};
  problem.variables = {{.size_bytes = 1, .begin = 4, .end = 9},
                       {.size_bytes = 1, .begin = 0, .end = 3}};
  Add(0, 1, kPure, {{0, 1}}, {{1, 0}}, &problem);
  Add(1, 5, kPure, {}, {{0, 0}}, &problem);
  replayed.problem = problem;
  replayed.rewriting = {problem, {0, 1}, {0, 0}, {0, 1}};
  return replayed;
}

TEST(CheckReplayTest, FollowsWhatLivesAroundTheEnd) {
  Replayed replayed = AroundTheEnd();
  ExpectAccepted(PlainPlan(replayed));
  Replayed later = replayed;  // Make runs again on what it has made, and nobody is to know.
  Add(1, 6, kPure, {}, {{0, 0}}, &later.problem);
  later.rewriting.op_source.push_back(1);
  later.rewriting.is_replay.push_back(1);
  Refuse(later, {"replay 2 of op 1 (make) finds version 1 of variable 0", "found version 0"});
  later.problem.variables.push_back({.size_bytes = 1, .begin = 5, .end = 7});
  later.rewriting.variable_source.push_back(0);
  later.problem.operands.back().variable = 2;
  ExpectAccepted(PlainPlan(later));
}

TEST(CheckReplayTest, RefusesReplaysOnWhatIsAnIterationOld) {
  Replayed replayed = AroundTheEnd();
  replayed.problem.variables[0].end = 10;
  replayed.problem.variables.push_back({.size_bytes = 1, .begin = 2, .end = 3});
  replayed.rewriting.variable_source.push_back(1);
  replayed.problem.ops.pop_back();
  Add(0, 2, kPure, {{0, 1}}, {{2, 0}}, &replayed.problem);
  Add(1, 5, kPure, {}, {{0, 0}}, &replayed.problem);
  replayed.rewriting.op_source = {0, 0, 1};
  replayed.rewriting.is_replay = {0, 1, 0};
  Refuse(replayed, {"replay 1 of op 0 (step)", "variable 0 of an iteration before"});
}

TEST(CheckReplayTest, RewritingsOutOfShapeAreRefused) {
  const auto refuse = [](auto change, std::initializer_list<std::string> words) {
    Replayed replayed = Rebuilt();
    change(&replayed.rewriting);
    Refuse(replayed, words, PlanLaw::kShape);
  };
  refuse([](Rewriting* x) { x->op_source.pop_back(); }, {"6 sources", "7 ops"});
  refuse([](Rewriting* x) { x->is_replay.push_back(0); }, {"8 marks", "7 ops"});
  refuse([](Rewriting* x) { x->variable_source.clear(); }, {"0 sources for 8 variables"});
  refuse([](Rewriting* x) { x->op_source[4] = 5; }, {"op 4 (norm)", "source 5"});
  refuse([](Rewriting* x) { x->op_source[4] = -1; }, {"op 4 (norm)", "source -1"});
  refuse([](Rewriting* x) { x->is_replay[4] = 2; }, {"op 4 (norm)", "mark 2"});
  refuse([](Rewriting* x) { x->variable_source[5] = 5; }, {"variable 5 has the source 5"});
  refuse([](Rewriting* x) { x->original.operands[0].variable = 9; }, {"recorded op 0", "9"});
  refuse([](Rewriting* x) { x->original.ops[1].position = 1; }, {"recorded op 1"});
  refuse([](Rewriting* x) { x->original.variables[1].end = 30; }, {"recorded variable 1"});
  refuse([](Rewriting* x) { x->original.period = 0; }, {"recorded iteration"});
}

/// Drops every gap that can be.
std::optional<Rewritten> DropAll(const Problem& problem) {
  const Rewriter rewriter(problem, 0);
  std::vector<bool> dropped;
  for (std::size_t g = 0; g < rewriter.gaps().size(); ++g) dropped.push_back(rewriter.CanDrop(g));
  return rewriter.Rewrite(dropped, {.most_replays = 100});
}

TEST(CheckReplayTest, ScratchForPersistentStateComesAndGoes) {
  const Problem recorded = Recorded();
  const std::optional<Rewritten> rewritten = DropAll(recorded);
  ASSERT_TRUE(rewritten);
  EXPECT_EQ(std::count(rewritten->is_replay.begin(), rewritten->is_replay.end(), 1), 2);
  int persistent = 0;
  for (const Variable& x : rewritten->problem.variables) persistent += x.persistent() ? 1 : 0;
  EXPECT_EQ(persistent, 1);
  ExpectAccepted(PlainPlan({rewritten->problem, ToRewriting(recorded, *rewritten)}));
}

TEST(CheckReplayTest, WhatIsNeverWrittenOrWritesWhatPersistsIsNotRebuilt) {
  Problem problem = Recorded();
  problem.ops[1].traits.state_reads = 0;  // Now norm writes the mean, and nobody has the old one.
  replays::InsertOperand({0, 0}, true, 1, &problem);
  problem.ops[0].write_count = 0;  // Nobody writes x.
  problem.operands.erase(problem.operands.begin());
  for (std::size_t i = 1; i < problem.ops.size(); ++i) --problem.ops[i].first_operand;
  const Rewriter rewriter(problem, 0);
  ASSERT_FALSE(rewriter.gaps().empty());
  for (std::size_t g = 0; g < rewriter.gaps().size(); ++g) EXPECT_FALSE(rewriter.CanDrop(g)) << g;
}

}  // namespace
}  // namespace plimsoll::plan

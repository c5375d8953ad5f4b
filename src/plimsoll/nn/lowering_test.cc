// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/program_for_test.h"

namespace plimsoll::nn {
namespace {

using testing::ElementsAre;

/// Null kernels, of which convolutions need a workspace.
class WorkspaceLibrary final : public KernelLibrary {
 public:
  std::string_view name() const override { return "workspace"; }
  Kernel Prepare(const OpSpec& spec) override {
    return {spec.kind == OpKind::kConvForward ? 1000 : 0, {}};
  }
};

Program LowerFor(const Network& network, LoweringOptions options = {.batch = 2}) {
  NullLibrary library;
  Program program = Lower(network, options, &library);
  ExpectHonest(program);
  return program;
}

std::vector<OpKind> Kinds(const Program& program) {
  std::vector<OpKind> kinds;
  for (const ProgramOp& op : program.ops) kinds.push_back(op.spec.kind);
  return kinds;
}

const ProgramOp& Find(const Program& program, OpKind kind, int which = 0) {
  for (const ProgramOp& op : program.ops) {
    if (op.spec.kind == kind && which-- == 0) return op;
  }
  ADD_FAILURE() << "no " << Name(kind);
  return program.ops.front();
}

int CountOf(const Program& program, OpKind kind) {
  return static_cast<int>(
      std::count_if(program.ops.begin(), program.ops.end(),
                    [kind](const ProgramOp& op) { return op.spec.kind == kind; }));
}

Network Chain() {
  NetworkBuilder net("chain");
  LayerIndex x = net.Image(8, 8, 3);
  x = net.Relu(net.Conv(x, 4, {.kernel = 3, .padding = 1}));
  x = net.Relu(net.Conv(x, 4, {.kernel = 3, .padding = 1}));
  net.SoftmaxLoss(net.Linear(net.Flatten(x), 10));
  return net.Finish();
}

TEST(LoweringTest, OrdersForwardBackwardAndUpdates) {
  EXPECT_THAT(
      Kinds(LowerFor(Chain(), {.batch = 2, .early_updates = false})),
      ElementsAre(OpKind::kConvForward, OpKind::kReluForward, OpKind::kConvForward,
                  OpKind::kReluForward, OpKind::kLinearForward, OpKind::kSoftmaxLossForward,
                  OpKind::kSoftmaxLossBackward, OpKind::kLinearBackwardWeights,
                  OpKind::kLinearBackwardData, OpKind::kReluBackward, OpKind::kConvBackwardWeights,
                  OpKind::kConvBackwardData, OpKind::kReluBackward, OpKind::kConvBackwardWeights,
                  // No gradient of the image; six parameters.
                  OpKind::kSgdUpdate, OpKind::kSgdUpdate, OpKind::kSgdUpdate, OpKind::kSgdUpdate,
                  OpKind::kSgdUpdate, OpKind::kSgdUpdate));
}

TEST(LoweringTest, EvaluationKeepsNothing) {
  const Program program = LowerFor(Chain(), {.batch = 2, .train = false});
  EXPECT_THAT(Kinds(program),
              ElementsAre(OpKind::kConvForward, OpKind::kReluForward, OpKind::kConvForward,
                          OpKind::kReluForward, OpKind::kLinearForward, OpKind::kCountCorrect,
                          OpKind::kSoftmaxLossForward));
  EXPECT_EQ(program.ops[1].writes.size(), 1U) << "no mask";
  EXPECT_GE(program.correct, 0);
}

TEST(LoweringTest, InputGoesBeforeItsGradientIsMade) {
  const Program program = LowerFor(Chain());
  // The second convolution's input is freed between its two backward ops.
  const ProgramOp& weights = Find(program, OpKind::kConvBackwardWeights);
  const ProgramOp& data = Find(program, OpKind::kConvBackwardData);
  const auto position = [&](Step step) {
    return std::find(program.steps.begin(), program.steps.end(), step) - program.steps.begin();
  };
  EXPECT_LT(position({StepKind::kFree, weights.reads[0]}),
            position({StepKind::kMalloc, data.writes[0]}));
}

TEST(LoweringTest, ComputesInPlaceWhereNobodyElseReads) {
  const Program program = LowerFor(Chain());
  const ProgramOp& relu = Find(program, OpKind::kReluForward);
  EXPECT_EQ(relu.reads[0], relu.writes[0]);
  EXPECT_EQ(relu.spec.writes[1].type, ElementType::kBit);
  const ProgramOp& backward = Find(program, OpKind::kReluBackward);
  EXPECT_EQ(backward.reads[0], backward.writes[0]);
  const ProgramOp& softmax = Find(program, OpKind::kSoftmaxLossForward);
  EXPECT_EQ(softmax.reads[0], softmax.writes[0]);
  const ProgramOp& gradient = Find(program, OpKind::kSoftmaxLossBackward);
  EXPECT_EQ(gradient.reads[0], gradient.writes[0]);
  EXPECT_EQ(gradient.reads[0], softmax.writes[0]);
}

TEST(LoweringTest, LeavesAloneWhatIsReadLater) {
  NetworkBuilder net("shared");
  LayerIndex x = net.Linear(net.Input({8}), 8);
  const LayerIndex a = net.Relu(x);
  x = net.Add(a, net.Tanh(x));  // The ReLU must not overwrite what tanh reads.
  net.SoftmaxLoss(x);
  const Program program = LowerFor(net.Finish());
  const ProgramOp& relu = Find(program, OpKind::kReluForward);
  EXPECT_NE(relu.reads[0], relu.writes[0]);
  const ProgramOp& tanh = Find(program, OpKind::kTanhForward);
  EXPECT_EQ(tanh.reads[0], tanh.writes[0]) << "the last reader may";
  // Tanh's output is needed in the backward pass, the ReLU's is not.
  const ProgramOp& add = Find(program, OpKind::kAdd);
  EXPECT_EQ(add.writes[0], relu.writes[0]);
  EXPECT_NE(add.writes[0], tanh.writes[0]);
}

TEST(LoweringTest, SumsTheGradientsOfSeveralUsers) {
  NetworkBuilder net("residual");
  LayerIndex x = net.Linear(net.Input({8}), 8);
  LayerIndex y = net.Linear(x, 8);
  net.SoftmaxLoss(net.Add(y, x));
  const Program program = LowerFor(net.Finish());
  ASSERT_EQ(CountOf(program, OpKind::kAdd), 2) << "one forward, one of gradients";
  const ProgramOp& sum = Find(program, OpKind::kAdd, 1);
  EXPECT_EQ(sum.phase, trace::Phase::kBackward);
  EXPECT_EQ(sum.reads[0], sum.writes[0]);
  // The first linear layer gets the sum.
  EXPECT_EQ(Find(program, OpKind::kLinearBackwardWeights, 1).reads[1], sum.writes[0]);
}

TEST(LoweringTest, AnAdditionPassesOneGradientToBoth) {
  NetworkBuilder net("two");
  const LayerIndex in = net.Input({8});
  net.SoftmaxLoss(net.Add(net.Relu(net.Linear(in, 8)), net.Relu(net.Linear(in, 8))));
  const Program program = LowerFor(net.Finish());
  const ProgramOp& first = Find(program, OpKind::kReluBackward, 0);
  const ProgramOp& second = Find(program, OpKind::kReluBackward, 1);
  EXPECT_EQ(first.reads[0], second.reads[0]);
  EXPECT_NE(first.writes[0], first.reads[0]) << "the other still needs it";
  EXPECT_EQ(second.writes[0], second.reads[0]);
}

TEST(LoweringTest, TiedWeightsGetOneGradientAndOneUpdate) {
  NetworkBuilder net("tied");
  const LayerIndex embedding = net.Embedding(net.Tokens(4), 16, 8);
  net.SoftmaxLoss(
      net.Linear(embedding, 16, {.bias = false, .shared_weight = net.parameter_of(embedding)}));
  const Network network = net.Finish();
  ASSERT_EQ(network.parameters.size(), 1U);
  for (const bool early : {false, true}) {
    const Program program = LowerFor(network, {.batch = 2, .early_updates = early});
    EXPECT_EQ(CountOf(program, OpKind::kSgdUpdate), 1);
    const ProgramOp& update = Find(program, OpKind::kSgdUpdate);
    EXPECT_EQ(update.reads[1], Find(program, OpKind::kAdd).writes[0]);
    EXPECT_EQ(program.slots[update.reads[1]].role, Role::kParameterGradient);
  }
}

TEST(LoweringTest, UpdatesCanComeWithTheGradients) {
  const Program late = LowerFor(Chain(), {.batch = 2, .early_updates = false});
  const Program early = LowerFor(Chain());
  EXPECT_LT(Measure(early).peak, Measure(late).peak);
  EXPECT_EQ(early.ops.size(), late.ops.size());
  // Never before the last op that reads the old weight.
  const auto update = std::find_if(early.ops.begin(), early.ops.end(), [](const ProgramOp& op) {
    return op.phase == trace::Phase::kUpdate;
  });
  EXPECT_EQ((update - 1)->spec.kind, OpKind::kLinearBackwardData);
}

TEST(LoweringTest, AdamHasTwoMoments) {
  const Program program = LowerFor(Chain(), {.batch = 2, .optimizer = Optimizer::kAdamW});
  const ProgramOp& update = Find(program, OpKind::kAdamWUpdate);
  EXPECT_EQ(update.reads.size(), 4U);
  EXPECT_THAT(update.writes, ElementsAre(update.reads[0], update.reads[2], update.reads[3]));
}

TEST(LoweringTest, WorkspacesAreBlocksAroundTheirOp) {
  WorkspaceLibrary library;
  const Program program = Lower(Chain(), {.batch = 2}, &library);
  ExpectHonest(program);
  const ProgramOp& conv = Find(program, OpKind::kConvForward);
  ASSERT_EQ(conv.writes.size(), 2U);
  EXPECT_EQ(program.slots[conv.writes[1]].role, Role::kWorkspace);
  EXPECT_EQ(program.slots[conv.writes[1]].size_bytes, 1000);
  const auto exec = std::find(program.steps.begin(), program.steps.end(), Step{StepKind::kExec, 0});
  EXPECT_EQ(*(exec - 1), (Step{StepKind::kMalloc, conv.writes[1]}));
  EXPECT_EQ(*(exec + 1), (Step{StepKind::kFree, conv.writes[1]}));
}

TEST(LoweringTest, RunningStatisticsAreUpdatedInPlace) {
  NetworkBuilder net("norm");
  LayerIndex x = net.Conv(net.Image(4, 4, 3), 4, {.kernel = 1});
  net.SoftmaxLoss(net.Flatten(net.Relu(net.BatchNorm(x))));
  const Network network = net.Finish();
  const Program program = LowerFor(network);
  const ProgramOp& norm = Find(program, OpKind::kBatchNormForward);
  EXPECT_EQ(norm.writes[3], norm.reads[3]);
  EXPECT_EQ(norm.writes[4], norm.reads[4]);
  EXPECT_EQ(program.slots[norm.reads[3]].role, Role::kStatistics);
  EXPECT_EQ(CountOf(program, OpKind::kSgdUpdate), 4) << "weight, bias, gamma, beta";
  const ProgramOp& backward = Find(program, OpKind::kBatchNormBackward);
  EXPECT_EQ(backward.writes[0], backward.reads[1]);
  const Program evaluation = LowerFor(network, {.batch = 2, .train = false});
  const ProgramOp& inference = Find(evaluation, OpKind::kBatchNormInference);
  EXPECT_EQ(inference.writes[0], inference.reads[0]);
}

TEST(LoweringTest, ABranchThatIsLeftOutCostsNothing) {
  NetworkBuilder net("branches");
  LayerIndex x = net.Linear(net.Input({8}), 8);
  net.BeginBranch(0.5F);
  const LayerIndex y = net.Relu(net.Linear(x, 8));
  x = net.JoinBranch(x, y);
  net.SoftmaxLoss(x);
  const Network network = net.Finish();
  EXPECT_EQ(CountOf(LowerFor(network), OpKind::kLinearForward), 2);
  const Program without = LowerFor(network, {.batch = 2, .active_branches = {false}});
  EXPECT_THAT(
      Kinds(without),
      ElementsAre(OpKind::kLinearForward, OpKind::kSoftmaxLossForward, OpKind::kSoftmaxLossBackward,
                  OpKind::kLinearBackwardWeights, OpKind::kSgdUpdate, OpKind::kSgdUpdate));
  EXPECT_EQ(Measure(without).persistent, Measure(LowerFor(network)).persistent);
  const Program evaluation = LowerFor(network, {.batch = 2, .train = false});
  EXPECT_EQ(Find(evaluation, OpKind::kAdd).spec.attributes.scale, 0.5F);
}

TEST(LoweringTest, SlicesGiveTheGradientOfAConcat) {
  NetworkBuilder net("concat");
  const LayerIndex in = net.Input({8});
  const LayerIndex a = net.Linear(in, 3);
  const LayerIndex b = net.Linear(in, 5);
  net.SoftmaxLoss(net.Concat({a, b}));
  const Program program = LowerFor(net.Finish());
  EXPECT_EQ(Find(program, OpKind::kSlice, 0).spec.attributes.offset, 0);
  EXPECT_EQ(Find(program, OpKind::kSlice, 1).spec.attributes.offset, 3);
  EXPECT_EQ(Find(program, OpKind::kSlice, 1).spec.writes[0].shape, (Shape{2, 5}));
}

TEST(LoweringTest, RefusesBatchesAndPatternsThatCannotBe) {
  NullLibrary library;
  EXPECT_THROW(Lower(Chain(), {.batch = 0}, &library), Error);
  NetworkBuilder net("large");
  net.SoftmaxLoss(net.Linear(net.Input({1 << 20}), 4));
  EXPECT_THROW(Lower(net.Finish(), {.batch = 1 << 24}, &library), Error);
  EXPECT_THROW(Lower(Chain(), {.batch = 1, .active_branches = {true}}, &library), Error);
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// Programs for libraries that fuse batch norms, group updates, or compute in bfloat16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/program_for_test.h"

namespace plimsoll::nn {
namespace {

using testing::ElementsAre;

Program LowerWith(const Network& network, const LoweringOptions& options, bool fuses, int group) {
  NullLibrary library(MachineSpeeds().front(), fuses, group);
  Program program = Lower(network, options, &library);
  ExpectHonest(program);
  return program;
}

Program LowerFused(const Network& network, const LoweringOptions& options = {.batch = 2}) {
  return LowerWith(network, options, /*fuses=*/true, /*group=*/1);
}

Program LowerPlain(const Network& network, const LoweringOptions& options = {.batch = 2}) {
  return LowerWith(network, options, /*fuses=*/false, /*group=*/1);
}

Network Small(const std::string& name) {
  const Model model = FindModel(name);
  return model.build(SmallOptions(model));
}

std::vector<OpKind> Kinds(const Program& program, trace::Phase phase) {
  std::vector<OpKind> kinds;
  for (const ProgramOp& op : program.ops) {
    if (op.phase == phase) kinds.push_back(op.spec.kind);
  }
  return kinds;
}

int CountOf(const Program& program, OpKind kind) {
  return static_cast<int>(
      std::count_if(program.ops.begin(), program.ops.end(),
                    [kind](const ProgramOp& op) { return op.spec.kind == kind; }));
}

const ProgramOp& Find(const Program& program, OpKind kind, int which = 0) {
  for (const ProgramOp& op : program.ops) {
    if (op.spec.kind == kind && which-- == 0) return op;
  }
  ADD_FAILURE() << "no " << Name(kind);
  return program.ops.front();
}

LayerIndex Norm(NetworkBuilder* net, LayerIndex x) {
  return net->BatchNorm(net->Conv(x, 4, {.kernel = 3, .padding = 1, .bias = false}));
}

Network End(NetworkBuilder* net, LayerIndex x) {
  net->SoftmaxLoss(net->Linear(net->GlobalPool(x), 5));
  return net->Finish();
}

/// A block whose shortcut is what comes in, or a norm of its own.
Network Block(bool projects) {
  NetworkBuilder net("block");
  const LayerIndex x = net.Relu(Norm(&net, net.Image(8, 8, 3)));
  const LayerIndex y = Norm(&net, net.Relu(Norm(&net, x)));
  return End(&net, net.Relu(net.Add(y, projects ? Norm(&net, x) : x)));
}

TEST(LoweringFusionTest, ANormItsSumAndItsReluAreOneOp) {
  const Program program = LowerFused(Block(/*projects=*/false));
  using enum OpKind;
  EXPECT_THAT(
      Kinds(program, trace::Phase::kForward),
      ElementsAre(kConvForward, kBatchNormStatistics, kBatchNormReluForward, kConvForward,
                  kBatchNormStatistics, kBatchNormReluForward, kConvForward, kBatchNormStatistics,
                  kBatchNormReluForward, kGlobalPoolForward, kLinearForward, kSoftmaxLossForward));
  EXPECT_THAT(Kinds(program, trace::Phase::kBackward),
              ElementsAre(kSoftmaxLossBackward, kLinearBackwardWeights, kLinearBackwardData,
                          kGlobalPoolBackward, kBatchNormReluBackward, kConvBackwardWeights,
                          kConvBackwardData, kBatchNormReluBackward, kConvBackwardWeights,
                          kConvBackwardData, kAdd, kBatchNormReluBackward, kConvBackwardWeights));
}

TEST(LoweringFusionTest, OperandsAreThoseOfTheOp) {
  const Network network = Block(/*projects=*/false);
  const Program program = LowerFused(network);
  const ProgramOp& forward = Find(program, OpKind::kBatchNormReluForward, 2);
  ASSERT_EQ(forward.reads.size(), 6U);
  ASSERT_EQ(forward.writes.size(), 2U);
  const ProgramOp& statistics = Find(program, OpKind::kBatchNormStatistics, 2);
  EXPECT_EQ(&statistics + 1, &forward);
  EXPECT_EQ(statistics.reads[0], Find(program, OpKind::kConvForward, 2).writes[0]);
  EXPECT_EQ(forward.reads[0], statistics.reads[0]);
  EXPECT_EQ(forward.reads[3], statistics.writes[0]) << "mean";
  EXPECT_EQ(forward.reads[4], statistics.writes[1]) << "inv_std";
  EXPECT_EQ(forward.reads[5], Find(program, OpKind::kBatchNormReluForward, 0).writes[0]);
  EXPECT_EQ(statistics.writes[2], statistics.reads[1]) << "running statistics";
  EXPECT_EQ(statistics.writes[3], statistics.reads[2]);
  EXPECT_EQ(forward.spec.writes[1].type, ElementType::kBit);
  EXPECT_EQ(forward.spec.writes[1].shape, forward.spec.writes[0].shape);
  EXPECT_EQ(program.slots[forward.writes[1]].role, Role::kSaved);
  const ProgramOp& backward = Find(program, OpKind::kBatchNormReluBackward, 0);
  EXPECT_EQ(backward.reads[0], forward.reads[0]) << "x";
  EXPECT_EQ(backward.reads[2], forward.writes[1]) << "mask";
  EXPECT_EQ(backward.reads[3], forward.reads[1]) << "gamma";
  EXPECT_EQ(backward.reads[4], forward.reads[3]) << "mean";
  EXPECT_EQ(backward.reads[5], forward.reads[4]) << "inv_std";
  ASSERT_EQ(backward.writes.size(), 4U);
  // The gradient of the shortcut is summed with that of the convolution.
  const ProgramOp& sum = Find(program, OpKind::kAdd);
  EXPECT_EQ(sum.reads[0], backward.writes[3]);
  EXPECT_EQ(Find(program, OpKind::kBatchNormReluBackward, 2).reads[1], sum.writes[0]);
  EXPECT_EQ(Find(program, OpKind::kBatchNormReluForward, 0).writes.size(), 2U);
  EXPECT_EQ(Find(program, OpKind::kBatchNormReluForward, 0).reads.size(), 5U);
  EXPECT_EQ(Find(program, OpKind::kBatchNormReluBackward, 1).writes.size(), 3U);
}

TEST(LoweringFusionTest, BlocksAreSharedAsTheOpAllows) {
  const Program kept = LowerFused(Block(/*projects=*/false));
  const ProgramOp& forward = Find(kept, OpKind::kBatchNormReluForward, 2);
  EXPECT_NE(forward.writes[0], forward.reads[5]) << "the first block's gradient needs it";
  const ProgramOp& residual = Find(kept, OpKind::kBatchNormReluBackward, 0);
  EXPECT_EQ(residual.writes[3], residual.reads[1]) << "dresidual takes dy";
  EXPECT_NE(residual.writes[0], residual.reads[1]);
  const ProgramOp& plain = Find(kept, OpKind::kBatchNormReluBackward, 1);
  EXPECT_EQ(plain.writes[0], plain.reads[1]) << "dx takes dy";
  const Program projected = LowerFused(Block(/*projects=*/true));
  const ProgramOp& sum = Find(projected, OpKind::kBatchNormReluForward, 2);
  EXPECT_EQ(sum.writes[0], sum.reads[5]) << "nobody needs the shortcut's norm";
}

TEST(LoweringFusionTest, OfTwoNormsTheLaterStaysAlone) {
  const Network network = Block(/*projects=*/true);
  const Program program = LowerFused(network);
  EXPECT_EQ(CountOf(program, OpKind::kBatchNormReluForward), 3);
  EXPECT_EQ(CountOf(program, OpKind::kBatchNormNormalize), 1);
  EXPECT_EQ(CountOf(program, OpKind::kBatchNormBackward), 1);
  EXPECT_EQ(CountOf(program, OpKind::kReluForward), 0);
  const ProgramOp& alone = Find(program, OpKind::kBatchNormNormalize);
  const ProgramOp& fused = Find(program, OpKind::kBatchNormReluForward, 2);
  EXPECT_EQ(&alone + 2, &fused) << "its statistics come first";
  EXPECT_EQ(fused.reads[5], alone.writes[0]);
  // The gradient of the sum goes on in place.
  const ProgramOp& backward = Find(program, OpKind::kBatchNormBackward);
  EXPECT_EQ(backward.reads[1], Find(program, OpKind::kBatchNormReluBackward, 0).writes[3]);
  EXPECT_EQ(backward.writes[0], backward.reads[1]);
  EXPECT_LT(Measure(program).peak, Measure(LowerPlain(network)).peak);
}

TEST(LoweringFusionTest, WhatOthersReadIsMade) {
  NetworkBuilder net("shared");
  const LayerIndex norm = Norm(&net, net.Image(8, 8, 3));
  const LayerIndex sum = net.Add(Norm(&net, net.Relu(norm)), net.Tanh(norm));
  const Program program = LowerFused(End(&net, net.Add(net.Relu(sum), sum)));
  EXPECT_EQ(CountOf(program, OpKind::kBatchNormReluForward), 0);
  EXPECT_EQ(CountOf(program, OpKind::kBatchNormNormalize), 2);
}

TEST(LoweringFusionTest, AResidualWithoutAGradientGetsNone) {
  NetworkBuilder net("image");
  const LayerIndex image = net.Image(8, 8, 4);
  const Program program = LowerFused(End(&net, net.Relu(net.Add(Norm(&net, image), image))));
  EXPECT_EQ(Find(program, OpKind::kBatchNormReluForward).reads.size(), 6U);
  const ProgramOp& backward = Find(program, OpKind::kBatchNormReluBackward);
  EXPECT_EQ(backward.writes.size(), 3U);
  EXPECT_EQ(backward.writes[0], backward.reads[1]);
}

TEST(LoweringFusionTest, WithoutItsBranchASumIsNotThere) {
  NetworkBuilder net("branches");
  LayerIndex x = net.Relu(Norm(&net, net.Image(8, 8, 3)));
  const LayerIndex past = Norm(&net, x);
  net.BeginBranch(0.5F);
  x = net.Relu(net.JoinBranch(past, Norm(&net, net.Relu(Norm(&net, x)))));
  const Network network = End(&net, x);
  const Program there = LowerFused(network, {.batch = 2, .active_branches = {true}});
  EXPECT_EQ(CountOf(there, OpKind::kBatchNormReluForward), 3);
  EXPECT_EQ(CountOf(there, OpKind::kBatchNormNormalize), 1);
  EXPECT_EQ(CountOf(there, OpKind::kReluForward), 0);
  const Program without = LowerFused(network, {.batch = 2, .active_branches = {false}});
  EXPECT_EQ(CountOf(without, OpKind::kBatchNormReluForward), 1) << "the first";
  EXPECT_EQ(CountOf(without, OpKind::kBatchNormNormalize), 1);
  EXPECT_EQ(CountOf(without, OpKind::kReluForward), 1);
}

TEST(LoweringFusionTest, EvaluationsAreAsEver) {
  for (const char* name : {"resnet20", "densenet121", "sd-resnet110"}) {
    const LoweringOptions options{.batch = 2, .train = false};
    const Program fused = LowerWith(Small(name), options, true, 8);
    const Program plain = LowerPlain(Small(name), options);
    EXPECT_EQ(Kinds(fused, trace::Phase::kForward), Kinds(plain, trace::Phase::kForward));
    EXPECT_EQ(fused.steps, plain.steps);
  }
}

/// The largest mask: a fused backward op has it beside the gradient that it makes, for which a ReLU
/// by itself has given it up.
Bytes LargestMask(const Program& program) {
  Bytes largest = 0;
  for (const ProgramOp& op : program.ops) {
    for (const Tensor& tensor : op.spec.writes) {
      if (tensor.type == ElementType::kBit) largest = std::max(largest, tensor.size_bytes());
    }
  }
  return largest;
}

TEST(LoweringFusionTest, EveryModelKeepsItsNormsAndNeedsNoMoreMemory) {
  using enum OpKind;
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    const Network network = model.build(SmallOptions(model));
    const Program plain = LowerPlain(network);
    const Program fused = LowerFused(network);
    const int pairs = CountOf(fused, kBatchNormReluForward);
    EXPECT_EQ(CountOf(fused, kBatchNormReluBackward), pairs);
    EXPECT_EQ(CountOf(fused, kBatchNormNormalize) + pairs, CountOf(plain, kBatchNormForward));
    EXPECT_EQ(CountOf(fused, kBatchNormStatistics), CountOf(plain, kBatchNormForward));
    EXPECT_EQ(CountOf(fused, kBatchNormForward), 0);
    EXPECT_EQ(CountOf(fused, kReluForward) + pairs, CountOf(plain, kReluForward));
    EXPECT_EQ(CountOf(fused, kReluBackward) + pairs, CountOf(plain, kReluBackward));
    EXPECT_EQ(Measure(fused).persistent, Measure(plain).persistent);
    EXPECT_LE(Measure(fused).kept, Measure(plain).kept);
    EXPECT_LE(Measure(fused).peak, Measure(plain).peak + LargestMask(fused));
    if (CountOf(plain, kBatchNormForward) == 0) {
      EXPECT_EQ(fused.steps, plain.steps);
    }
  }
  EXPECT_EQ(CountOf(LowerFused(FindModel("resnet50").build({})), kBatchNormReluForward), 49);
  EXPECT_EQ(CountOf(LowerFused(FindModel("resnet50").build({})), kBatchNormNormalize), 4);
  EXPECT_EQ(CountOf(LowerFused(FindModel("densenet121").build({})), kBatchNormNormalize), 0);
}

/// Of a chain of linear layers; the last is large.
Network Layers(std::int64_t layers, std::int64_t features) {
  NetworkBuilder net("layers");
  LayerIndex x = net.Input({features});
  for (std::int64_t i = 0; i < layers; ++i) x = net.Tanh(net.Linear(x, features));
  net.SoftmaxLoss(x);
  return net.Finish();
}

TEST(LoweringFusionTest, UpdatesAtTheEndAreGrouped) {
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW}) {
    const bool adam = optimizer == Optimizer::kAdamW;
    const OpKind kind = adam ? OpKind::kAdamWUpdate : OpKind::kSgdUpdate;
    const Network network = Layers(5, 8);
    const LoweringOptions options{.batch = 2, .early_updates = false, .optimizer = optimizer};
    const Program program = LowerWith(network, options, false, 4);
    ASSERT_EQ(CountOf(program, kind), 3) << "ten parameters";
    std::vector<ParameterIndex> updated;
    for (int k = 0; k < 3; ++k) {
      const ProgramOp& update = Find(program, kind, k);
      const std::size_t count = k < 2 ? 4 : 2;
      const std::size_t each = adam ? 4 : 3;
      ASSERT_EQ(update.updates.size(), count);
      ASSERT_EQ(update.reads.size(), count * each);
      ASSERT_EQ(update.writes.size(), count * (each - 1));
      for (std::size_t i = 0; i < count; ++i) {
        const SlotIndex* reads = update.reads.data() + i * each;
        const SlotIndex* writes = update.writes.data() + i * (each - 1);
        const ParameterIndex parameter = update.updates[i];
        updated.push_back(parameter);
        EXPECT_EQ(program.slots[reads[0]].role, Role::kParameter);
        EXPECT_EQ(program.slots[reads[1]].role, Role::kParameterGradient);
        EXPECT_EQ(program.slots[reads[2]].role, Role::kMomentum);
        for (std::size_t r = 0; r < each; ++r) {
          EXPECT_EQ(program.slots[reads[r]].parameter, parameter);
        }
        EXPECT_EQ(writes[0], reads[0]);
        EXPECT_EQ(writes[1], reads[2]);
        if (adam) {
          EXPECT_EQ(writes[2], reads[3]);
        }
      }
    }
    // The same, in the same order, as one by one.
    std::vector<ParameterIndex> expected;
    for (const ProgramOp& op : LowerPlain(network, options).ops) {
      expected.insert(expected.end(), op.updates.begin(), op.updates.end());
    }
    EXPECT_EQ(updated, expected);
  }
}

TEST(LoweringFusionTest, AGroupIsNotTooLarge) {
  // Weights of 9 MiB, biases of 6 KiB: three pairs are within 32 MiB.
  const Program program = LowerWith(Layers(8, 1536), {.batch = 1}, false, 32);
  ASSERT_EQ(CountOf(program, OpKind::kSgdUpdate), 3);
  for (const ProgramOp& op : program.ops) {
    Bytes bytes = 0;
    for (std::size_t i = 0; i < op.updates.size(); ++i) {
      bytes += op.spec.reads[3 * i].size_bytes();
    }
    EXPECT_LE(bytes, Bytes{32} << 20);
  }
  // One that is larger by itself is updated by itself.
  const Program large = LowerWith(Layers(2, 3000), {.batch = 1}, false, 32);
  EXPECT_EQ(CountOf(large, OpKind::kSgdUpdate), 4);
}

TEST(LoweringFusionTest, EarlyUpdatesAreGroupedAlike) {
  for (const int most : {1, 4, 32}) {
    const Program late = LowerWith(Layers(5, 8), {.batch = 2, .early_updates = false}, false, most);
    const Program early = LowerWith(Layers(5, 8), {.batch = 2, .early_updates = true}, false, most);
    const auto groups = [](const Program& program) {
      std::vector<std::vector<ParameterIndex>> found;
      for (const ProgramOp& op : program.ops) {
        if (!op.updates.empty()) found.push_back(op.updates);
      }
      return found;
    };
    EXPECT_EQ(groups(early), groups(late));
    // A group of all parameters is the last op in either.
    EXPECT_EQ(Measure(early).peak < Measure(late).peak, most < 10) << most;
  }
}

/// Whether content of a role is an activation, or the gradient of one.
bool IsHalved(Role role) {
  return role == Role::kInput || role == Role::kActivation || role == Role::kGradient;
}

TEST(LoweringFusionTest, InMixedPrecisionActivationsTakeHalf) {
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    const Network network = model.build(SmallOptions(model));
    const bool has_lstm =
        std::any_of(network.layers.begin(), network.layers.end(),
                    [](const Layer& layer) { return layer.kind == LayerKind::kLstm; });
    for (const bool train : {true, false}) {
      const Program full = LowerFused(network, {.batch = 2, .train = train});
      const Program mixed =
          LowerFused(network, {.batch = 2, .train = train, .precision = Precision::kBfloat16});
      ASSERT_EQ(mixed.steps, full.steps);
      for (std::size_t i = 0; i < full.slots.size(); ++i) {
        const Role role = full.slots[i].role;
        const Bytes size = full.slots[i].size_bytes;
        const bool is_text = role == Role::kInput && network.input().type == ElementType::kInt;
        if (has_lstm && role == Role::kSaved) continue;
        EXPECT_EQ(mixed.slots[i].size_bytes, IsHalved(role) && !is_text ? size / 2 : size)
            << "slot " << i << ", role " << static_cast<int>(role);
      }
      for (const ProgramOp& op : mixed.ops) {
        for (std::size_t i = 0; i < op.reads.size(); ++i) {
          const Role role = mixed.slots[op.reads[i]].role;
          if (IsPersistent(role) || role == Role::kParameterGradient) {
            EXPECT_EQ(op.spec.reads[i].type, ElementType::kFloat) << Name(op.spec.kind);
          }
          if (role == Role::kActivation || role == Role::kGradient) {
            EXPECT_EQ(op.spec.reads[i].type, ElementType::kBfloat16) << Name(op.spec.kind);
          }
        }
      }
    }
  }
}

TEST(LoweringFusionTest, MixedPrecisionHasFloatsWhereTheyMatter) {
  const Program program = LowerFused(Block(false), {.batch = 2, .precision = Precision::kBfloat16});
  const auto types = [](const std::vector<Tensor>& tensors) {
    std::vector<ElementType> list;
    for (const Tensor& tensor : tensors) list.push_back(tensor.type);
    return list;
  };
  using enum ElementType;
  const OpSpec& forward = Find(program, OpKind::kBatchNormReluForward, 2).spec;
  EXPECT_THAT(types(forward.reads),
              ElementsAre(kBfloat16, kFloat, kFloat, kFloat, kFloat, kBfloat16));
  EXPECT_THAT(types(forward.writes), ElementsAre(kBfloat16, kBit));
  EXPECT_THAT(types(Find(program, OpKind::kBatchNormStatistics).spec.writes),
              ElementsAre(kFloat, kFloat, kFloat, kFloat));
  const OpSpec& backward = Find(program, OpKind::kBatchNormReluBackward).spec;
  EXPECT_THAT(types(backward.reads),
              ElementsAre(kBfloat16, kBfloat16, kBit, kFloat, kFloat, kFloat));
  EXPECT_THAT(types(backward.writes), ElementsAre(kBfloat16, kFloat, kFloat, kBfloat16));
  EXPECT_THAT(types(Find(program, OpKind::kConvForward).spec.reads), ElementsAre(kBfloat16, kFloat))
      << "the image, too";
  EXPECT_THAT(types(Find(program, OpKind::kConvBackwardWeights).spec.writes), ElementsAre(kFloat));
  EXPECT_THAT(types(Find(program, OpKind::kSoftmaxLossForward).spec.reads),
              ElementsAre(kBfloat16, kInt));
  EXPECT_THAT(types(Find(program, OpKind::kSoftmaxLossForward).spec.writes),
              ElementsAre(kBfloat16, kFloat));
  const Program text =
      LowerFused(Small("gpt2-tiny"), {.batch = 2, .precision = Precision::kBfloat16});
  EXPECT_THAT(types(Find(text, OpKind::kLayerNormForward).spec.writes),
              ElementsAre(kBfloat16, kFloat, kFloat));
  EXPECT_THAT(types(Find(text, OpKind::kAttentionForward).spec.writes),
              ElementsAre(kBfloat16, kFloat));
  EXPECT_THAT(types(Find(text, OpKind::kEmbeddingForward).spec.reads), ElementsAre(kInt, kFloat));
  EXPECT_THAT(types(Find(text, OpKind::kEmbeddingBackward).spec.writes), ElementsAre(kFloat));
}

TEST(LoweringFusionTest, UploadsComeFirst) {
  for (const bool train : {true, false}) {
    const Program program = LowerPlain(Block(false), {.batch = 2, .train = train});
    ASSERT_GT(program.steps.size(), 4U);
    EXPECT_EQ(program.steps[0], (Step{StepKind::kMalloc, program.input}));
    EXPECT_EQ(program.steps[1], (Step{StepKind::kUpload, program.input}));
    EXPECT_EQ(program.steps[2], (Step{StepKind::kMalloc, program.labels}));
    EXPECT_EQ(program.steps[3], (Step{StepKind::kUpload, program.labels}));
  }
}

}  // namespace
}  // namespace plimsoll::nn

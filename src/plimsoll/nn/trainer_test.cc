// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "plimsoll/base/error.h"
#include "plimsoll/device/fault_backend.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/checkpoint.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/onednn/library.h"

namespace plimsoll::nn {
namespace {

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() : device_(&backend_), library_(MakeOneDnnLibrary()) {}

  static Network Small(const std::string& name) {
    const Model model = FindModel(name);
    return model.build(SmallOptions(model));
  }

  std::vector<float> Train(Trainer* trainer, const Dataset& data, int steps) {
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) {
      losses.push_back(trainer->Step(data.TrainBatch(trainer->step(), trainer->options().batch)));
    }
    return losses;
  }

  device::HostBackend backend_;
  exec::PlainDevice device_;
  std::unique_ptr<KernelLibrary> library_;
};

/// Keeps what a linear layer reads; all results are zero.
class ListeningLibrary final : public KernelLibrary {
 public:
  std::string_view name() const override { return "listening"; }
  Kernel Prepare(const OpSpec& spec) override {
    return {.run = [this, spec](const exec::Launch& launch, const StepScalars&) {
      if (spec.kind == OpKind::kLinearForward) {
        heard.assign(launch.reads[0], launch.reads[0] + spec.reads[0].size_bytes());
      }
      for (std::size_t i = 0; i < spec.writes.size(); ++i) {
        std::fill_n(launch.writes[i], spec.writes[i].size_bytes(), std::byte{0});
      }
    }};
  }
  std::vector<std::byte> heard;
};

TEST_F(TrainerTest, InMixedPrecisionInputsAreRounded) {
  NetworkBuilder net("rounded");
  net.SoftmaxLoss(net.Linear(net.Input({3}), 2));
  const Network network = net.Finish();
  ListeningLibrary library;
  Trainer trainer(&device_, &library, network, {.batch = 2, .precision = Precision::kBfloat16});
  const Batch batch{.size = 2,
                    .values = {1.0F, -2.5F, 1.00390625F, 1.01171875F, 3.14159274F, 0.0F},
                    .labels = {0, 1}};
  const std::vector<std::uint16_t> rounded = {0x3f80, 0xc020, 0x3f80, 0x3f82, 0x4049, 0};
  const auto heard = [&] {
    std::vector<std::uint16_t> bits(library.heard.size() / 2);
    std::memcpy(bits.data(), library.heard.data(), library.heard.size());
    return bits;
  };
  trainer.Step(batch);
  EXPECT_EQ(heard(), rounded);
  library.heard.clear();
  trainer.Evaluate(batch);
  EXPECT_EQ(heard(), rounded);
}

TEST_F(TrainerTest, TheHostRefusesMixedPrecision) {
  const Network network = Small("lenet");
  try {
    Trainer trainer(&device_, library_.get(), network,
                    {.batch = 2, .precision = Precision::kBfloat16});
    ADD_FAILURE() << "it trains";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("bfloat16"));
  }
  EXPECT_EQ(device_.stats().live_bytes, 0);
}

float Mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0F) / static_cast<float>(values.size());
}

TEST_F(TrainerTest, EverySmallInstanceTrainsAndEvaluates) {
  device::HostBackend poison({.poison_on_free = true});
  exec::PlainDevice poisoned(&poison);
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    const Network network = model.build(SmallOptions(model));
    const auto data = MakeSyntheticData(network, model.data, 1);
    Trainer trainer(&device_, library_.get(), network, {.batch = 4, .learning_rate = 0.01F});
    const std::vector<float> losses = Train(&trainer, *data, 2);
    for (const float loss : losses) {
      EXPECT_GT(loss, 0);
      EXPECT_LT(loss, 10);
    }
    // Nobody reads what was never written: such memory is poisoned there.
    Trainer other(&poisoned, library_.get(), network, {.batch = 4, .learning_rate = 0.01F});
    EXPECT_EQ(Train(&other, *data, 2), losses);
    EXPECT_EQ(other.ReadParameters(), trainer.ReadParameters());
    const Evaluation evaluation = trainer.Evaluate(data->TestBatch(0, 4));
    EXPECT_EQ(evaluation.rows, 4 * network.label_tensor().count());
    EXPECT_GE(evaluation.correct, 0);
    EXPECT_LE(evaluation.correct, evaluation.rows);
  }
  EXPECT_EQ(device_.stats().live_bytes, 0);
}

TEST_F(TrainerTest, LossGoesDownInEveryFamily) {
  for (const char* name :
       {"lenet", "cifar10-quick", "caffenet", "vgg11-cifar", "googlenet", "resnet18", "resnet20",
        "wrn16-4", "densenet121", "unet", "char-lstm", "cnn-lstm", "gpt2-tiny"}) {
    SCOPED_TRACE(name);
    const Model model = FindModel(name);
    const Network network = model.build(SmallOptions(model));
    const auto data = MakeSyntheticData(network, model.data, 1);
    Trainer trainer(
        &device_, library_.get(), network,
        {.batch = 8, .optimizer = Optimizer::kAdamW, .learning_rate = 5e-3F, .seed = 2});
    const std::vector<float> losses = Train(&trainer, *data, 24);
    EXPECT_LT(Mean(std::span(losses).last(6)), 0.98F * Mean(std::span(losses).first(6)));
  }
}

TEST_F(TrainerTest, LearnsToClassify) {
  const Network network = Small("cifar10-quick");
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  Trainer trainer(&device_, library_.get(), network,
                  {.batch = 32, .optimizer = Optimizer::kAdamW, .learning_rate = 3e-3F});
  Train(&trainer, *data, 120);
  const Evaluation evaluation = trainer.Evaluate(data->TestBatch(0, 200));
  EXPECT_GT(evaluation.correct, 180) << evaluation.loss;
}

TEST_F(TrainerTest, TheSameSeedGivesTheSameBits) {
  for (const char* name : {"resnet20", "alexnet", "gpt2-tiny", "sd-resnet110"}) {
    SCOPED_TRACE(name);
    const Network network = Small(name);
    const auto data = MakeSyntheticData(network, FindModel(name).data, 1);
    std::vector<std::vector<float>> losses;
    std::vector<std::vector<std::vector<float>>> weights;
    for (const bool early : {false, false, true}) {
      Trainer trainer(&device_, library_.get(), network, {.batch = 4, .early_updates = early});
      losses.push_back(Train(&trainer, *data, 5));
      weights.push_back(trainer.ReadParameters());
    }
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(weights[0], weights[1]);
    EXPECT_EQ(losses[0], losses[2]) << "when parameters are updated changes nothing";
    EXPECT_EQ(weights[0], weights[2]);
    Trainer other(&device_, library_.get(), network, {.batch = 4, .seed = 9});
    EXPECT_NE(Train(&other, *data, 1)[0], losses[0][0]);
  }
}

TEST_F(TrainerTest, GoesOnFromACheckpointAsIfNothingHadBeen) {
  const std::string path = testing::TempDir() + "/trainer_checkpoint";
  const Network network = Small("alexnet");
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  const TrainOptions options{.batch = 4, .optimizer = Optimizer::kAdamW, .learning_rate = 1e-3F};
  Trainer first(&device_, library_.get(), network, options);
  Train(&first, *data, 3);
  SaveCheckpoint(path, &first);
  const std::vector<float> expected = Train(&first, *data, 3);
  Trainer second(&device_, library_.get(), network, options);
  LoadCheckpoint(path, &second);
  EXPECT_EQ(Train(&second, *data, 3), expected);
  EXPECT_EQ(second.ReadParameters(), first.ReadParameters());
  std::filesystem::remove(path);
}

TEST_F(TrainerTest, EvaluationChangesNothing) {
  const Network network = Small("resnet20");
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  Trainer trainer(&device_, library_.get(), network, {.batch = 4});
  Train(&trainer, *data, 2);
  const auto before = trainer.ReadParameters();
  const Evaluation evaluation = trainer.Evaluate(data->TestBatch(0, 6));
  EXPECT_EQ(trainer.Evaluate(data->TestBatch(0, 6)).loss, evaluation.loss);
  EXPECT_EQ(trainer.ReadParameters(), before);
  EXPECT_EQ(trainer.step(), 2);
}

TEST_F(TrainerTest, BatchesMayAlternate) {
  const Network network = Small("lenet");
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  Trainer trainer(&device_, library_.get(), network, {.batch = 4});
  for (int i = 0; i < 6; ++i) {
    EXPECT_GT(trainer.Step(data->TrainBatch(i, i % 2 == 0 ? 4 : 7)), 0);
  }
  EXPECT_EQ(trainer.ProgramFor(7, true).batch, 7);
}

TEST_F(TrainerTest, BranchesComeAndGo) {
  const Network network = Small("sd-resnet110");
  ASSERT_FALSE(network.branches.empty());
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  Trainer trainer(&device_, library_.get(), network, {.batch = 2});
  std::size_t there = 0;
  std::size_t all = 0;
  for (int i = 0; i < 20; ++i) {
    const std::vector<bool> branches = trainer.NextBranches();
    there += static_cast<std::size_t>(std::count(branches.begin(), branches.end(), true));
    all += branches.size();
    std::size_t seen = 0;
    trainer.set_gradient_hook([&seen](ParameterIndex, std::span<const float>) { ++seen; });
    trainer.Step(data->TrainBatch(i, 2));
    std::size_t expected = 0;
    for (const Layer& layer : network.layers) {
      if (layer.branch >= 0 && !branches[static_cast<std::size_t>(layer.branch)]) continue;
      for (const ParameterIndex p : layer.parameters) expected += network.parameters[p].trained;
    }
    EXPECT_EQ(seen, expected);
  }
  EXPECT_LT(there, all);
  EXPECT_GT(there, all / 2);
}

TEST_F(TrainerTest, RefusesBatchesOfAnotherShape) {
  const Network network = Small("lenet");
  Trainer trainer(&device_, library_.get(), network, {.batch = 4});
  EXPECT_THROW(trainer.Step({.size = 4}), Error);
  Batch batch = MakeSyntheticData(network, DataKind::kImages, 1)->TrainBatch(0, 4);
  batch.labels[2] = 99;
  EXPECT_THROW(trainer.Step(batch), Error);
  batch.labels.pop_back();
  EXPECT_THROW(trainer.Step(batch), Error);
  const Network text = Small("char-lstm");
  Trainer writer(&device_, library_.get(), text, {.batch = 4});
  for (const std::int32_t token : {-1, 17}) {
    batch = MakeSyntheticData(text, DataKind::kText, 1)->TrainBatch(0, 4);
    batch.tokens[5] = token;
    EXPECT_THROW(writer.Step(batch), Error);
  }
}

TEST_F(TrainerTest, AFailedAllocationLeavesNothingBehind) {
  const Network network = Small("lenet");
  const auto data = MakeSyntheticData(network, DataKind::kImages, 1);
  device::FaultBackend faulty(&backend_);
  for (std::int64_t nth = 1;; ++nth) {
    exec::PlainDevice device(&faulty);
    const std::int64_t before = faulty.calls(device::FaultyCall::kAllocateDevice);
    const std::int64_t faults = faulty.faults();
    faulty.Fail({.nth = before + nth});
    Bytes persistent = 0;
    try {
      Trainer trainer(&device, library_.get(), network, {.batch = 4});
      persistent = device.stats().live_bytes;
      const Batch batch = data->TrainBatch(0, 4);
      try {
        trainer.Step(batch);
      } catch (const OutOfMemory&) {
        EXPECT_EQ(device.stats().live_bytes, persistent) << "allocation " << nth;
        EXPECT_GT(trainer.Step(batch), 0) << "and goes on";
      }
    } catch (const OutOfMemory&) {
      EXPECT_EQ(persistent, 0) << "allocation " << nth;
    }
    EXPECT_EQ(device.stats().live_bytes, 0) << "allocation " << nth;
    if (faulty.faults() == faults) break;
  }
}

TEST_F(TrainerTest, RatesFollowTheirSchedule) {
  TrainOptions options{.learning_rate = 1, .warmup_steps = 2, .schedule_steps = 10};
  EXPECT_FLOAT_EQ(LearningRate(options, 1), 0.5F);
  EXPECT_FLOAT_EQ(LearningRate(options, 9), 1);
  options.schedule = Schedule::kCosine;
  EXPECT_FLOAT_EQ(LearningRate(options, 3), 1);
  EXPECT_FLOAT_EQ(LearningRate(options, 7), 0.5F);
  EXPECT_NEAR(LearningRate(options, 11), 0, 1e-6);
  options.schedule = Schedule::kSteps;
  EXPECT_FLOAT_EQ(LearningRate(options, 6), 1);
  EXPECT_FLOAT_EQ(LearningRate(options, 7), 0.1F);
  EXPECT_FLOAT_EQ(LearningRate(options, 10), 0.01F);
}

}  // namespace
}  // namespace plimsoll::nn

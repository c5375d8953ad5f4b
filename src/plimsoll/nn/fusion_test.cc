// SPDX-License-Identifier: Apache-2.0
//
// That fused and grouped programs compute what others do: losses, gradients, weights and
// evaluations are those of the host's own programs to the bit, also under a limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/builder.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/fusing_library_for_test.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll::nn {
namespace {

constexpr std::int64_t kBatch = 4;

/// All numbers of a run.
struct Numbers {
  std::vector<float> losses;
  std::vector<float> evaluations;
  /// Of each step, by parameter: the order of updates may be another.
  std::vector<std::map<ParameterIndex, std::vector<float>>> gradients;
  std::vector<std::vector<float>> persistent;
};

Numbers Train(exec::Device* device, KernelLibrary* library, const Network& network,
              const TrainOptions& options, int steps) {
  Numbers numbers;
  const bool is_pixels = network.label_tensor().count() > 1;
  const std::unique_ptr<Dataset> data =
      MakeSyntheticData(network, is_pixels ? DataKind::kPixels : DataKind::kImages, 3);
  Trainer trainer(device, library, network, options);
  trainer.set_gradient_hook([&](ParameterIndex parameter, std::span<const float> values) {
    const bool is_new = numbers.gradients.back()
                            .emplace(parameter, std::vector(values.begin(), values.end()))
                            .second;
    EXPECT_TRUE(is_new) << "parameter " << parameter << " is updated twice";
  });
  for (int k = 0; k < steps; ++k) {
    numbers.gradients.emplace_back();
    numbers.losses.push_back(trainer.Step(data->TrainBatch(k, kBatch)));
  }
  numbers.evaluations.push_back(trainer.Evaluate(data->TestBatch(0, kBatch)).loss);
  for (std::size_t i = 0; i < trainer.persistent_slots().size(); ++i) {
    numbers.persistent.push_back(trainer.ReadPersistent(static_cast<SlotIndex>(i)));
  }
  return numbers;
}

void ExpectEqual(const Numbers& numbers, const Numbers& reference) {
  EXPECT_EQ(numbers.losses, reference.losses);
  EXPECT_EQ(numbers.evaluations, reference.evaluations);
  ASSERT_EQ(numbers.gradients.size(), reference.gradients.size());
  for (std::size_t k = 0; k < numbers.gradients.size(); ++k) {
    ASSERT_EQ(numbers.gradients[k].size(), reference.gradients[k].size()) << "step " << k;
    for (const auto& [parameter, values] : reference.gradients[k]) {
      ASSERT_EQ(numbers.gradients[k].at(parameter), values)
          << "step " << k << ", parameter " << parameter;
    }
  }
  ASSERT_EQ(numbers.persistent, reference.persistent);
}

/// Trains with the host's library and with one that fuses and groups.
void Compare(const Network& network, const TrainOptions& options, int steps = 4) {
  // What is freed is poisoned: nobody reads what is no longer there.
  device::HostBackend backend({.poison_on_free = true});
  exec::PlainDevice plain(&backend);
  const std::unique_ptr<KernelLibrary> host = MakeOneDnnLibrary();
  const Numbers reference = Train(&plain, host.get(), network, options, steps);
  EXPECT_EQ(static_cast<int>(reference.losses.size()), steps);
  for (const bool fuses : {false, true}) {
    for (const int group : {1, 5}) {
      SCOPED_TRACE(testing::Message() << (fuses ? "fused" : "unfused") << ", groups of " << group);
      FusingLibrary library(fuses, group);
      exec::PlainDevice device(&backend);
      ExpectEqual(Train(&device, &library, network, options, steps), reference);
    }
  }
}

exec::ManagedOptions Limit(Bytes limit_bytes) {
  exec::ManagedOptions options;
  options.watch.planning.limit_bytes = limit_bytes;
  options.watch.planning.machine = {.name = "slow",
                                    .out_bytes_per_s = 1e9,
                                    .in_bytes_per_s = 1e9,
                                    .both_out_bytes_per_s = 1e9,
                                    .both_in_bytes_per_s = 1e9};
  options.watch.planning.evaluations = 30;
  options.watch.plan_at_once = true;
  options.ledger = true;
  return options;
}

class FusedModelTest : public testing::TestWithParam<const char*> {
 protected:
  FusedModelTest() : model_(FindModel(GetParam())), network_(model_.build(SmallOptions(model_))) {}

  const Model model_;
  const Network network_;
};

TEST_P(FusedModelTest, ChangesNoNumber) {
  FusingLibrary library;
  const Program program = Lower(network_, {.batch = kBatch}, &library);
  EXPECT_TRUE(std::any_of(program.ops.begin(), program.ops.end(), [](const ProgramOp& op) {
    return op.spec.kind == OpKind::kBatchNormReluForward;
  })) << "nothing is compared";
  Compare(network_, {.batch = kBatch, .learning_rate = 0.01F, .weight_decay = 1e-4F});
}

TEST_P(FusedModelTest, ChangesNoNumberOfAdamNorOfUpdatesAtTheEnd) {
  Compare(network_, {.batch = kBatch, .optimizer = Optimizer::kAdamW, .learning_rate = 1e-3F}, 2);
  Compare(network_, {.batch = kBatch, .learning_rate = 0.01F, .early_updates = false}, 2);
}

TEST_P(FusedModelTest, ChangesNoNumberUnderALimit) {
  constexpr int kSteps = 8;
  const TrainOptions options{.batch = kBatch, .learning_rate = 0.01F};
  device::HostBackend backend({.poison_on_free = true});
  exec::PlainDevice plain(&backend);
  const std::unique_ptr<KernelLibrary> host = MakeOneDnnLibrary();
  const Numbers reference = Train(&plain, host.get(), network_, options, kSteps);
  FusingLibrary library;
  const Bytes peak = Measure(Lower(network_, {.batch = kBatch}, &library)).peak;
  std::int64_t planned = 0;
  for (const int percent : {80, 60}) {
    SCOPED_TRACE(testing::Message() << percent << " %");
    exec::ManagedDevice device(&backend, Limit(peak * percent / 100));
    ExpectEqual(Train(&device, &library, network_, options, kSteps), reference);
    EXPECT_LE(device.stats().peak_footprint_bytes, device.stats().limit_bytes);
    planned += device.stats().planned_iterations;
    EXPECT_GT(device.stats().copies_out + device.stats().replays, 0);
  }
  // With stochastic depth, iterations hardly recur.
  EXPECT_TRUE(planned > 0 || !network_.branches.empty());
}

INSTANTIATE_TEST_SUITE_P(Models, FusedModelTest,
                         testing::Values("resnet20", "resnet18", "resnet50", "preresnet164",
                                         "wrn28-10", "densenet121", "inception-v3", "unet",
                                         "sd-resnet110"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TrainOptions Few() { return {.batch = kBatch, .learning_rate = 0.02F}; }

LayerIndex Norm(NetworkBuilder* net, LayerIndex x, std::int64_t channels = 8) {
  return net->BatchNorm(net->Conv(x, channels, {.kernel = 3, .padding = 1, .bias = false}));
}

Network End(NetworkBuilder* net, LayerIndex x) {
  net->SoftmaxLoss(net->Linear(net->GlobalPool(x), 5));
  return net->Finish();
}

TEST(FusionTest, AResidualWithoutAGradient) {
  NetworkBuilder net("image");
  const LayerIndex image = net.Image(6, 6, 3);
  Compare(End(&net, net.Relu(net.Add(image, Norm(&net, image, 3)))), Few());
}

TEST(FusionTest, ANormOfTheImageItself) {
  NetworkBuilder net("input-norm");
  LayerIndex x = net.Relu(net.BatchNorm(net.Image(6, 6, 3)));
  Compare(End(&net, net.Relu(Norm(&net, x))), Few());
}

TEST(FusionTest, AResidualThatIsWhatTheNormReads) {
  NetworkBuilder net("same");
  const LayerIndex x = net.Conv(net.Image(6, 6, 3), 8, {.kernel = 1});
  Compare(End(&net, net.Relu(net.Add(net.BatchNorm(x), x))), Few());
}

TEST(FusionTest, TwoNormsOfOneSum) {
  NetworkBuilder net("two");
  const LayerIndex x = net.Relu(Norm(&net, net.Image(6, 6, 3)));
  const LayerIndex a = Norm(&net, x);
  const LayerIndex b = Norm(&net, x);
  LayerIndex y = net.Relu(net.Add(b, a));
  y = net.Relu(net.Add(Norm(&net, y), Norm(&net, y)));
  Compare(End(&net, y), Few());
}

TEST(FusionTest, ASumOfOneNormTwice) {
  NetworkBuilder net("twice");
  const LayerIndex x = Norm(&net, net.Image(6, 6, 3));
  Compare(End(&net, net.Relu(net.Add(x, x))), Few());
}

TEST(FusionTest, NormsAndSumsThatOthersReadToo) {
  NetworkBuilder net("shared");
  const LayerIndex x = net.Relu(Norm(&net, net.Image(6, 6, 3)));
  const LayerIndex norm = Norm(&net, x);
  const LayerIndex first = net.Relu(norm);
  const LayerIndex sum = net.Add(Norm(&net, first), x);
  const LayerIndex second = net.Relu(sum);
  Compare(End(&net, net.Add(net.Add(second, net.Tanh(sum)), net.Sigmoid(norm))), Few());
}

TEST(FusionTest, AResidualOfManyUsersGetsTheSumOfAllGradients) {
  NetworkBuilder net("users");
  const LayerIndex x = net.Relu(Norm(&net, net.Image(6, 6, 3)));
  const LayerIndex a = net.Relu(net.Add(Norm(&net, x), x));
  const LayerIndex b = net.Relu(net.Add(x, Norm(&net, a)));
  Compare(End(&net, net.Concat({a, b, x})), Few());
}

TEST(FusionTest, ANormBehindWhatNobodyReads) {
  NetworkBuilder net("dead");
  const LayerIndex x = net.Relu(Norm(&net, net.Image(6, 6, 3)));
  net.Relu(net.Add(Norm(&net, x), x));
  Compare(End(&net, x), Few());
}

/// Every pattern of branches, one after the other.
TEST(FusionTest, BranchesThatAreThereOrNot) {
  NetworkBuilder net("branches");
  LayerIndex x = net.Relu(Norm(&net, net.Image(6, 6, 3)));
  for (int k = 0; k < 3; ++k) {
    // The last shortcut is a norm too, behind which the ReLU comes at once if nothing is added.
    const LayerIndex past = k == 2 ? Norm(&net, x) : x;
    net.BeginBranch(0.5F);
    const LayerIndex last = Norm(&net, net.Relu(Norm(&net, x)));
    x = net.Relu(net.JoinBranch(past, last));
  }
  TrainOptions options = Few();
  Compare(End(&net, x), options, 24);
}

}  // namespace
}  // namespace plimsoll::nn

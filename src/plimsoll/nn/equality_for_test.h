// SPDX-License-Identifier: Apache-2.0
//
// The promise that limits change no number, as tests for any device: losses, gradients and weights
// are bitwise those of a run without a limit, through recording, planned and drifted service.
// Instantiate EqualityTest, DriftTest and CourseTest, and GraphTest where there are graphs. For
// tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/trainer.h"

namespace plimsoll::nn {

inline constexpr int kSteps = 20;
inline constexpr std::int64_t kBatch = 4;

/// All numbers of a run: the bits of losses, a hash of all gradients of each step, all parameters.
struct Numbers {
  std::vector<std::uint32_t> losses;
  std::vector<std::uint64_t> gradients;
  std::vector<std::vector<float>> parameters;
  std::vector<std::uint32_t> evaluations;
};

inline std::uint32_t BitsOf(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// What a run does beyond training steps of one batch.
struct Course {
  int evaluates_every = 0;
  bool alternates_batch = false;
  bool sees_gradients = true;  ///< Downloads them, all of them, as soon as each is there;
  std::set<int> looks{};       ///< in these steps at any rate.
  Precision precision = Precision::kFloat32;
};

/// Where the tests run, and which model they train.
struct EqualityCase {
  std::string model;
  std::function<std::unique_ptr<device::Backend>()> make_backend;
  std::function<std::unique_ptr<KernelLibrary>()> make_library;
  Precision precision = Precision::kFloat32;
};
inline void PrintTo(const EqualityCase& equality_case, std::ostream* out) {
  *out << equality_case.model;
}
inline std::string NameOf(const testing::TestParamInfo<EqualityCase>& instance) {
  std::string name = instance.param.model;
  for (char& c : name) c = c == '-' ? '_' : c;
  return instance.param.precision == Precision::kFloat32 ? name : name + "_bf16";
}
/// The models that every device is tested with.
inline std::vector<std::string> EqualityModels() {
  return {"lenet",     "cifar10-quick", "alexnet",      "vgg11",       "vgg16",
          "googlenet", "inception-v3",  "resnet18",     "resnet50",    "resnet1001",
          "resnet20",  "preresnet164",  "wrn28-10",     "densenet121", "unet",
          "char-lstm", "cnn-lstm",      "sd-resnet110", "gpt2-small"};
}

inline Numbers Train(exec::Device* device, KernelLibrary* library, const Network& network,
                     DataKind kind, const Course& course) {
  Numbers numbers;
  const std::unique_ptr<Dataset> data = MakeSyntheticData(network, kind, 3);
  TrainOptions options{.batch = kBatch, .learning_rate = 0.01F, .weight_decay = 1e-4F};
  options.precision = course.precision;
  if (kind == DataKind::kText) options.optimizer = Optimizer::kAdamW;
  Trainer trainer(device, library, network, options);
  std::uint64_t hash = 0;
  const auto look = [&hash](ParameterIndex parameter, std::span<const float> values) {
    hash = hash * 31 + static_cast<std::uint64_t>(parameter);
    for (const float value : values) hash = (hash ^ BitsOf(value)) * 0x9e3779b97f4a7c15U;
  };
  for (int k = 0; k < kSteps; ++k) {
    hash = 0;
    if (course.sees_gradients || course.looks.contains(k)) {
      trainer.set_gradient_hook(look);
    } else {
      trainer.set_gradient_hook({});
    }
    const std::int64_t batch = course.alternates_batch && k % 2 == 1 ? kBatch / 2 : kBatch;
    numbers.losses.push_back(BitsOf(trainer.Step(data->TrainBatch(k, batch))));
    numbers.gradients.push_back(hash);
    if (course.evaluates_every > 0 && k % course.evaluates_every == 0) {
      numbers.evaluations.push_back(BitsOf(trainer.Evaluate(data->TestBatch(k, kBatch)).loss));
    }
  }
  numbers.parameters = trainer.ReadParameters();
  return numbers;
}

inline exec::ManagedOptions Limit(Bytes limit_bytes) {
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

inline void ExpectEqual(const Numbers& numbers, const Numbers& reference) {
  EXPECT_EQ(numbers.losses, reference.losses);
  EXPECT_EQ(numbers.gradients, reference.gradients);
  EXPECT_EQ(numbers.evaluations, reference.evaluations);
  ASSERT_EQ(numbers.parameters.size(), reference.parameters.size());
  for (std::size_t k = 0; k < numbers.parameters.size(); ++k) {
    const auto& own = numbers.parameters[k];
    const auto& other = reference.parameters[k];
    ASSERT_EQ(own.size(), other.size());
    EXPECT_EQ(std::memcmp(own.data(), other.data(), own.size() * sizeof(float)), 0)
        << "parameter " << k;
  }
}

class EqualityTest : public testing::TestWithParam<EqualityCase> {
 protected:
  EqualityTest()
      : model_(FindModel(GetParam().model)), network_(model_.build(SmallOptions(model_))) {}

  /// Trains at the limits, in percent of the peak, and returns in how many of them plans served.
  int Compare(const std::vector<int>& percents, Course course) {
    course.precision = GetParam().precision;
    const std::unique_ptr<device::Backend> plain_backend = GetParam().make_backend();
    const std::unique_ptr<KernelLibrary> library = GetParam().make_library();
    exec::PlainDevice plain(plain_backend.get());
    const Numbers reference = Train(&plain, library.get(), network_, model_.data, course);
    const Bytes peak = plain.stats().peak_live_bytes;
    int planned = 0;
    for (const int percent : percents) {
      SCOPED_TRACE(std::to_string(percent) + " %");
      const std::unique_ptr<device::Backend> backend = GetParam().make_backend();
      try {
        // Small blocks are all alignment.
        const Bytes slack = percent > 100 ? Bytes{1} << 20 : 0;
        exec::ManagedDevice device(backend.get(), Limit(peak * percent / 100 + slack));
        const Numbers numbers = Train(&device, library.get(), network_, model_.data, course);
        ExpectEqual(numbers, reference);
        stats_ = device.stats();
        EXPECT_LE(stats_.peak_footprint_bytes, stats_.limit_bytes);
        planned += stats_.planned_iterations > 0 ? 1 : 0;
        graph_launches_ += stats_.graph_launches;
        drifts_ += stats_.drifts;
      } catch (const OutOfMemory&) {
        // One op by itself exceeds the limit: it fits nowhere below.
        EXPECT_LT(percent, 90);
        break;
      }
      if (const auto* host = dynamic_cast<const device::HostBackend*>(backend.get())) {
        EXPECT_EQ(host->device_bytes(), 0);
        EXPECT_EQ(host->host_bytes(), 0);
      }
    }
    return planned;
  }

  const Model model_;
  const Network network_;
  exec::DeviceStats stats_;          // Of the last limit that fitted.
  std::int64_t graph_launches_ = 0;  // Of all.
  std::int64_t drifts_ = 0;
};

TEST_P(EqualityTest, LimitsChangeNoNumber) {
  const int planned = Compare({110, 90, 70, 50, 30}, {});
  // With stochastic depth, iterations hardly recur.
  EXPECT_GE(planned, network_.branches.empty() ? 1 : 0);
}

/// On devices that keep graphs: an iteration that nobody looks into, but for its loss, can be one.
class GraphTest : public EqualityTest {};

TEST_P(GraphTest, UnseenGradientsChangeNoNumber) {
  const int planned = Compare({110, 90, 50}, {.sees_gradients = false});
  if (!network_.branches.empty()) return;
  EXPECT_GE(planned, 1);
  EXPECT_GE(graph_launches_, 5);
}

/// Programs that depart from their plan in the middle of an iteration.
class DriftTest : public EqualityTest {};

TEST_P(DriftTest, LookingIntoPlannedIterationsChangesNoNumber) {
  const int planned = Compare({110, 70, 50}, {.sees_gradients = false, .looks = {5, 9, 10, 16}});
  EXPECT_GE(planned, 1);
  // Where a plan serves: at three looks, and when the weights are read in the end.
  EXPECT_GE(drifts_, 4 * planned);
}

class CourseTest : public EqualityTest {};

TEST_P(CourseTest, EvaluationsAndOtherBatchesAreServedByPlansOfTheirOwn) {
  Compare({60}, {.evaluates_every = 3});
  EXPECT_EQ(stats_.drifts, 1) << "when the weights are read in the end";
  EXPECT_EQ(stats_.plans_made, 2);
  Compare({60}, {.alternates_batch = true});
  EXPECT_EQ(stats_.drifts, 1);
  EXPECT_EQ(stats_.plans_made, 2);
}

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// Limits change no number on a GPU, in reproducible mode; copies that are held up at random change
// none, nor does poison in what is freed.
#include <gtest/gtest.h>

#include "plimsoll/cuda/cuda_backend.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/cuda/library.h"
#include "plimsoll/nn/equality_for_test.h"

namespace plimsoll::nn {
namespace {

constexpr cuda::CudaOptions kHeldUp{.jitter_ns = 50'000, .poison = true};
constexpr cuda::CudaOptions kPoisoned{.poison = true, .poison_on_free = true};

EqualityCase CaseOf(const std::string& model, const cuda::CudaOptions& options,
                    Precision precision = Precision::kFloat32) {
  return {.model = model,
          .make_backend = [options] { return std::make_unique<cuda::CudaBackend>(options); },
          // Small models would be all workspace.
          .make_library =
              [] {
                return cuda::MakeCudaLibrary(
                    {.reproducible = true, .max_workspace_bytes = Bytes{64} << 10});
              },
          .precision = precision};
}

std::vector<EqualityCase> Cases(const cuda::CudaOptions& options) {
  std::vector<EqualityCase> cases;
  if (cuda::ListDevices().empty()) return cases;
  for (const std::string& model : EqualityModels()) cases.push_back(CaseOf(model, options));
  for (const char* model : {"resnet20", "resnet50", "densenet121", "gpt2-small"}) {
    cases.push_back(CaseOf(model, options, Precision::kBfloat16));
  }
  return cases;
}

std::vector<EqualityCase> Courses() {
  if (cuda::ListDevices().empty()) return {};
  return {CaseOf("resnet20", kHeldUp)};
}

std::vector<EqualityCase> Drifts() {
  std::vector<EqualityCase> cases;
  if (cuda::ListDevices().empty()) return cases;
  for (const char* model : {"lenet", "resnet20", "densenet121", "gpt2-small"}) {
    cases.push_back(CaseOf(model, kHeldUp));
  }
  cases.push_back(CaseOf("resnet20", kHeldUp, Precision::kBfloat16));
  return cases;
}

/// What is freed inside of the arena is NaNs from there on: op by op, and in graphs.
class PoisonTest : public EqualityTest {};

TEST_P(PoisonTest, WhatIsFreedIsNeverRead) {
  // Above its peak, every network has a plan.
  const int planned = Compare({60}, {}) + Compare({110, 90}, {.sees_gradients = false});
  EXPECT_GE(planned, network_.branches.empty() ? 1 : 0);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EqualityTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CourseTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DriftTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GraphTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PoisonTest);
INSTANTIATE_TEST_SUITE_P(Cuda, EqualityTest, testing::ValuesIn(Cases(kHeldUp)), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, GraphTest, testing::ValuesIn(Cases(kHeldUp)), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, PoisonTest, testing::ValuesIn(Cases(kPoisoned)), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, DriftTest, testing::ValuesIn(Drifts()), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, CourseTest, testing::ValuesIn(Courses()), NameOf);

TEST(CudaEqualityTest, NeedsADevice) {
  if (cuda::ListDevices().empty()) GTEST_SKIP() << "there is no GPU here: no model is compared";
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// Limits change no number on a GPU, in reproducible mode; copies that are held up at random change
// none, either.
#include <gtest/gtest.h>

#include "plimsoll/cuda/cuda_backend.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/cuda/library.h"
#include "plimsoll/nn/equality_for_test.h"

namespace plimsoll::nn {
namespace {

EqualityCase CaseOf(const std::string& model, Precision precision = Precision::kFloat32) {
  return {.model = model,
          .make_backend =
              [] {
                return std::make_unique<cuda::CudaBackend>(
                    cuda::CudaOptions{.jitter_ns = 50'000, .poison = true});
              },
          // Small models would be all workspace.
          .make_library =
              [] {
                return cuda::MakeCudaLibrary(
                    {.reproducible = true, .max_workspace_bytes = Bytes{64} << 10});
              },
          .precision = precision};
}

std::vector<EqualityCase> Cases() {
  std::vector<EqualityCase> cases;
  if (cuda::ListDevices().empty()) return cases;
  for (const std::string& model : EqualityModels()) cases.push_back(CaseOf(model));
  for (const char* model : {"resnet20", "resnet50", "densenet121", "gpt2-small"}) {
    cases.push_back(CaseOf(model, Precision::kBfloat16));
  }
  return cases;
}

std::vector<EqualityCase> Courses() {
  if (cuda::ListDevices().empty()) return {};
  return {CaseOf("resnet20")};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EqualityTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CourseTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GraphTest);
INSTANTIATE_TEST_SUITE_P(Cuda, EqualityTest, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, GraphTest, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, CourseTest, testing::ValuesIn(Courses()), NameOf);

TEST(CudaEqualityTest, NeedsADevice) {
  if (cuda::ListDevices().empty()) GTEST_SKIP() << "there is no GPU here: no model is compared";
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
//
// Small networks on a GPU against what PyTorch computed on a host.
#include <gtest/gtest.h>

#include "plimsoll/cuda/cuda_backend.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/cuda/library.h"
#include "plimsoll/nn/pytorch_for_test.h"

namespace plimsoll::nn {
namespace {

std::vector<PytorchCase> Cases() {
  if (cuda::ListDevices().empty()) return {};
  return {
      {.name = "cuda",
       .make_backend =
           [] { return std::make_unique<cuda::CudaBackend>(cuda::CudaOptions{.poison = true}); },
       .make_library =
           [] { return cuda::MakeCudaLibrary({.reproducible = true, .tf32_matmul = false}); },
       // Convolutions round their inputs to the 10 bits of TF32. On a host that cuts what they
       // read to so many bits, losses are up to 3.1e-3 off, the smallest most, norms 1.1e-3; on
       // one that rounds, 3.2e-4 and 5e-4. Engines do the one or the other.
       .with_convolutions = {.loss = 6e-3, .gradient = 3e-3},
       // Products are of floats; sums have another order, exponentials other last bits.
       .without = {.loss = 1e-4, .gradient = 5e-4}}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PytorchTest);
INSTANTIATE_TEST_SUITE_P(Cuda, PytorchTest, testing::ValuesIn(Cases()), NameOf);

TEST(CudaPytorchTest, NeedsADevice) {
  if (cuda::ListDevices().empty()) GTEST_SKIP() << "there is no GPU here: nothing is compared";
}

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_backend.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/pytorch_for_test.h"

namespace plimsoll::nn {
namespace {

INSTANTIATE_TEST_SUITE_P(Host, PytorchTest,
                         testing::Values(PytorchCase{
                             .name = "host",
                             .make_backend = [] { return std::make_unique<device::HostBackend>(); },
                             .make_library = MakeOneDnnLibrary}),
                         NameOf);

}  // namespace
}  // namespace plimsoll::nn

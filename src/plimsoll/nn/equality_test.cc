// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/nn/equality_for_test.h"
#include "plimsoll/nn/onednn/library.h"

namespace plimsoll::nn {
namespace {

EqualityCase CaseOf(const std::string& model) {
  return {.model = model,
          .make_backend =
              [] {
                return std::make_unique<device::HostBackend>(
                    device::HostOptions{.poison_on_free = true});
              },
          .make_library = MakeOneDnnLibrary};
}

std::vector<EqualityCase> Cases() {
  std::vector<EqualityCase> cases;
  for (const std::string& model : EqualityModels()) cases.push_back(CaseOf(model));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, EqualityTest, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Models, CourseTest, testing::Values(CaseOf("resnet20")), NameOf);

}  // namespace
}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/device/graph_backend_for_test.h"
#include "plimsoll/nn/equality_for_test.h"
#include "plimsoll/nn/fusing_library_for_test.h"
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

/// A host that keeps graphs.
struct HostHolder {
  device::HostBackend host{device::HostOptions{.poison_on_free = true}};
};
class GraphHost final : private HostHolder, public device::GraphBackend {
 public:
  GraphHost() : GraphBackend(&host) {}
};

/// Fuses and groups, and says what can be part of a graph: what knows of no step.
class SteadyLibrary final : public KernelLibrary {
 public:
  std::string_view name() const override { return "steady"; }
  bool fuses_batch_norm() const override { return true; }
  int update_group() const override { return library_.update_group(); }
  Kernel Prepare(const OpSpec& spec) override {
    Kernel kernel = library_.Prepare(spec);
    kernel.steady = spec.kind != OpKind::kDropoutForward && spec.kind != OpKind::kSgdUpdate &&
                    spec.kind != OpKind::kAdamWUpdate;
    return kernel;
  }

 private:
  FusingLibrary library_;
};

std::vector<EqualityCase> GraphCases() {
  std::vector<EqualityCase> cases;
  for (const char* model : {"lenet", "resnet20", "densenet121", "gpt2-small"}) {
    cases.push_back({.model = model,
                     .make_backend = [] { return std::make_unique<GraphHost>(); },
                     .make_library = [] { return std::make_unique<SteadyLibrary>(); }});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, EqualityTest, testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Graphs, EqualityTest, testing::ValuesIn(GraphCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Graphs, GraphTest, testing::ValuesIn(GraphCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Models, DriftTest,
                         testing::Values(CaseOf("lenet"), CaseOf("resnet20"), CaseOf("gpt2-small")),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Graphs, DriftTest, testing::ValuesIn(GraphCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Models, CourseTest, testing::Values(CaseOf("resnet20")), NameOf);

}  // namespace
}  // namespace plimsoll::nn

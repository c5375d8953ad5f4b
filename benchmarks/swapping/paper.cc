// SPDX-License-Identifier: Apache-2.0
#include "swapping/paper.h"

namespace plimsoll::swapping {
namespace {

constexpr PaperRow kPaper[] = {
    {"resnet18_", 1452, 359 / 1.83, "20.7"},  {"resnet34_", 2824, 684 / 1.85, "24.8"},
    {"resnet50_", 4418, 993 / 1.88, "34.2"},  {"resnet101_", 8367, 2086 / 1.97, "32.4"},
    {"vgg11_cifar", 389, 76 / 1.75, "27.0"},  {"vgg13_cifar", 509, 94 / 1.71, "29.3"},
    {"vgg16_cifar", 647, 122 / 1.73, "30.9"}, {"vgg19_cifar", 785, 162 / 1.94, "28.5"}};

}  // namespace

const PaperRow* FindPaperRow(const std::string& name) {
  for (const PaperRow& row : kPaper) {
    if (name.starts_with(row.prefix)) return &row;
  }
  return nullptr;
}

Workload AtPaperRatio(const Workload& workload, const PaperRow& paper) {
  const double mb = static_cast<double>(workload.peak_bytes) / 1e6;
  return WithSlowerOps(workload, mb / paper.load_mb * paper.milliseconds / Milliseconds(workload));
}

}  // namespace plimsoll::swapping

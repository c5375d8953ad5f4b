// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "plimsoll/nn/cost.h"
#include "plimsoll/nn/op.h"

namespace plimsoll::nn {

/// Kernels that do nothing, take the time that the cost model gives them, and need no workspace.
/// Programs look as the machine's own library has them, or as is said.
class NullLibrary final : public KernelLibrary {
 public:
  explicit NullLibrary(MachineSpeed speed = MachineSpeeds().front()) : speed_(std::move(speed)) {}
  NullLibrary(MachineSpeed speed, bool fuses_batch_norm, int update_group)
      : speed_(std::move(speed)) {
    speed_.fuses_batch_norm = fuses_batch_norm;
    speed_.update_group = update_group;
  }

  std::string_view name() const override { return "null"; }
  bool fuses_batch_norm() const override { return speed_.fuses_batch_norm; }
  int update_group() const override { return speed_.update_group; }
  Kernel Prepare(const OpSpec& spec) override { return {0, {}, ExpectedTime(spec, speed_)}; }

 private:
  MachineSpeed speed_;
};

}  // namespace plimsoll::nn

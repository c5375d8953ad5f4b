// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "plimsoll/nn/cost.h"
#include "plimsoll/nn/op.h"

namespace plimsoll::nn {

/// Kernels that do nothing, take the time that the cost model gives them, and need no workspace.
class NullLibrary final : public KernelLibrary {
 public:
  explicit NullLibrary(MachineSpeed speed = MachineSpeeds().front()) : speed_(std::move(speed)) {}

  std::string_view name() const override { return "null"; }
  Kernel Prepare(const OpSpec& spec) override { return {0, {}, ExpectedTime(spec, speed_)}; }

 private:
  MachineSpeed speed_;
};

}  // namespace plimsoll::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plimsoll/exec/device.h"
#include "plimsoll/nn/program.h"

namespace plimsoll::nn {

/// What a program exchanges with its user while it runs; each may be empty.
struct RunHooks {
  /// Fills a block, or reads one. An upload without a hook is an op that does nothing.
  std::function<void(SlotIndex, exec::Block)> upload;
  std::function<void(SlotIndex, exec::Block)> download;
  /// Sees each parameter before the op that updates it runs, with the block of the gradient.
  std::function<void(ParameterIndex, exec::Block)> before_update;
};

/// Allocates the persistent blocks of a program, in the order of its slots. If one cannot be had,
/// those before it are freed again.
std::vector<exec::Block> AllocatePersistent(exec::Device* device, const Program& program);

/// Runs a program once: asks the device for every malloc, op and free in turn. What the device
/// throws is passed on when everything that the program had allocated has been freed.
void RunProgram(exec::Device* device, const Program& program,
                std::span<const exec::Block> persistent, const StepScalars& scalars,
                const RunHooks& hooks);

}  // namespace plimsoll::nn

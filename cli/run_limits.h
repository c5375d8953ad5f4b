// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/training_device.h"
#include "plimsoll/base/bytes.h"

namespace plimsoll::cli {

/// What a training run is held to.
struct RunLimits {
  /// Of all that the process takes of a GPU, or of the network on the host.
  Bytes limit_bytes = 0;
  /// Of the network: less than the limit on a GPU. 0 if there is no arena.
  Bytes arena_bytes = 0;
};

/// Reads "--limit". On a GPU a limit in bytes is one on all that the process takes of the card,
/// unless it `limits_network`; one in percent is of the network's own peak. Without a limit there
/// is an arena of that size there, and a little more: allocating block by block would be slow.
/// REQUIRES: the device is settled.
RunLimits ReadRunLimits(const std::optional<std::string>& limit, bool limits_network,
                        Bytes peak_bytes, const TrainingDevice& device);

/// While a kernel runs, its workspace keeps as much else away: where not everything fits, kernels
/// are preferred from here on whose workspaces are within WorkspaceShare() of the arena. Returns
/// whether some that were prepared before take more.
bool WeighWorkspaces(const RunLimits& limits, Bytes peak_bytes, TrainingDevice* device);

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/run_limits.h"

#include "cli/plan_input.h"

namespace plimsoll::cli {

RunLimits ReadRunLimits(const std::optional<std::string>& limit, bool limits_network,
                        Bytes peak_bytes, const TrainingDevice& device) {
  RunLimits limits;
  if (!limit) {
    const Bytes arena_bytes = peak_bytes + peak_bytes / 32 + (Bytes{16} << 20);
    limits.limit_bytes = limits.arena_bytes = device.is_gpu ? arena_bytes : 0;
    return limits;
  }
  limits.limit_bytes = limits.arena_bytes = ParseLimit("--limit", *limit, peak_bytes);
  if (!device.is_gpu) return limits;
  if (limit->ends_with('%') || limits_network) {
    limits.limit_bytes += device.overhead_bytes;
  } else {
    limits.arena_bytes -= device.overhead_bytes;
  }
  return limits;
}

bool WeighWorkspaces(const RunLimits& limits, Bytes peak_bytes, TrainingDevice* device) {
  if (peak_bytes <= limits.arena_bytes) return false;
  return device->library->PreferWorkspaces(WorkspaceShare(limits.arena_bytes));
}

}  // namespace plimsoll::cli

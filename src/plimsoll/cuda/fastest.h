// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/cuda/handles.h"

namespace plimsoll::cuda {

/// Times that differ less than that are the same.
inline constexpr double kSameTime = 1.03;

/// Times plans, by a function that runs one, and returns the fastest of those that need no more
/// workspace than is preferred, or no more than any other: of those that are as fast, the one that
/// needs the least; null if none can be run. Each learns its time.
template <typename Plan, typename Run>
std::shared_ptr<Plan> FastestOf(const std::vector<std::shared_ptr<Plan>>& plans, Handles& handles,
                                const Run& run) {
  std::optional<Nanoseconds> fastest;
  Bytes least_bytes = kMaxBytes;
  for (const auto& plan : plans) {
    const auto time = handles.Time([&] { run(*plan); }, fastest);
    plan->expected_ns = time.value_or(0);
    if (!time) continue;
    if (!fastest || *time < *fastest) fastest = time;
    least_bytes = std::min(least_bytes, plan->workspace_bytes());
  }
  const Bytes most_bytes = std::max(least_bytes, handles.preferred_workspace_bytes());
  const auto is_taken = [most_bytes](const Plan& plan) {
    return plan.expected_ns > 0 && plan.workspace_bytes() <= most_bytes;
  };
  Nanoseconds best = 0;
  for (const auto& plan : plans) {
    if (is_taken(*plan) && (best == 0 || plan->expected_ns < best)) best = plan->expected_ns;
  }
  std::shared_ptr<Plan> chosen;
  for (const auto& plan : plans) {
    const bool fast = is_taken(*plan) && static_cast<double>(plan->expected_ns) <=
                                             kSameTime * static_cast<double>(best);
    if (fast && (chosen == nullptr || plan->workspace_bytes() < chosen->workspace_bytes())) {
      chosen = plan;
    }
  }
  return chosen;
}

}  // namespace plimsoll::cuda

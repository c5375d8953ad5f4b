// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/cuda/handles.h"

namespace plimsoll::cuda {

/// Times that differ less than that are the same.
inline constexpr double kSameTime = 1.03;

/// Times plans, by a function that runs one, and returns the fastest: of those that are as fast,
/// the one that needs the least workspace; null if none can be run. Each learns its time.
template <typename Plan, typename Run>
std::shared_ptr<Plan> FastestOf(const std::vector<std::shared_ptr<Plan>>& plans, Handles& handles,
                                const Run& run) {
  std::optional<Nanoseconds> best;
  for (const auto& plan : plans) {
    const auto time = handles.Time([&] { run(*plan); }, best);
    plan->expected_ns = time.value_or(0);
    if (time && (!best || *time < *best)) best = time;
  }
  std::shared_ptr<Plan> chosen;
  for (const auto& plan : plans) {
    const bool fast =
        best && plan->expected_ns > 0 &&
        static_cast<double>(plan->expected_ns) <= kSameTime * static_cast<double>(*best);
    if (fast && (chosen == nullptr || plan->workspace_bytes() < chosen->workspace_bytes())) {
      chosen = plan;
    }
  }
  return chosen;
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/bytes.h"

namespace plimsoll::cuda {

/// Times that differ less than that are the same.
inline constexpr double kSameTime = 1.03;

/// Times plans and returns the fastest: of those that are as fast, the one that needs the least
/// workspace; null if none can be run. `time` takes a plan and the best time so far, and answers
/// nothing for what cannot be run, or is much slower. Each plan learns its time.
template <typename Plan, typename Time>
std::shared_ptr<Plan> FastestOf(const std::vector<std::shared_ptr<Plan>>& plans, const Time& time) {
  std::optional<Nanoseconds> best;
  for (const auto& plan : plans) {
    const std::optional<Nanoseconds> took = time(*plan, best);
    plan->expected_ns = took.value_or(0);
    if (took && (!best || *took < *best)) best = took;
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

/// The same of those that need no more workspace than is preferred; if none of them can be run, the
/// one that needs the least.
template <typename Plan, typename Time>
std::shared_ptr<Plan> FastestWithin(Bytes preferred_bytes, std::vector<std::shared_ptr<Plan>> plans,
                                    const Time& time) {
  const auto others = std::stable_partition(plans.begin(), plans.end(), [&](const auto& plan) {
    return plan->workspace_bytes() <= preferred_bytes;
  });
  if (auto chosen = FastestOf<Plan>({plans.begin(), others}, time)) return chosen;
  std::stable_sort(others, plans.end(), [](const auto& a, const auto& b) {
    return a->workspace_bytes() < b->workspace_bytes();
  });
  for (auto plan = others; plan != plans.end(); ++plan) {
    if (auto chosen = FastestOf<Plan>({*plan}, time)) return chosen;
  }
  return nullptr;
}

}  // namespace plimsoll::cuda

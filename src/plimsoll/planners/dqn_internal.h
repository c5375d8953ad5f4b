// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// What came of an episode of training.
struct DqnEpisode {
  std::int64_t number = 0;  ///< From 1.
  double time_ns = 0;       ///< Of its rehearsed iteration; infinite if it failed.
  double best_ns = 0;       ///< Of the best plan so far; infinite if nothing fits yet.
  std::int64_t evaluations = 0;
  double share = 0;  ///< Of random actions.
};

/// Trains, and returns the best plan that any episode has found; a misfit if none fits. `observe`
/// hears of every episode.
Attempt TrainDqn(const Question& question, bool may_remove,
                 const std::function<void(const DqnEpisode&)>& observe = {});

}  // namespace plimsoll::planners

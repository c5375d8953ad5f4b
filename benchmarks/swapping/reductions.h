// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "plimsoll/planners/autoswap.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {

/// AutoSwap as in paper 001, where only the load is limited: nothing is placed, sizes are as asked
/// for, and overheads are predicted by a rehearsal of the iteration.
class LoadSwapper {
 public:
  /// Both must outlive it.
  LoadSwapper(const Workload& workload, const plan::Machine& machine);

  /// Returns the overhead, as a fraction, of what one score chooses for a limit of the load;
  /// nothing if the load cannot be held.
  std::optional<double> Overhead(planners::Score score, Bytes limit_bytes) const;

  /// Returns the smallest overhead of the four scores and of kMixes random mixtures of them, each
  /// choosing for some load below the limit, in the place of the paper's 30 to 40 steps of Bayesian
  /// optimisation.
  std::optional<double> BestOverhead(Bytes limit_bytes) const;

  /// Returns the smallest limit, in steps of one percent of the peak load, at which BestOverhead()
  /// is none.
  Bytes SmallestLimit() const;

  static constexpr int kMixes = 40;

 private:
  using Weights = std::array<double, planners::kScores>;
  struct Mix {
    Weights weights{};
    double chosen_for = 1;  ///< Of the limit, the load for which gaps are chosen.
  };

  std::optional<double> Overhead(const Mix& mix, Bytes limit_bytes) const;

  const Workload& workload_;
  const plan::Machine& machine_;
  const planners::PlannerOptions options_;
  const planners::Question question_;
  planners::ScoredGaps scored_;  ///< Each score with mean 0 and variance 1.
  std::vector<Mix> mixes_;       ///< The four scores alone first.
};

}  // namespace plimsoll::swapping

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/planners/choices_internal.h"

/// The forward phase as baselines that checkpoint see it: feature maps, and where the phase can be
/// cut into segments.
namespace plimsoll::planners {

/// A variable that forward makes and that lies idle from its last use there to its first behind it.
struct FeatureMap {
  plan::VariableIndex variable = 0;
  std::size_t gap = 0;      ///< The stretch in which it lies idle.
  plan::OpIndex first = 0;  ///< The op that makes it,
  plan::OpIndex made = 0;   ///< the last one that changes it, in forward,
  plan::OpIndex last = 0;   ///< and the last one that uses it there.
  Bytes size_bytes = 0;
  bool droppable = false;
};

/// In the order in which they are made.
std::vector<FeatureMap> ListFeatureMaps(const Question& question, const JointEvaluator& evaluator);

/// A place behind a forward op at which everything that later forward ops need of what has been
/// made so far is in its final state and there for backward. If that is kept, nothing on one side
/// of the cut has to run again for the sake of the other.
///
///     conv ─▶ norm ─▶ relu ─┬─▶ conv ─▶ norm ─▶ add ─▶
///                         │ └──────────────────▲  │
///                       a cut, across it one map  another
struct Cut {
  plan::OpIndex after = 0;
  std::vector<std::size_t> across;  ///< Indices of feature maps.
  std::size_t count = 0;            ///< Of these, and of variables that are never idle for long.
  Bytes bytes = 0;
};

/// In order. Variables below the least size of the options are looked through.
std::vector<Cut> ListCuts(const Question& question, const std::vector<FeatureMap>& maps);

/// Drops all feature maps made up to and with `last_dropped` that can be dropped and do not lie
/// across any of the cuts.
Offer DropBetween(const std::vector<const Cut*>& cuts, plan::OpIndex last_dropped,
                  const std::vector<FeatureMap>& maps, const JointEvaluator& evaluator);

}  // namespace plimsoll::planners

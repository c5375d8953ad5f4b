// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/learn/operation_graph.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {

/// The gaps that the agent of paper 000 decides about.
struct DqnCandidates {
  std::vector<learn::Candidate> candidates;
  std::vector<std::size_t> gaps;  ///< Per candidate: its gap, by JointEvaluator::gaps().
};

/// Chooses them: gaps that span a load near or above the limit, of variables that are not small, as
/// long as these can bring the load well under it. Swaps must last long enough to be of use;
/// removals are from the forward phase to what is behind it (section 4.5).
DqnCandidates ChooseDqnCandidates(const Question& question, const JointEvaluator& evaluator,
                                  bool may_remove);

}  // namespace plimsoll::planners

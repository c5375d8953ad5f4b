// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/chain/planner.h"
#include "plimsoll/planners/chain_view.h"
#include "plimsoll/planners/joint_state_internal.h"
#include "plimsoll/planners/planner.h"

/// Plans of iterations from the solution of the chain that they are, near enough. A place to start
/// from for `joint`: what its search from nothing finds late or not at all, such as blocks within
/// blocks, is what chains are solved by.
namespace plimsoll::planners {

/// What the solution of a chain says about an iteration.
struct ChainStart {
  plan::Rewritten rewritten;     ///< In the order of the solution.
  plan::Decision swaps;          ///< Gaps of the rewritten problem.
  Bytes load_bytes = 0;          ///< The highest load, with everything out that can be out.
  Nanoseconds predicted_ns = 0;  ///< Of the rehearsed iteration.
  /// For each of the question's gaps (plan::ListGapsAndMoments()): dropped if its variable has been
  /// rebuilt when the gap ends. Rewriting by these alone rebuilds less often, and holds more.
  std::vector<Choice> choices;
};

/// Solves the chain by a planner of chains for a limit of the load and says what that means for the
/// iteration. Nothing if there is no solution, or it cannot be rewritten or rehearsed within the
/// limit.
std::optional<ChainStart> StartAsChain(const ChainView& view, const Question& question,
                                       chain::PlanFunction planner, Bytes load_limit_bytes);

/// Makes a plan: of starts by pofo and rotor the one that is predicted to be fastest and can be
/// placed; for ever lower loads if none can. Nothing if the problem is no chain, or no plan fits.
/// Takes as long as pofo takes twice, and more only if it must.
std::optional<Attempt> PlanAsChain(const Question& question);

}  // namespace plimsoll::planners

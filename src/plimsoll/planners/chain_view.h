// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plimsoll/chain/order.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::planners {

/// A training iteration seen as a chain. Forward is cut wherever a single variable leads from what
/// was run to what is still to run: between the blocks of a ResNet, say, or between any two layers
/// of a VGG. Each piece is a stage; the variable that leads on is its output, and what else it made
/// that backward reads is its inside. Backward is cut where ops begin to read the inside, the input
/// or the weights of the stage below.
///
///     prologue │ forward 0 │ forward 1 │ ... │ backward 1 │ backward 0 │ epilogue
///             x_0         x_1         x_2
///
/// Variables too small to matter may lead on as well.
///
/// Whatever else is on the device counts as temporaries and gradients of the stage at which it is,
/// or as `base_bytes` if it is there all the time. So the chain says what the iteration would need
/// in another order, but for details: whoever makes plans of it looks at the real load.
struct ChainView {
  /// Ops [begin, end) of the problem.
  struct Stretch {
    plan::OpIndex begin = 0;
    plan::OpIndex end = 0;
  };

  chain::Chain chain;
  Bytes base_bytes = 0;
  std::vector<Stretch> forward;   ///< By stage, one behind the other.
  std::vector<Stretch> backward;  ///< By stage; that of stage i begins where that of i + 1 ends.
  /// By stage: those of its ops that make its output and its inside; the rest need not run again.
  std::vector<std::vector<plan::OpIndex>> again;
  std::vector<plan::VariableIndex> outputs;               ///< x_0 .. x_{n-1}; x_0 may be -1: none.
  std::vector<std::vector<plan::VariableIndex>> insides;  ///< By stage.

  /// Returns the ops of the problem in the order of a chain's ops.
  std::vector<plan::OpIndex> RowOf(const plan::Problem& problem, const chain::Order& order) const;
};

/// Returns the problem as a chain of at most `most_stages` stages, sizes rounded up to the
/// alignment. Nothing if it has no phases, no two stages, or a stage but the last that cannot run
/// again. REQUIRES: every variable has one instance.
std::optional<ChainView> ViewAsChain(const plan::Problem& problem, Bytes alignment,
                                     std::size_t most_stages = 120);

}  // namespace plimsoll::planners

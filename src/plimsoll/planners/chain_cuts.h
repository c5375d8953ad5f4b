// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::planners {

/// Where the forward phase of an iteration hangs together by a single variable.
struct ForwardCuts {
  struct Cut {
    plan::OpIndex after = 0;  ///< The last op before it.
    /// All that ops before it make and ops of forward behind it read; nobody writes it any more.
    plan::VariableIndex variable = 0;
  };
  plan::OpIndex begin = 0;  ///< Forward is [begin, turn),
  plan::OpIndex turn = 0;   ///< backward [turn, end), with other ops between them maybe.
  plan::OpIndex end = 0;
  std::vector<Cut> cuts;  ///< In order, each at another variable.
};

/// Finds the cuts, at most `most`, which leave out those around which least is made for backward.
/// Variables below `small_bytes` may lead on beside the one. Nothing if the iteration has no phases
/// or fewer than two cuts. `accesses` are those of the problem.
std::optional<ForwardCuts> FindCuts(const plan::Problem& problem,
                                    const std::vector<std::vector<plan::Access>>& accesses,
                                    Bytes small_bytes, std::size_t most);

}  // namespace plimsoll::planners

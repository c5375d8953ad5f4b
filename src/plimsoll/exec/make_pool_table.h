// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/exec/pool_table.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/plan/to_placement.h"

namespace plimsoll::exec {

/// Turns a placed iteration into the table of a Pool. A variable with several live instances takes
/// its places in turn, so the table has as many iterations as it takes for all of them to come
/// around; without such variables it has one.
///
/// `offsets` are those of `placement.problem`, as a planner made them.
/// REQUIRES: the problem is cyclic; the offsets are valid.
/// Throws Error if the instances take more than 1000 iterations to come around.
PoolTable MakePoolTable(const plan::Problem& problem, const plan::PlacementProblem& placement,
                        const std::vector<Bytes>& offsets);

}  // namespace plimsoll::exec

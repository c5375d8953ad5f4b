// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/exec/pool_table.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/plan/to_placement.h"

namespace plimsoll::exec {

/// Turns a placed iteration into the table of a Pool; its cycle spans as many iterations as the
/// placement does.
///
/// `offsets` are those of `placement.problem`, as a planner made them.
/// REQUIRES: the problem is cyclic; the offsets are valid.
PoolTable MakePoolTable(const plan::Problem& problem, const plan::PlacementProblem& placement,
                        const std::vector<Bytes>& offsets);

}  // namespace plimsoll::exec

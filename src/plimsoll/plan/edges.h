// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Draws the wait edges of a plan whose residencies have their addresses:
///   - a copy out waits for the last op that writes its residency, or for the iteration before if
///     that wrote it;
///   - a copy in waits for the copy out that saved its variable;
///   - the first op that touches a residency waits for the copy that fills it;
///   - where one residency follows another at the same bytes, its first command waits for the last
///     one of the other, unless both are ops, which run in order anyway.
/// Queues are in order, so a command waits for at most one command of each queue: the latest.
void DrawEdges(Plan* plan);

}  // namespace plimsoll::plan

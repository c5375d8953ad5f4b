// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/plan/rewrite.h"

namespace plimsoll::plan {

/// Rewrites a problem so that its ops run as a row says, in which some come again:
///
///     row   F0 F1 F2 F3  B3  F1 F2  B2  B1  B0
///
/// The first time that an op comes it is the recorded op, and these come in program order; from
/// then on it is a replay. Each op finds a variable as it was made last. What a replay makes from
/// its malloc on is a new variable; the one that it takes the place of ends behind its last use
/// before, so that memory follows from the row alone. What has no successor lives as recorded, or
/// longer if replays still use it.
///
/// Nothing if some op does not find what it found when it was recorded, or a replay is of an op
/// that must not run again, or touches what is of another iteration. gap_replay_ns stays empty.
/// REQUIRES: every variable has one instance. O(n log n) in ops and operands of the row.
std::optional<Rewritten> RewriteRow(const Problem& problem, const std::vector<OpIndex>& row);

}  // namespace plimsoll::plan

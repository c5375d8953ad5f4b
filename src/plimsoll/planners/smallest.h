// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/planners/planner.h"

/// How far down limits go at which there is a plan at all.
namespace plimsoll::planners {

/// Makes the plan with the smallest footprint that swapping alone is known to reach: whatever lies
/// across the highest load is swapped, however small or short, until nothing lowers it any more.
Attempt MakeSmallest(const Question& question);

/// Returns the footprint of that plan, whatever the options say of limits.
Bytes SmallestBySwapping(const plan::Problem& problem, const plan::Machine& machine,
                         const PlannerOptions& options);

/// Returns the smallest limit at which a plan was found: by swapping, or below that by `joint`,
/// which also recomputes. Looks between what the largest op needs by itself, which no plan can do
/// without, and what swapping reaches, by halves, with a first plan each: `joint` may well find
/// something a little lower if it searches for long. Equal questions have equal answers.
///
///      largest op                       SmallestLimit()   by swapping
///     ─────┼──────────────── ? ───────────────┼──────────────┼──────── limits
///          no plan                             joint          everything swapped
Bytes SmallestLimit(const plan::Problem& problem, const plan::Machine& machine,
                    const PlannerOptions& options);

}  // namespace plimsoll::planners

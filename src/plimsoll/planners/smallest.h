// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "plimsoll/planners/planner.h"

/// How far down limits go at which there is a plan at all.
namespace plimsoll::planners {

/// Makes the plan with the smallest footprint that swapping alone is known to reach: whatever lies
/// across the highest load is swapped, however small or short, until nothing lowers it any more.
Attempt MakeSmallest(const Question& question);

/// Returns the footprint of that plan, whatever the options say of limits.
Bytes SmallestBySwapping(const plan::Problem& problem, const plan::Machine& machine,
                         const PlannerOptions& options);

/// Makes the plan that `joint` has at once: in a short iteration a first one by all that it tries,
/// in others of the start that gets lowest. Nothing if there is none, if no more than that was
/// asked for, or in iterations of more than 50,000 ops. Equal questions have equal answers,
/// whatever the budget is.
std::optional<Attempt> MakeAtOnce(const Question& question);

/// Returns the smallest limit at which a plan was found: by swapping, or below that at once by
/// `joint`, which also recomputes; so `joint` has a plan there. Looks, by halves, between what
/// swapping reaches and what the largest op needs by itself, which no plan can do without. A long
/// search may find something a little lower. Equal questions have equal answers.
///
///      largest op                       SmallestLimit()   by swapping
///     ─────┼──────────────── ? ───────────────┼──────────────┼──────── limits
///          no plan                             joint          everything swapped
Bytes SmallestLimit(const plan::Problem& problem, const plan::Machine& machine,
                    const PlannerOptions& options);

}  // namespace plimsoll::planners

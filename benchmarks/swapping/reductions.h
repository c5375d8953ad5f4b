// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "plimsoll/planners/planner.h"
#include "swapping/workload.h"

/// Swapping as in paper 001, where the load is limited: nothing is placed.
namespace plimsoll::swapping {

/// Returns the predicted overhead, as a fraction, when what the planner decides for this limit of
/// the load is carried out and only the load is held within it. Sizes are as asked for. Nothing if
/// the load cannot be held. REQUIRES: the planner decides for a limit (Planner::decide).
std::optional<double> LoadOverhead(const planners::Planner& planner, const Workload& workload,
                                   const plan::Machine& machine, Bytes load_limit_bytes);

/// The smallest of the four scores of AutoSwap.
std::optional<double> BestLoadOverhead(const Workload& workload, const plan::Machine& machine,
                                       Bytes load_limit_bytes);

/// Returns the smallest limit of the load, in steps of one percent of the peak load, at which one
/// of the four scores has no overhead.
Bytes SmallestLoadLimit(const Workload& workload, const plan::Machine& machine);

}  // namespace plimsoll::swapping

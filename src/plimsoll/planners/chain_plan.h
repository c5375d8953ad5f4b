// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>

#include "plimsoll/chain/planner.h"
#include "plimsoll/plan/schedule.h"

/// From a chain's schedule (paper 002) to a plan that the judge of plans proves and the simulator
/// of plans, or an executor, runs.
///
/// The plan's problem is one iteration of chain::ToTrace(), not cyclic: a chain's schedule starts
/// cold and says nothing about what an iteration leaves to the next one. Order is the schedule's
/// own, times are not: a plan has none.
///
///   - What is recomputed is a rewriting of the problem (plan::RewriteRow()), with the schedule's
///     order as its row.
///   - Both copy queues keep the order of the link; an activation is a copy of its output and one
///     of its inside, in a row, unless one of them stays or is nothing. A copy out waits for the op
///     that made its activation only, as in paper 002; the bytes are free once the op that reads it
///     has ended too.
///   - One half-duplex link: a copy waits for the one before it, whichever way that went. On a
///     machine with the chain's bandwidth both ways the plan so behaves as the chain does.
///   - Residencies are placed by `tight` on the schedule's own order of beginnings and ends, which
///     is finer than positions of the program: what leaves during an op may make room for what
///     comes in during the same op. Where one follows another at the same bytes, it waits for it.
///
/// Every edge leads from something that ends in the schedule before the other begins. So, copies
/// taking as long as the chain says, no command starts later than in the schedule.
namespace plimsoll::planners {

struct ChainPlanOptions {
  Bytes alignment = kDefaultAlignment;
  Bytes host_limit_bytes = kMaxBytes;
  bool half_duplex = true;  ///< False: copies out and in may run at once.
  double place_seconds = 1;
  std::uint64_t seed = 1;
};

/// The link of a chain's model as a machine: its bandwidth each way, no latency.
plan::Machine ChainMachine(const chain::Model& model);

/// Returns a plan of the schedule, or what its placement needs: the schedule keeps its load under
/// the limit, a plan its footprint, with alignment and fragmentation in it.
/// REQUIRES: the schedule is valid for the question (chain::FindViolations).
std::variant<plan::Plan, plan::Misfit> ToPlan(const chain::Question& question,
                                              const chain::Schedule& schedule,
                                              const ChainPlanOptions& options);

/// Asks the planner and makes a plan of its schedule; where fragmentation pushes the footprint over
/// the limit, asks again for a lower load. A misfit names the smallest footprint that was found, or
/// the smallest limit of the chain if no schedule was.
std::variant<plan::Plan, plan::Misfit> PlanChain(const chain::Planner& planner,
                                                 const chain::Question& question,
                                                 const chain::PlannerOptions& planner_options,
                                                 const ChainPlanOptions& options);

}  // namespace plimsoll::planners

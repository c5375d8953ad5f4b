// SPDX-License-Identifier: Apache-2.0
#include "swapping/reductions.h"

#include <algorithm>

#include "plimsoll/plan/schedule.h"

namespace plimsoll::swapping {

std::optional<double> LoadOverhead(const planners::Planner& planner, const Workload& workload,
                                   const plan::Machine& machine, Bytes load_limit_bytes) {
  planners::PlannerOptions options;
  options.limit_bytes = load_limit_bytes;
  const planners::Question question{workload.problem, machine, options};
  plan::ScheduleOptions schedule;
  schedule.limit_bytes = load_limit_bytes;
  schedule.alignment = 1;
  const auto predicted = plan::PredictIteration(
      workload.problem, planner.decide(question)(load_limit_bytes), machine, schedule);
  if (!predicted) return std::nullopt;
  return static_cast<double>(*predicted) / static_cast<double>(workload.problem.iteration_ns()) - 1;
}

std::optional<double> BestLoadOverhead(const Workload& workload, const plan::Machine& machine,
                                       Bytes load_limit_bytes) {
  std::optional<double> best;
  for (const char* name : {"autoswap-doa", "autoswap-aoa", "autoswap-wdoa", "autoswap-swdoa"}) {
    const auto overhead =
        LoadOverhead(*planners::FindPlanner(name), workload, machine, load_limit_bytes);
    if (overhead && (!best || *overhead < *best)) best = overhead;
  }
  return best;
}

Bytes SmallestLoadLimit(const Workload& workload, const plan::Machine& machine) {
  Bytes smallest = workload.peak_bytes;
  for (int percent = 99; percent > 0; --percent) {
    const Bytes limit = PercentOf(workload.peak_bytes, percent);
    const std::optional<double> overhead = BestLoadOverhead(workload, machine, limit);
    if (overhead && *overhead <= 0) smallest = limit;
  }
  return smallest;
}

}  // namespace plimsoll::swapping

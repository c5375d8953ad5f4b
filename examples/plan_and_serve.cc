// SPDX-License-Identifier: Apache-2.0
// From a trace to a running pool, in a page: find the iteration, place its variables, have the
// placement judged, and serve a training loop from it.
#include <cstdio>
#include <map>
#include <vector>

#include "plimsoll/exec/make_pool_table.h"
#include "plimsoll/exec/pool.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/trace/generate.h"

using namespace plimsoll;  // An example may.

int main() {
  // 1. A trace. A real one comes from trace::ReadTrace("resnet50.trace.gz").
  trace::GenerateOptions network;
  network.layers = 8;
  const trace::Trace trace = trace::GenerateTrace(network);

  // 2. One steady iteration, as a cycle.
  const plan::Problem problem = plan::MakeProblem(trace);
  const Bytes peak = plan::ProfileLoad(problem).peak_bytes;
  std::printf("%lld iterations of %lld events; peak load %s\n",
              static_cast<long long>(problem.iterations), static_cast<long long>(problem.period),
              FormatBytes(peak).c_str());

  // 3. An offset for every variable, and a second opinion on it.
  const plan::PlacementProblem placement = plan::ToPlacement(problem);
  const place::Placement placed = place::PlaceTight(placement.problem, {});
  if (!place::FindViolations(placement.problem, placed.offsets).empty()) return 1;
  std::printf("footprint %s, bound %s\n", FormatBytes(placed.footprint_bytes).c_str(),
              FormatBytes(placed.lower_bound_bytes).c_str());

  // 4. An arena of just that size serves every later iteration by table look-up.
  std::vector<char> arena(static_cast<std::size_t>(placed.footprint_bytes));
  exec::Pool pool(arena.data(), placed.footprint_bytes,
                  exec::MakePoolTable(problem, placement, placed.offsets));
  for (int iteration = 0; iteration < 3; ++iteration) {
    std::map<std::int32_t, void*> blocks;
    for (plan::Position p = 0; p < problem.period; ++p) {
      const auto event = trace.events[static_cast<std::size_t>(problem.first_event + p)];
      if (event.kind == trace::EventKind::kMalloc) {
        const auto& variable = trace.variables[static_cast<std::size_t>(event.index)];
        blocks[event.index] = pool.Malloc(variable.size_bytes);
      } else if (event.kind == trace::EventKind::kFree) {
        pool.Free(blocks[event.index]);
      }
    }
  }
  const exec::PoolStats stats = pool.stats();
  std::printf("%lld calls served from the plan, %lld on demand\n",
              static_cast<long long>(stats.planned_calls),
              static_cast<long long>(stats.on_demand_calls));
  return stats.on_demand_calls == 0 ? 0 : 1;
}

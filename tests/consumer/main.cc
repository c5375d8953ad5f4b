// SPDX-License-Identifier: Apache-2.0
// Generates a trace, places its iteration and serves it from a pool, through installed headers
// only.
#include <cstdio>

#include "plimsoll/exec/make_pool_table.h"
#include "plimsoll/exec/pool.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/trace/generate.h"

int main() {
  using namespace plimsoll;
  const plan::Problem problem = plan::MakeProblem(trace::GenerateTrace({}));
  const plan::PlacementProblem placement = plan::ToPlacement(problem);
  const place::Placement placed = place::PlaceTight(placement.problem, {});
  if (!place::FindViolations(placement.problem, placed.offsets).empty()) return 1;
  exec::PoolTable table = exec::MakePoolTable(problem, placement, placed.offsets);
  const exec::PoolStep first = table.steps.front();
  exec::Pool pool(nullptr, placed.footprint_bytes, std::move(table));
  const void* block = pool.Malloc(first.size_bytes);
  std::printf("%zu variables in %lld bytes, the first one at %p\n", problem.variables.size(),
              static_cast<long long>(placed.footprint_bytes), block);
  return pool.stats().in_step ? 0 : 1;
}

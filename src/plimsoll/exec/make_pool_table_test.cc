// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/make_pool_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "plimsoll/exec/pool.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::exec {
namespace {

/// An iteration of ten positions with a weight and whatever else.
plan::Problem Iteration(std::vector<plan::Variable> variables) {
  plan::Problem problem;
  problem.period = 10;
  plan::Variable weight;
  weight.id = 1;
  weight.size_bytes = 512;
  weight.end = 10;
  weight.kind = plan::VariableKind::kPersistent;
  problem.variables.push_back(weight);
  for (plan::Variable& variable : variables) problem.variables.push_back(variable);
  return problem;
}

plan::Variable Live(std::int64_t id, Bytes size, plan::Position begin, plan::Position end) {
  plan::Variable variable;
  variable.id = id;
  variable.size_bytes = size;
  variable.begin = begin;
  variable.end = end;
  variable.instances = static_cast<std::int32_t>((end - begin + 9) / 10);
  return variable;
}

PoolTable PlaceAndMake(const plan::Problem& problem) {
  const plan::PlacementProblem placement = plan::ToPlacement(problem);
  const std::vector<Bytes> offsets = place::PlaceTight(placement.problem, {}).offsets;
  EXPECT_TRUE(place::FindViolations(placement.problem, offsets).empty());
  PoolTable table = MakePoolTable(problem, placement, offsets);
  EXPECT_EQ(FindFaults(table), std::vector<std::string>{});
  return table;
}

TEST(MakePoolTableTest, ListsCallsInTheOrderOfTheIteration) {
  const PoolTable table = PlaceAndMake(Iteration({Live(2, 100, 1, 7), Live(3, 50, 3, 5)}));
  ASSERT_EQ(table.steps.size(), 4U);
  EXPECT_EQ(table.steps[0].size_bytes, 100);
  EXPECT_EQ(table.steps[1].size_bytes, 50);
  EXPECT_EQ(table.steps[2].kind, PoolStep::Kind::kFree);
  EXPECT_EQ(table.steps[2].size_bytes, 50);
  EXPECT_EQ(table.steps[3].size_bytes, 100);
  ASSERT_EQ(table.initial.size(), 1U);
  EXPECT_EQ(table.initial[0].variable, 1);
}

TEST(MakePoolTableTest, BeginsWithWhatIsCarriedOver) {
  const PoolTable table = PlaceAndMake(Iteration({Live(2, 100, 8, 12), Live(3, 70, 4, 6)}));
  EXPECT_EQ(table.steps.size(), 4U);
  ASSERT_EQ(table.initial.size(), 2U);
  EXPECT_EQ(table.initial[1].variable, 2);
  EXPECT_EQ(table.steps[0].kind, PoolStep::Kind::kFree) << "the instance of the iteration before";
}

TEST(MakePoolTableTest, BeginsWithWhatTheFirstCallFrees) {
  // Freed by the first event of the next iteration, with and without bytes.
  const PoolTable table = PlaceAndMake(Iteration({Live(2, 0, 8, 10), Live(3, 70, 4, 10)}));
  EXPECT_EQ(table.initial.size(), 3U);
}

TEST(MakePoolTableTest, CarriesTheAlignmentAlong) {
  const plan::Problem problem = Iteration({Live(2, 100, 1, 7)});
  const plan::PlacementProblem placement = plan::ToPlacement(problem, 4096);
  const std::vector<Bytes> offsets = place::PlaceTight(placement.problem, {}).offsets;
  PoolTable table = MakePoolTable(problem, placement, offsets);
  EXPECT_EQ(table.alignment, 4096);
  Pool pool(nullptr, Bytes{1} << 20, std::move(table));
  for (int stray = 0; stray < 3; ++stray) {  // Not in the plan: served on demand.
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.Malloc(77)) % 4096, 0U);
  }
}

TEST(MakePoolTableTest, UnrollsVariablesThatRotate) {
  // Up to three instances are live at once: after three iterations all of them have come around.
  const PoolTable table = PlaceAndMake(Iteration({Live(2, 100, 5, 18), Live(3, 70, 1, 29)}));
  EXPECT_EQ(table.steps.size(), 3U * 4U);
  EXPECT_EQ(table.initial.size(), 1U + 1U + 2U);
}

/// Replays the mallocs and frees of the steady iteration, twice, through a pool made from it, and
/// expects every call to be served from the table.
/// REQUIRES: nothing but persistent variables lives around the end of the iteration.
void ReplayThroughPool(const trace::Trace& trace) {
  const plan::Problem problem = plan::MakeProblem(trace);
  ASSERT_TRUE(problem.cyclic);
  const PoolTable table = PlaceAndMake(problem);
  Pool pool(nullptr, table.footprint_bytes, table);
  const auto begin = static_cast<std::size_t>(problem.first_event);
  for (int round = 0; round < 2; ++round) {
    std::map<std::int32_t, void*> addresses;
    for (std::size_t e = begin; e < begin + static_cast<std::size_t>(problem.period); ++e) {
      const trace::Event& event = trace.events[e];
      if (event.kind == trace::EventKind::kMalloc) {
        const Bytes size = trace.variables[static_cast<std::size_t>(event.index)].size_bytes;
        addresses[event.index] = pool.Malloc(size);
      } else if (event.kind == trace::EventKind::kFree) {
        pool.Free(addresses.at(event.index));
      }
    }
  }
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.on_demand_calls, 0);
  EXPECT_EQ(stats.drifts, 0);
  EXPECT_TRUE(stats.in_step);
}

TEST(MakePoolTableTest, ServesRecordedTrainingFromTheTableAlone) {
  for (const char* name : {"vgg16_cifar_b100", "resnet50_b64", "vit_b_16_b32"}) {
    SCOPED_TRACE(name);
    ReplayThroughPool(
        trace::ReadTrace(std::string(PLIMSOLL_DATA_DIR "/traces/") + name + ".trace.gz"));
  }
}

TEST(MakePoolTableTest, RotatesTheCentroidsOfKMeans) {
  const plan::Problem problem =
      plan::MakeProblem(trace::ReadTrace(PLIMSOLL_DATA_DIR "/traces/kmeans_1m.trace.gz"));
  const PoolTable table = PlaceAndMake(problem);
  EXPECT_EQ(table.steps.size(), 2U * 28U) << "two iterations of fourteen mallocs and frees";
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/to_placement.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll::plan {
namespace {

/// Places the problem and checks the placement; returns the footprint.
Bytes PlaceTightly(const place::Problem& problem, double seconds) {
  const place::Placement placement = place::PlaceTight(problem, {.time_budget_seconds = seconds});
  for (const place::Violation& violation :
       place::FindViolations(problem, placement.offsets, placement.footprint_bytes)) {
    ADD_FAILURE() << violation.message;
  }
  return placement.footprint_bytes;
}

/// A buffer that is expected.
struct Expected {
  std::string id;
  Bytes size_bytes;
  place::Interval lifetime;
  std::vector<place::Interval> gaps{};
};

void ExpectBuffers(const PlacementProblem& placement, const std::vector<Expected>& expected) {
  const std::vector<place::Buffer>& buffers = placement.problem.buffers;
  ASSERT_EQ(buffers.size(), expected.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    EXPECT_EQ(buffers[b].id, expected[b].id);
    EXPECT_EQ(buffers[b].size_bytes, expected[b].size_bytes) << buffers[b].id;
    EXPECT_EQ(buffers[b].lifetime, expected[b].lifetime) << buffers[b].id;
    EXPECT_EQ(buffers[b].gaps, expected[b].gaps) << buffers[b].id;
    EXPECT_EQ(buffers[b].alignment, 64);
    EXPECT_FALSE(buffers[b].fixed_offset);
  }
  EXPECT_NO_THROW(place::CheckWellFormed(placement.problem, "test"));
}

/// A weight, an activation, two that live around the end, and an empty one.
Problem SomeLives() {
  Problem problem;
  problem.period = 10;
  problem.variables = {
      {.id = 40, .size_bytes = 100, .begin = 0, .end = 10, .kind = VariableKind::kPersistent},
      {.id = 41, .size_bytes = 20, .begin = 2, .end = 7},
      {.id = 42, .size_bytes = 30, .begin = 6, .end = 12},
      {.id = 43, .size_bytes = 5, .begin = 4, .end = 14},
      {.id = 44, .size_bytes = 0, .begin = 9, .end = 10},
  };
  return problem;
}

TEST(ToPlacementTest, TurnsLifetimesIntoRectangles) {
  const PlacementProblem placement = ToPlacement(SomeLives(), 64);
  EXPECT_EQ(placement.iterations, 1);
  EXPECT_EQ(placement.first_buffer, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  // Only what lives around the end has a gap, and only if there is any time left for one.
  ExpectBuffers(placement, {{"40", 100, {0, 10}},
                            {"41", 20, {2, 7}},
                            {"42", 30, {0, 10}, {{2, 6}}},
                            {"43", 5, {0, 10}},
                            {"44", 0, {9, 10}}});
}

TEST(ToPlacementTest, SpansAsManyIterationsAsThereAreInstances) {
  Problem problem = SomeLives();
  problem.variables.push_back({.id = 45, .size_bytes = 1, .begin = 5, .end = 18, .instances = 2});
  const PlacementProblem placement = ToPlacement(problem, 64);
  EXPECT_EQ(placement.iterations, 2);
  EXPECT_EQ(placement.first_buffer, (std::vector<std::size_t>{0, 1, 3, 5, 7, 9}));
  ExpectBuffers(placement, {{"40", 100, {0, 20}},
                            {"41", 20, {2, 7}},
                            {"41+1", 20, {12, 17}},
                            {"42", 30, {6, 12}},
                            {"42+1", 30, {0, 20}, {{2, 16}}},
                            {"43", 5, {4, 14}},
                            {"43+1", 5, {0, 20}, {{4, 14}}},
                            {"44", 0, {9, 10}},
                            {"44+1", 0, {19, 20}},
                            {"45", 1, {5, 18}},
                            {"45+1", 1, {0, 20}, {{8, 15}}}});
}

TEST(ToPlacementTest, AlignsByDefault) {
  Problem problem;
  problem.period = 1;
  problem.variables = {{.id = 0, .size_bytes = 1, .begin = 0, .end = 1}};
  EXPECT_EQ(ToPlacement(problem).problem.buffers[0].alignment, kDefaultAlignment);
}

TEST(ToPlacementTest, IsWellFormedForATraceWithoutEvents) {
  const Problem problem = MakeProblem(trace::ParseTrace("trace 1\n{}\np 0 100\np 1 50\n", "test"));
  const PlacementProblem placement = ToPlacement(problem);
  EXPECT_NO_THROW(place::CheckWellFormed(placement.problem, "test"));
  EXPECT_EQ(PlaceTightly(placement.problem, 1), 562);
}

TEST(ToPlacementTest, HasThePeakLoadOfTheIteration) {
  for (const bool rotating : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Problem problem =
          MakeProblem(trace::GenerateTrace({.seed = seed, .rotating = rotating}));
      const PlacementProblem placement = ToPlacement(problem);
      EXPECT_EQ(placement.iterations, rotating ? 2 : 1);
      EXPECT_EQ(place::PeakLoad(placement.problem), ProfileLoad(problem).peak_bytes);
    }
  }
}

TEST(ToPlacementTest, GeneratedNetworksArePlacedAtTheirLowerBound) {
  for (unsigned flags = 0; flags < 4; ++flags) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const Problem problem = MakeProblem(trace::GenerateTrace({.seed = seed,
                                                                .layers = 24,
                                                                .stochastic = (flags & 1) != 0,
                                                                .rotating = (flags & 2) != 0}));
      const place::Problem placement = ToPlacement(problem).problem;
      EXPECT_NO_THROW(place::CheckWellFormed(placement, "test"));
      // Up to the rounding of whatever lies on top.
      EXPECT_LT(PlaceTightly(placement, 5), place::LowerBound(placement) + kDefaultAlignment)
          << "flags " << flags << ", seed " << seed;
    }
  }
}

TEST(ToPlacementTest, RecordedNetworksArePlacedAtTheirPeakLoad) {
  for (const char* name : {"alexnet_b256", "kmeans_1m", "lstm_b64_t512", "resnet18_b100",
                           "resnet50_b64", "unet_b8_256", "vgg11_cifar_b100", "vgg16_cifar_b100",
                           "vit_b_16_b32", "sdresnet110_cifar_b100"}) {
    SCOPED_TRACE(name);
    const Problem problem = MakeProblem(
        trace::ReadTrace(std::string(PLIMSOLL_DATA_DIR "/traces/") + name + ".trace.gz"));
    const place::Problem placement = ToPlacement(problem).problem;
    EXPECT_NO_THROW(place::CheckWellFormed(placement, name));
    const auto peak = static_cast<double>(ProfileLoad(problem).peak_bytes);
    EXPECT_LE(static_cast<double>(PlaceTightly(placement, 5)), 1.0005 * peak);
  }
}

}  // namespace
}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/place/csv.h"
#include "plimsoll/place/generate.h"

namespace plimsoll::place {
namespace {

/// Returns the load after each moment; every moment is the start or the end of one buffer.
std::vector<Bytes> Loads(const Problem& problem) {
  std::vector<Bytes> change(problem.buffers.size() * 2, 0);
  for (const Buffer& buffer : problem.buffers) {
    change.at(static_cast<std::size_t>(buffer.lifetime.lower)) += buffer.size_bytes;
    change.at(static_cast<std::size_t>(buffer.lifetime.upper)) -= buffer.size_bytes;
  }
  for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

TEST(PlaceGenerateTest, ReachesThePeakExactlyAndNeverExceedsIt) {
  for (const std::int64_t count : {1, 2, 3, 10, 1000, 20000}) {
    for (const Bytes peak : {512, 5120, 1 << 30}) {
      const Problem problem = GenerateStack({.count = count, .peak_bytes = peak, .seed = 3});
      CheckWellFormed(problem, "generated");
      ASSERT_EQ(std::ssize(problem.buffers), count);
      const std::vector<Bytes> loads = Loads(problem);
      EXPECT_EQ(*std::max_element(loads.begin(), loads.end()), peak);
      EXPECT_EQ(loads.back(), 0);
    }
  }
}

TEST(PlaceGenerateTest, KeepsReturningToThePeak) {
  const Problem problem = GenerateStack({.count = 20000});
  const std::vector<Bytes> loads = Loads(problem);
  EXPECT_GT(std::count(loads.begin(), loads.end(), Bytes{1} << 30), 100);
}

TEST(PlaceGenerateTest, IsMostlyAStack) {
  const Problem problem = GenerateStack({.count = 20000});
  // A buffer is out of order if one that began later, while it was alive, outlives it.
  std::int64_t disturbed = 0;
  for (std::size_t i = 0; i + 1 < problem.buffers.size(); ++i) {
    const Interval& next = problem.buffers[i + 1].lifetime;
    const Interval& current = problem.buffers[i].lifetime;
    if (next.lower < current.upper && current.upper < next.upper) ++disturbed;
  }
  EXPECT_GT(disturbed, 0);
  EXPECT_LT(disturbed, 4000);
}

TEST(PlaceGenerateTest, AlignsSizesAsAsked) {
  for (const Bytes alignment : {1, 64, 4096}) {
    const Problem problem =
        GenerateStack({.count = 500, .peak_bytes = 1 << 20, .alignment = alignment});
    for (const Buffer& buffer : problem.buffers) {
      EXPECT_EQ(buffer.alignment, alignment);
      EXPECT_EQ(buffer.size_bytes % alignment, 0);
      EXPECT_GT(buffer.size_bytes, 0);
    }
  }
}

TEST(PlaceGenerateTest, GivesTheSameProblemForTheSameSeed) {
  const std::string text = FormatCsv(GenerateStack({.seed = 5}));
  EXPECT_EQ(FormatCsv(GenerateStack({.seed = 5})), text);
  EXPECT_NE(FormatCsv(GenerateStack({.seed = 6})), text);
}

TEST(PlaceGenerateTest, GivesAMillionBuffers) {
  const Stopwatch watch;
  EXPECT_EQ(GenerateStack({.count = 1'000'000}).buffers.size(), 1'000'000u);
  RecordProperty("seconds", std::to_string(watch.seconds()));
}

TEST(PlaceGenerateDeathTest, RefusesAPeakThatIsNotAligned) {
  EXPECT_DEATH(GenerateStack({.peak_bytes = 1000, .alignment = 512}), "1000");
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

using ::testing::ElementsAre;

constexpr Bytes kUnit = 512;

/// A buffer as a literal; what is left out has its default.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes, Bytes alignment = 1,
            std::optional<Bytes> fixed_offset = {}, std::vector<Interval> gaps = {}) {
  return {std::move(id), lifetime, size_bytes, alignment, fixed_offset, std::move(gaps)};
}

Placement Place(const Problem& problem) {
  Placement placement = PlaceCnmem(problem, {});
  EXPECT_TRUE(FindViolations(problem, placement.offsets).empty());
  return placement;
}

TEST(CnmemTest, RoundsSizesUpTo512Bytes) {
  const Problem problem = {{
      Live("a", {0, 2}, 1),
      Live("b", {0, 2}, 513),
      Live("c", {0, 2}, 512),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 512, 1536));
  EXPECT_EQ(placement.footprint_bytes, 2048);
  EXPECT_EQ(placement.lower_bound_bytes, 1026);
}

TEST(CnmemTest, TakesTheSmallestHoleThatFits) {
  const Problem problem = {{
      Live("lower hole", {0, 1}, 3 * kUnit),
      Live("wall", {0, 9}, kUnit),
      Live("upper hole", {0, 1}, 2 * kUnit),
      Live("ceiling", {0, 9}, kUnit),
      Live("asked", {1, 9}, 2 * kUnit),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[4], 4 * kUnit);
  EXPECT_EQ(placement.footprint_bytes, 7 * kUnit);
}

TEST(CnmemTest, TakesTheLowestOfEqualHoles) {
  const Problem problem = {{
      Live("lower hole", {0, 1}, 2 * kUnit),
      Live("wall", {0, 9}, kUnit),
      Live("upper hole", {0, 1}, 2 * kUnit),
      Live("ceiling", {0, 9}, kUnit),
      Live("asked", {1, 9}, kUnit),
  }};
  EXPECT_EQ(Place(problem).offsets[4], 0);
}

TEST(CnmemTest, SplitsOffWhateverIsLeft) {
  const Problem problem = {{
      Live("hole", {0, 1}, 3 * kUnit),
      Live("ceiling", {0, 9}, kUnit),
      Live("first", {1, 9}, 2 * kUnit),
      Live("second", {1, 9}, kUnit),
  }};
  EXPECT_THAT(Place(problem).offsets, ElementsAre(0, 3 * kUnit, 0, 2 * kUnit));
}

TEST(CnmemTest, MergesAFreedBlockWithBothNeighbours) {
  const Problem problem = {{
      Live("below", {0, 1}, kUnit),
      Live("middle", {0, 3}, kUnit),
      Live("above", {0, 2}, kUnit),
      Live("ceiling", {0, 9}, kUnit),
      Live("asked", {3, 9}, 3 * kUnit),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[4], 0);
  EXPECT_EQ(placement.footprint_bytes, 4 * kUnit);
}

TEST(CnmemTest, MergesAFreedBlockWithTheTail) {
  const Problem problem = {{
      Live("a", {0, 1}, kUnit),
      Live("b", {1, 2}, 2 * kUnit),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 0));
  EXPECT_EQ(placement.footprint_bytes, 2 * kUnit);
}

TEST(CnmemTest, HoldsABlockThroughItsGaps) {
  const Problem problem = {{
      Live("a", {0, 9}, kUnit, 1, {}, {{2, 7}}),
      Live("b", {3, 6}, kUnit),
  }};
  EXPECT_THAT(Place(problem).offsets, ElementsAre(0, kUnit));
}

TEST(CnmemTest, AsksForMoreWhereTheGranularityDoesNotAlign) {
  const Problem problem = {{
      Live("a", {0, 2}, 512),
      Live("b", {0, 2}, 512, 2048),
      Live("c", {0, 2}, 512, 3),
  }};
  // Block b is [512, 2560), block c is [2560, 3584): 512 + 3 - 1 bytes, rounded up.
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 2048, 2562));
  EXPECT_EQ(placement.footprint_bytes, 3584);
}

/// CnMem as it is written: a list of free blocks by address, searched from the front.
std::vector<Bytes> PlaceByLinearList(const Problem& problem) {
  std::vector<Block> free_list = {{0, BlockHeap::kEndless}};
  std::vector<Bytes> offsets(problem.buffers.size(), 0);
  for (const Event& event : ReplayEvents(problem)) {
    const Bytes size = AlignUp(problem.buffers[event.buffer].size_bytes, kUnit);
    if (event.kind == Event::Kind::kMalloc) {
      auto best = free_list.end();
      for (auto it = free_list.begin(); it != free_list.end(); ++it) {
        if (it->size_bytes < size) continue;
        if (best == free_list.end() || it->size_bytes < best->size_bytes) best = it;
      }
      offsets[event.buffer] = best->offset;
      best->offset += size;
      best->size_bytes -= size;
      if (best->size_bytes == 0) free_list.erase(best);
      continue;
    }
    auto next = free_list.begin();
    while (next != free_list.end() && next->offset < offsets[event.buffer]) ++next;
    auto freed = free_list.insert(next, {offsets[event.buffer], size});
    if (freed + 1 != free_list.end() && freed->offset + freed->size_bytes == (freed + 1)->offset) {
      freed->size_bytes += (freed + 1)->size_bytes;
      free_list.erase(freed + 1);
    }
    if (freed == free_list.begin()) continue;
    const auto previous = freed - 1;
    if (previous->offset + previous->size_bytes != freed->offset) continue;
    previous->size_bytes += freed->size_bytes;
    free_list.erase(freed);
  }
  return offsets;
}

/// Draws from [lower, upper) uniformly; a bare inRange() would begin with small values.
template <typename Number>
Number Draw(Number lower, Number upper) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Number>(lower, upper));
}

RC_GTEST_PROP(CnmemTest, DecidesAsTheLinearListDoes, ()) {
  const auto count = Draw<std::size_t>(0, 60);
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    const Time lower = Draw<Time>(0, 40);
    const Time length = Draw<Time>(1, 12);
    const Bytes size = Draw<Bytes>(0, 6 * kUnit);
    problem.buffers.push_back(Live("", {lower, lower + length}, size));
  }
  const Placement placement = PlaceCnmem(problem, {});
  RC_ASSERT(FindViolations(problem, placement.offsets).empty());
  RC_ASSERT(placement.offsets == PlaceByLinearList(problem));
}

}  // namespace
}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

using ::testing::ElementsAre;

constexpr Bytes kUnit = 256;
constexpr Bytes kMebibyte = Bytes{1} << 20;

/// A buffer as a literal, with the default of everything else.
Buffer Live(std::string id, Interval lifetime, Bytes size_bytes) {
  return {std::move(id), lifetime, size_bytes, /*alignment=*/1, /*fixed_offset=*/{}, /*gaps=*/{}};
}

Placement Place(const Problem& problem) {
  Placement placement = PlaceBfc(problem, {});
  EXPECT_TRUE(FindViolations(problem, placement.offsets).empty());
  return placement;
}

/// Makes a hole at 0 at time 1, asks for one part of it, then for another, and returns the offset
/// of the second: inside the hole only if the first one's chunk was split.
Bytes SecondOffset(Bytes hole, Bytes first, Bytes second) {
  const Problem problem = {{
      Live("hole", {0, 1}, hole),
      Live("ceiling", {0, 9}, kUnit),
      Live("first", {1, 9}, first),
      Live("second", {1, 9}, second),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[2], 0);
  return placement.offsets[3];
}

TEST(BfcTest, RoundsSizesUpTo256Bytes) {
  const Problem problem = {{
      Live("a", {0, 2}, 1),
      Live("b", {0, 2}, 257),
      Live("c", {0, 2}, 256),
  }};
  const Placement placement = Place(problem);
  EXPECT_THAT(placement.offsets, ElementsAre(0, 256, 768));
  EXPECT_EQ(placement.footprint_bytes, 1024);
}

TEST(BfcTest, SplitsAChunkOfTwiceTheSize) {
  EXPECT_EQ(SecondOffset(4 * kUnit, 2 * kUnit, 2 * kUnit), 2 * kUnit);
}

TEST(BfcTest, HandsOutASmallerChunkWhole) {
  EXPECT_EQ(SecondOffset(3 * kUnit, 2 * kUnit, kUnit), 4 * kUnit);
}

TEST(BfcTest, ComparesTheChunkWithTheRoundedSize) {
  // 2 * 257 bytes would fit into a chunk of three units, but 257 bytes are rounded up to two.
  EXPECT_EQ(SecondOffset(3 * kUnit, 257, kUnit), 4 * kUnit);
}

TEST(BfcTest, SplitsIf128MebibytesAreLeft) {
  EXPECT_EQ(SecondOffset(328 * kMebibyte, 200 * kMebibyte, kUnit), 200 * kMebibyte);
}

TEST(BfcTest, DoesNotSplitIfLessIsLeft) {
  const Bytes hole = 328 * kMebibyte - kUnit;
  EXPECT_EQ(SecondOffset(hole, 200 * kMebibyte, kUnit), hole + kUnit);
}

TEST(BfcTest, AlwaysSplitsTheTail) {
  const Problem problem = {{
      Live("a", {0, 1}, Bytes{1} << 60),
      Live("b", {0, 1}, kUnit),
  }};
  EXPECT_THAT(Place(problem).offsets, ElementsAre(0, Bytes{1} << 60));
}

TEST(BfcTest, ReturnsTheSurplusWithTheChunk) {
  const Problem problem = {{
      Live("hole", {0, 1}, 3 * kUnit),
      Live("ceiling", {0, 9}, kUnit),
      Live("unsplit", {1, 2}, 2 * kUnit),
      Live("asked", {2, 9}, 3 * kUnit),
  }};
  EXPECT_THAT(Place(problem).offsets, ElementsAre(0, 3 * kUnit, 0, 0));
}

TEST(BfcTest, TakesTheSmallestChunkThatFitsInTheFirstBinThatHasOne) {
  const Problem problem = {{
      Live("bin 2", {0, 1}, 7 * kUnit),      // [0, 7)
      Live("wall", {0, 9}, kUnit),           // [7, 8)
      Live("too small", {0, 1}, 4 * kUnit),  // [8, 12), bin 2 as well
      Live("wall", {0, 9}, kUnit),           // [12, 13)
      Live("best", {0, 1}, 6 * kUnit),       // [13, 19)
      Live("wall", {0, 9}, kUnit),           // [19, 20)
      Live("equal", {0, 1}, 6 * kUnit),      // [20, 26)
      Live("ceiling", {0, 9}, kUnit),        // [26, 27)
      Live("asked", {1, 9}, 5 * kUnit),
      Live("asked again", {1, 9}, 5 * kUnit),
  }};
  const Placement placement = Place(problem);
  EXPECT_EQ(placement.offsets[8], 13 * kUnit);
  EXPECT_EQ(placement.offsets[9], 20 * kUnit);
}

TEST(BfcTest, MergesAFreedChunkWithBothNeighbours) {
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

/// The allocator with its bins, over a flat map of chunks.
class BinnedRegion {
 public:
  BinnedRegion() { Release(0, BlockHeap::kEndless); }

  Block Malloc(Bytes size) {
    for (std::size_t bin = BinOf(size); bin < bins_.size(); ++bin) {
      for (const auto& [chunk_size, offset] : bins_[bin]) {
        if (chunk_size < size) continue;
        const Block chunk{offset, chunk_size};
        free_.erase(offset);
        bins_[bin].erase({chunk_size, offset});
        const bool split =
            chunk.size_bytes / 2 >= size || chunk.size_bytes - size >= 128 * kMebibyte;
        if (!split) return chunk;
        Release(chunk.offset + size, chunk.size_bytes - size);
        return {chunk.offset, size};
      }
    }
    return {};
  }

  void Free(Block chunk) {
    for (auto it = free_.begin(); it != free_.end();) {
      const Block other{it->first, it->second};
      const bool below = other.offset + other.size_bytes == chunk.offset;
      const bool above = chunk.offset + chunk.size_bytes == other.offset;
      ++it;
      if (!below && !above) continue;
      bins_[BinOf(other.size_bytes)].erase({other.size_bytes, other.offset});
      free_.erase(other.offset);
      if (below) chunk.offset = other.offset;
      chunk.size_bytes += other.size_bytes;
    }
    Release(chunk.offset, chunk.size_bytes);
  }

 private:
  static std::size_t BinOf(Bytes size) {
    std::size_t bin = 0;
    while (bin < 20 && (kUnit << (bin + 1)) <= size) ++bin;
    return bin;
  }
  void Release(Bytes offset, Bytes size) {
    free_[offset] = size;
    bins_[BinOf(size)].insert({size, offset});
  }

  std::map<Bytes, Bytes> free_;
  std::array<std::set<std::pair<Bytes, Bytes>>, 21> bins_;
};

/// Draws from [lower, upper) uniformly; a bare inRange() would begin with small values.
template <typename Number>
Number Draw(Number lower, Number upper) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Number>(lower, upper));
}

RC_GTEST_PROP(BfcTest, DecidesAsTheBinsDo, ()) {
  const auto count = Draw<std::size_t>(0, 60);
  const Bytes scale = *rc::gen::element<Bytes>(1, 300 * 1024);
  Problem problem;
  for (std::size_t i = 0; i < count; ++i) {
    const Time lower = Draw<Time>(0, 40);
    const Time length = Draw<Time>(1, 12);
    const Bytes size = Draw<Bytes>(0, 9 * kUnit) * scale;
    problem.buffers.push_back(Live("", {lower, lower + length}, size));
  }
  BinnedRegion region;
  std::vector<Block> blocks(count);
  std::vector<Bytes> expected(count, 0);
  for (const Event& event : ReplayEvents(problem)) {
    Block& block = blocks[event.buffer];
    if (event.kind == Event::Kind::kFree) {
      region.Free(block);
    } else {
      block = region.Malloc(AlignUp(problem.buffers[event.buffer].size_bytes, kUnit));
      expected[event.buffer] = block.offset;
    }
  }
  const Placement placement = PlaceBfc(problem, {});
  RC_ASSERT(FindViolations(problem, placement.offsets).empty());
  RC_ASSERT(placement.offsets == expected);
}

}  // namespace
}  // namespace plimsoll::place

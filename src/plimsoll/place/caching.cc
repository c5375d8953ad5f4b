// SPDX-License-Identifier: Apache-2.0
//
// Models PyTorch's CUDACachingAllocator (c10/cuda/CUDACachingAllocator.cpp) with default settings,
// one stream and enough memory.
//   - Sizes are rounded up to 512 bytes.
//   - Requests of at most 1 MiB are served from a small pool, larger ones from a large pool.
//   - Best fit in the pool: the smallest free block, the lowest address among equals. If there is
//     none, cudaMalloc is asked for a segment: 2 MiB in the small pool; in the large pool 20 MiB
//     for requests under 10 MiB, and the request rounded up to 2 MiB for others.
//   - A block is split if at least 512 bytes (small pool) or more than 1 MiB (large pool) would be
//     left over; otherwise the surplus is lost until the block is freed.
//   - A freed block is merged with both neighbours in its segment; segments are never returned.
//
// Segments are laid one after another, in the order in which they were asked for; the footprint is
// the sum of them all ("reserved memory"). Leaves out several streams, expandable segments, graphs'
// private pools, max_split_size, rounding to powers of two, and the return of whole free segments
// when cudaMalloc fails.
#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"

namespace plimsoll::place {
namespace {

constexpr Bytes kMebibyte = Bytes{1} << 20;

class CachingAllocator final : public OnlineAllocator {
 public:
  Bytes granularity() const override { return kMinBlock; }

  Block Malloc(Bytes size_bytes) override {
    const Bytes rounded_bytes = AlignUp(size_bytes, kMinBlock);
    BlockHeap& pool = PoolFor(rounded_bytes);
    if (!pool.FindBestFit(rounded_bytes)) {
      const Block segment{reserved_bytes_, SegmentSize(rounded_bytes)};
      pool.AddSegment(segment);
      reserved_bytes_ += segment.size_bytes;
    }
    const Block block = pool.FindBestFit(rounded_bytes).value();
    const Bytes surplus_bytes = block.size_bytes - rounded_bytes;
    const bool split =
        IsSmall(rounded_bytes) ? surplus_bytes >= kMinBlock : surplus_bytes > kSmallSize;
    const Bytes used_bytes = split ? rounded_bytes : block.size_bytes;
    pool.Take(block, used_bytes);
    return {block.offset, used_bytes};
  }

  // Blocks of the small pool have the size that was asked for, so the size tells the pools apart.
  void Free(const Block& block) override { PoolFor(block.size_bytes).Free(block.offset); }

  /// The sum of all segments.
  Bytes reserved_bytes() const { return reserved_bytes_; }

 private:
  static constexpr Bytes kMinBlock = 512;
  static constexpr Bytes kSmallSize = kMebibyte;
  static constexpr Bytes kSmallSegment = 2 * kMebibyte;
  static constexpr Bytes kMinLargeSegment = 20 * kMebibyte;
  static constexpr Bytes kOwnSegmentSize = 10 * kMebibyte;
  static constexpr Bytes kSegmentRounding = 2 * kMebibyte;

  static bool IsSmall(Bytes size_bytes) { return size_bytes <= kSmallSize; }

  static Bytes SegmentSize(Bytes size_bytes) {
    if (IsSmall(size_bytes)) return kSmallSegment;
    if (size_bytes < kOwnSegmentSize) return kMinLargeSegment;
    return AlignUp(size_bytes, kSegmentRounding);
  }

  BlockHeap& PoolFor(Bytes size_bytes) { return IsSmall(size_bytes) ? small_ : large_; }

  BlockHeap small_;
  BlockHeap large_;
  Bytes reserved_bytes_ = 0;
};

}  // namespace

Placement PlaceCaching(const Problem& problem, const PlannerOptions& /*options*/) {
  CachingAllocator allocator;
  Placement placement = Replay(problem, allocator);
  placement.footprint_bytes = allocator.reserved_bytes();
  return placement;
}

}  // namespace plimsoll::place

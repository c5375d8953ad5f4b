// SPDX-License-Identifier: Apache-2.0
//
// Models TensorFlow's BFCAllocator ("best fit with coalescing", tsl/framework/bfc_allocator.cc)
// with one region, that is, with allow_growth off.
//   - Sizes are rounded up to 256 bytes.
//   - Free chunks are kept in 21 bins, bin b for sizes in [256 * 2^b, 256 * 2^(b+1)), the last one
//     for all above; within a bin they are ordered by size, then address. The search begins in the
//     bin of the rounded size and takes the first chunk that is large enough.
//   - A chunk is split if it is at least twice the rounded size, or if 128 MiB or more would be
//     left over. Otherwise the whole chunk is handed out, and its surplus is lost until it is
//     freed.
//   - A freed chunk is merged with both neighbours.
//
// The bins are consecutive ranges of sizes, so the search ends at the smallest chunk that is large
// enough, the lowest of equals: one order by size, then address, decides alike. The region is
// modelled as endless; its tail is always split. Leaves out regions that grow, garbage collection,
// timestamped chunks and a fragmentation_fraction other than the default.
#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"

namespace plimsoll::place {
namespace {

class BfcRegion final : public OnlineAllocator {
 public:
  BfcRegion() { heap_.AddSegment({0, BlockHeap::kEndless}); }

  Bytes granularity() const override { return kMinAllocation; }

  Block Malloc(Bytes size_bytes) override {
    const Bytes rounded_bytes = AlignUp(size_bytes, kMinAllocation);
    const Block chunk = heap_.FindBestFit(rounded_bytes).value();
    // The tail is at least kMaxBytes long, and so passes the second test whatever is asked for.
    const Bytes surplus_bytes = chunk.size_bytes - rounded_bytes;
    const bool split = surplus_bytes >= rounded_bytes || surplus_bytes >= kMaxInternalFragmentation;
    const Bytes used_bytes = split ? rounded_bytes : chunk.size_bytes;
    heap_.Take(chunk, used_bytes);
    return {chunk.offset, used_bytes};
  }

  void Free(const Block& block) override { heap_.Free(block.offset); }

 private:
  static constexpr Bytes kMinAllocation = 256;
  static constexpr Bytes kMaxInternalFragmentation = Bytes{128} << 20;

  BlockHeap heap_;
};

}  // namespace

Placement PlaceBfc(const Problem& problem, const PlannerOptions& /*options*/) {
  BfcRegion region;
  return Replay(problem, region);
}

}  // namespace plimsoll::place

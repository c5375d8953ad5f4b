// SPDX-License-Identifier: Apache-2.0
//
// Models CnMem, NVIDIA's memory pool (github.com/NVIDIA/cnmem, 2015), the second baseline of paper
// 001: one pool that is reserved before training and never grows.
//   - Sizes are rounded up to 512 bytes.
//   - Best fit: the smallest free block that is large enough, the lowest address among equals.
//   - What is left of the block is split off, however little.
//   - A freed block is merged with both neighbours.
//
// CnMem walks a linked list sorted by address and keeps the first of the smallest blocks that it
// meets; an order by size, then address finds the same block in O(log n). The pool is modelled as
// endless: its tail is larger than any hole, so best fit takes it last, as it would in a pool that
// is just large enough for the run, except where the real tail has shrunk below the size of a hole.
// Leaves out growth by further cudaMallocs, and stealing between the pools of several streams.
#include "plimsoll/place/planner.h"
#include "plimsoll/place/replay.h"

namespace plimsoll::place {
namespace {

class CnmemPool final : public OnlineAllocator {
 public:
  CnmemPool() { heap_.AddSegment({0, BlockHeap::kEndless}); }

  Bytes granularity() const override { return kGranularity; }

  Block Malloc(Bytes size_bytes) override {
    const Bytes rounded_bytes = AlignUp(size_bytes, kGranularity);
    const Block block = heap_.FindBestFit(rounded_bytes).value();
    heap_.Take(block, rounded_bytes);
    return {block.offset, rounded_bytes};
  }

  void Free(const Block& block) override { heap_.Free(block.offset); }

 private:
  static constexpr Bytes kGranularity = 512;

  BlockHeap heap_;
};

}  // namespace

Placement PlaceCnmem(const Problem& problem, const PlannerOptions& /*options*/) {
  CnmemPool pool;
  return Replay(problem, pool);
}

}  // namespace plimsoll::place

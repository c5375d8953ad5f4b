// SPDX-License-Identifier: Apache-2.0
//
// The events of a problem, the heap of blocks that the modelled allocators cut their memory from,
// and the loop that brings the two together. Models no system by itself; see cnmem.cc, bfc.cc and
// caching.cc for what differs between them.
#include "plimsoll/place/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>

#include "plimsoll/base/check.h"
#include "plimsoll/place/load.h"

namespace plimsoll::place {

std::vector<Event> ReplayEvents(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0) continue;
    events.push_back({buffer.lifetime.lower, Event::Kind::kMalloc, i});
    events.push_back({buffer.lifetime.upper, Event::Kind::kFree, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.kind, a.buffer) < std::tie(b.time, b.kind, b.buffer);
  });
  return events;
}

void BlockHeap::AddSegment(const Block& segment) {
  const State state{segment.size_bytes, /*is_free=*/true, /*begins_segment=*/true};
  const bool inserted = blocks_.emplace(segment.offset, state).second;
  PLIMSOLL_CHECK(inserted, fmt::format("two segments begin at {}", segment.offset));
  free_.emplace(segment.size_bytes, segment.offset);
}

std::optional<Block> BlockHeap::FindBestFit(Bytes size_bytes) const {
  const auto best = free_.lower_bound({size_bytes, 0});
  if (best == free_.end()) return std::nullopt;
  return Block{best->second, best->first};
}

void BlockHeap::Take(const Block& block, Bytes used_bytes) {
  const auto place = blocks_.find(block.offset);
  PLIMSOLL_CHECK(place != blocks_.end() && place->second.is_free,
                 fmt::format("no free block at {}", block.offset));
  free_.erase({block.size_bytes, block.offset});
  const Bytes rest_bytes = block.size_bytes - used_bytes;
  place->second.is_free = false;
  place->second.size_bytes = used_bytes;
  if (rest_bytes == 0) return;
  const Bytes rest_offset = block.offset + used_bytes;
  blocks_.emplace_hint(std::next(place), rest_offset,
                       State{rest_bytes, /*is_free=*/true, /*begins_segment=*/false});
  free_.emplace(rest_bytes, rest_offset);
}

void BlockHeap::Free(Bytes offset) {
  auto place = blocks_.find(offset);
  PLIMSOLL_CHECK(place != blocks_.end() && !place->second.is_free,
                 fmt::format("no used block at {}", offset));
  place->second.is_free = true;
  free_.emplace(place->second.size_bytes, offset);
  const auto above = std::next(place);
  if (above != blocks_.end() && above->second.is_free && !above->second.begins_segment) {
    Merge(place, above);
  }
  if (place->second.begins_segment) return;
  const auto below = std::prev(place);
  if (below->second.is_free) Merge(below, place);
}

void BlockHeap::Merge(Iterator below, Iterator above) {
  free_.erase({below->second.size_bytes, below->first});
  free_.erase({above->second.size_bytes, above->first});
  below->second.size_bytes += above->second.size_bytes;
  free_.emplace(below->second.size_bytes, below->first);
  blocks_.erase(above);
}

Placement Replay(const Problem& problem, OnlineAllocator& allocator) {
  Placement placement;
  placement.offsets.assign(problem.buffers.size(), 0);
  placement.lower_bound_bytes = LowerBound(problem);
  std::vector<Block> blocks(problem.buffers.size());
  for (const Event& event : ReplayEvents(problem)) {
    Block& block = blocks[event.buffer];
    if (event.kind == Event::Kind::kFree) {
      allocator.Free(block);
      continue;
    }
    const Buffer& buffer = problem.buffers[event.buffer];
    // Zero wherever the granularity is a multiple of the alignment, as it nearly always is.
    const Bytes padding = buffer.alignment - std::gcd(allocator.granularity(), buffer.alignment);
    block = allocator.Malloc(buffer.size_bytes + padding);
    placement.offsets[event.buffer] = AlignUp(block.offset, buffer.alignment);
    placement.footprint_bytes =
        std::max(placement.footprint_bytes, block.offset + block.size_bytes);
  }
  return placement;
}

}  // namespace plimsoll::place

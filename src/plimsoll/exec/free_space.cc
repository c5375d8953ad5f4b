// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/free_space.h"

#include <algorithm>
#include <iterator>

namespace plimsoll::exec {

FreeSpace::FreeSpace(Bytes capacity_bytes, std::map<Bytes, Bytes> blocks, Bytes alignment)
    : alignment_(alignment), blocks_(std::move(blocks)) {
  Bytes top = 0;
  for (const auto& [offset, size_bytes] : blocks_) {
    AddHole(top, offset - top);
    top = offset + size_bytes;
  }
  AddHole(top, capacity_bytes - top);
}

std::optional<Bytes> FreeSpace::Take(Bytes size_bytes, Bytes lowest) {
  for (auto entry = by_size_.lower_bound({size_bytes, 0}); entry != by_size_.end(); ++entry) {
    const auto [hole_bytes, hole_offset] = *entry;
    const Bytes offset = AlignUp(std::max(hole_offset, lowest), alignment_);
    // Compares differences, so that no sum can overflow.
    if (size_bytes > hole_offset + hole_bytes - offset) continue;
    Carve(holes_.find(hole_offset), offset, size_bytes);
    return offset;
  }
  return std::nullopt;
}

bool FreeSpace::TakeAt(Bytes offset, Bytes size_bytes) {
  auto hole = holes_.upper_bound(offset);
  if (hole == holes_.begin()) return false;
  --hole;
  if (size_bytes > hole->first + hole->second - offset) return false;
  Carve(hole, offset, size_bytes);
  return true;
}

std::optional<Bytes> FreeSpace::Release(Bytes offset) {
  const auto block = blocks_.find(offset);
  if (block == blocks_.end()) return std::nullopt;
  const Bytes size_bytes = block->second;
  blocks_.erase(block);
  Bytes begin = offset;
  Bytes end = offset + size_bytes;
  auto above = holes_.lower_bound(offset);
  if (above != holes_.begin()) {
    const auto below = std::prev(above);
    if (below->first + below->second == begin) {
      begin = below->first;
      RemoveHole(below);
    }
  }
  if (above != holes_.end() && above->first == end) {
    end += above->second;
    RemoveHole(above);
  }
  AddHole(begin, end - begin);
  return size_bytes;
}

void FreeSpace::AddHole(Bytes offset, Bytes size_bytes) {
  if (size_bytes == 0) return;
  holes_.emplace(offset, size_bytes);
  by_size_.emplace(size_bytes, offset);
  free_bytes_ += size_bytes;
}

void FreeSpace::RemoveHole(Holes::iterator hole) {
  free_bytes_ -= hole->second;
  by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

void FreeSpace::Carve(Holes::iterator hole, Bytes offset, Bytes size_bytes) {
  const Bytes begin = hole->first;
  const Bytes end = begin + hole->second;
  RemoveHole(hole);
  AddHole(begin, offset - begin);
  AddHole(offset + size_bytes, end - offset - size_bytes);
  blocks_.emplace(offset, size_bytes);
}

}  // namespace plimsoll::exec

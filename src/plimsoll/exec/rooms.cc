// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/rooms.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/check.h"

namespace plimsoll::exec {
namespace {

Bytes Aligned(Bytes bytes) { return AlignUp(bytes, kDefaultAlignment); }

std::int64_t Number(Block block) { return static_cast<std::int64_t>(block); }

}  // namespace

Rooms::Rooms(Bytes capacity_bytes, Ledger* ledger)
    : capacity_bytes_(capacity_bytes),
      usable_bytes_(capacity_bytes - capacity_bytes % kDefaultAlignment),
      ledger_(*ledger),
      space_(capacity_bytes) {}

Rooms::~Rooms() {
  for (const auto& [offset, block] : blocks_) ledger_.Leave(offset, SizeAt(offset), Number(block));
}

std::optional<Bytes> Rooms::Take(Block block, Bytes size_bytes) {
  const auto offset = space_.Take(size_bytes);
  if (offset) Enter(block, *offset, size_bytes);
  return offset;
}

bool Rooms::TakeAt(Block block, Bytes offset, Bytes size_bytes) {
  if (!space_.TakeAt(offset, size_bytes)) return false;
  Enter(block, offset, size_bytes);
  return true;
}

void Rooms::Enter(Block block, Bytes offset, Bytes size_bytes) {
  ledger_.Enter(offset, size_bytes, Number(block));
  blocks_.emplace(offset, block);
  aligned_bytes_ += Aligned(size_bytes);
}

void Rooms::Release(Bytes offset) {
  const auto found = blocks_.find(offset);
  PLIMSOLL_CHECK(found != blocks_.end(), fmt::format("no room begins at {}", offset));
  const Bytes size_bytes = SizeAt(offset);
  ledger_.Leave(offset, size_bytes, Number(found->second));
  aligned_bytes_ -= Aligned(size_bytes);
  blocks_.erase(found);
  (void)space_.Release(offset);
}

bool Rooms::Move(Bytes from, Bytes to) {
  const Block block = blocks_.at(from);
  const Bytes size_bytes = SizeAt(from);
  Release(from);
  if (TakeAt(block, to, size_bytes)) return true;
  const bool back = TakeAt(block, from, size_bytes);
  PLIMSOLL_CHECK(back, fmt::format("the room at {} is gone", from));
  return false;
}

Bytes Rooms::SizeAt(Bytes offset) const { return space_.blocks().at(offset); }

Bytes Rooms::top_bytes() const {
  if (space_.blocks().empty()) return 0;
  const auto& [offset, size_bytes] = *space_.blocks().rbegin();
  return offset + size_bytes;
}

std::vector<Rooms::Shift> Rooms::ShiftsFor(Bytes size_bytes) const {
  std::vector<Shift> rooms;
  for (const auto& [offset, block] : blocks_) {
    rooms.push_back({block, offset, offset, SizeAt(offset)});
  }
  const std::size_t count = rooms.size();
  const auto end_before = [&rooms](std::size_t i) {
    return i == 0 ? Bytes{0} : Aligned(rooms[i - 1].from + rooms[i - 1].size_bytes);
  };
  const auto limit_after = [&](std::size_t i) {
    return i + 1 == count ? capacity_bytes_ : rooms[i + 1].from;
  };
  // Slides a window of rooms [first, last) over the arena: the one with the fewest bytes that,
  // pushed down against what is below it, leaves enough above it.
  Bytes least_moved = std::numeric_limits<Bytes>::max();
  std::size_t best_first = 0;
  std::size_t best_last = count;
  Bytes moved = 0;
  std::size_t last = 0;
  for (std::size_t first = 0; first < count; ++first) {
    while (last < count &&
           (last <= first || limit_after(last - 1) - end_before(first) - moved < size_bytes)) {
      moved += Aligned(rooms[last++].size_bytes);
    }
    if (limit_after(last - 1) - end_before(first) - moved < size_bytes) break;
    if (moved < least_moved) {
      least_moved = moved;
      best_first = first;
      best_last = last;
    }
    moved -= Aligned(rooms[first].size_bytes);
  }
  std::vector<Shift> shifts;
  Bytes end = end_before(best_first);
  for (std::size_t i = best_first; i < best_last; ++i) {
    // Never upwards, even if the room's old offset was not aligned.
    rooms[i].to = std::min(rooms[i].from, end);
    end = Aligned(rooms[i].to + rooms[i].size_bytes);
    if (rooms[i].to != rooms[i].from) shifts.push_back(rooms[i]);
  }
  return shifts;
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
//
// How on-demand memory hands over: everything to its place, at a moment when no op runs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/exec/on_demand.h"

namespace plimsoll::exec {
namespace {

bool IsOnDevice(const Target* target) { return target != nullptr && target->device_offset >= 0; }

bool IsNowhere(const Target* target) {
  return target != nullptr && target->device_offset < 0 && target->host == nullptr;
}

}  // namespace

void OnDemandMemory::Arrange(std::span<const Target> targets) {
  PLIMSOLL_CHECK(!is_pinned_, fmt::format("{} blocks are pinned", pinned_.size()));
  Wanted wanted;
  for (const Target& target : targets) {
    (void)At(target.block);
    wanted.emplace(target.block, &target);
  }
  backend_.Synchronize();
  Unborrow(wanted);
  ClearTheWay(wanted);
  PlaceOnDevice(targets);
  PlaceOnHost(targets);
  backend_.Synchronize();
}

void OnDemandMemory::Settle() {
  backend_.Synchronize();
  Unborrow({});
}

void OnDemandMemory::TakeOver(std::byte* range) {
  std::vector<HostSlab::Part> parts;
  for (auto& [block, entry] : entries_) {
    if (!std::exchange(entry.borrowed, false)) continue;
    parts.push_back({entry.host - range, entry.size_bytes});
  }
  slab_.Split(range, parts);
}

void OnDemandMemory::Unborrow(const Wanted& wanted) {
  // Where targets are, contents of others may be: callers use their memory again.
  for (auto& [block, entry] : entries_) {
    if (!entry.borrowed) continue;
    const auto found = wanted.find(block);
    if (found != wanted.end() && found->second->host == entry.host) continue;
    if (entry.on_device || (found != wanted.end() && IsNowhere(found->second))) {
      ReleaseHost(&entry);
    } else {
      CopyOnHost(&entry, TakeHost(entry.size_bytes), /*borrowed=*/false);
    }
  }
}

void OnDemandMemory::ClearTheWay(const Wanted& wanted) {
  std::vector<Leaving> leaving;
  for (auto& [block, entry] : entries_) {
    const auto found = wanted.find(block);
    const Target* const target = found == wanted.end() ? nullptr : found->second;
    if (IsOnDevice(target)) continue;
    if (IsNowhere(target)) {
      LeaveRoom(&entry);
      ReleaseHost(&entry);
    }
    if (entry.offset >= 0) leaving.push_back({&entry, target == nullptr ? nullptr : target->host});
  }
  Evict(std::move(leaving));
}

void OnDemandMemory::PlaceOnDevice(std::span<const Target> targets) {
  std::vector<const Target*> misplaced;
  for (const Target& target : targets) {
    const Entry& entry = At(target.block);
    if (IsOnDevice(&target) && entry.offset >= 0 && entry.offset != target.device_offset) {
      misplaced.push_back(&target);
    }
  }
  while (!misplaced.empty()) {
    if (!ShiftToPlace(&misplaced)) EvictSome(&misplaced);
  }
  std::vector<Entry*> entries;
  for (const Target& target : targets) {
    Entry& entry = At(target.block);
    if (!IsOnDevice(&target) || entry.size_bytes == 0) continue;
    entries.push_back(&entry);
    if (entry.offset >= 0) continue;
    const bool taken = rooms_.TakeAt(entry.block, target.device_offset, entry.size_bytes);
    PLIMSOLL_CHECK(taken, fmt::format("targets overlap: {} bytes at {} of {}", entry.size_bytes,
                                      target.device_offset, rooms_.capacity_bytes()));
    EnterRoom(&entry, target.device_offset);
  }
  Fetch(entries);
}

bool OnDemandMemory::ShiftToPlace(std::vector<const Target*>* misplaced) {
  return std::erase_if(*misplaced, [this](const Target* target) {
           return Shift(&At(target->block), target->device_offset);
         }) > 0;
}

void OnDemandMemory::EvictSome(std::vector<const Target*>* misplaced) {
  // They stand in each other's way. The smallest leave, some at once, to be fetched at the end.
  std::sort(misplaced->begin(), misplaced->end(), [this](const Target* a, const Target* b) {
    return At(a->block).size_bytes > At(b->block).size_bytes;
  });
  std::vector<Leaving> leaving;
  for (std::size_t count = 1 + misplaced->size() / 8; count > 0; --count) {
    leaving.push_back({&At(misplaced->back()->block)});
    misplaced->pop_back();
  }
  Evict(std::move(leaving));
}

void OnDemandMemory::PlaceOnHost(std::span<const Target> targets) {
  std::vector<Leaving> saved;
  for (const Target& target : targets) {
    Entry& entry = At(target.block);
    if (target.host == nullptr || entry.host == target.host) continue;
    if (entry.host != nullptr) {
      CopyOnHost(&entry, target.host, /*borrowed=*/true);
    } else if (entry.on_device) {
      saved.push_back({&entry, target.host});
    }
  }
  SaveToHost(std::move(saved));
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/on_demand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/exec/undo_internal.h"

namespace plimsoll::exec {
namespace {

/// Of the arena, what leaves besides when something must: with a little room to spare there are
/// holes, and blocks need seldom be moved together.
constexpr Bytes kSpareShare = 16;

Bytes Aligned(Bytes bytes) { return AlignUp(bytes, kDefaultAlignment); }

std::int64_t Number(Block block) { return static_cast<std::int64_t>(block); }

}  // namespace

OnDemandMemory::OnDemandMemory(device::Backend* backend, std::byte* base, Bytes capacity_bytes,
                               HostSlab* slab, Ledger* ledger)
    : backend_(*backend),
      base_(base),
      slab_(*slab),
      rooms_(capacity_bytes, ledger),
      computed_(backend->CreateEvent()),
      copied_(backend->CreateEvent()) {}

OnDemandMemory::~OnDemandMemory() {
  SynchronizeQuietly();
  for (auto& [block, entry] : entries_) ReleaseHost(&entry);
  backend_.DestroyEvent(computed_);
  backend_.DestroyEvent(copied_);
}

OnDemandMemory::Entry& OnDemandMemory::Insert(Block block, Bytes size_bytes) {
  PLIMSOLL_CHECK(size_bytes >= 0, fmt::format("block {} of {} bytes", Number(block), size_bytes));
  const auto [place, is_new] = entries_.try_emplace(block);
  PLIMSOLL_CHECK(is_new, fmt::format("block {} is known already, with {} bytes", Number(block),
                                     place->second.size_bytes));
  place->second.block = block;
  place->second.size_bytes = size_bytes;
  stats_.live_bytes += size_bytes;
  return place->second;
}

OnDemandMemory::Entry& OnDemandMemory::At(Block block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) throw Error(fmt::format("block {} is not live", Number(block)));
  return found->second;
}

const OnDemandMemory::Entry& OnDemandMemory::At(Block block) const {
  return const_cast<OnDemandMemory*>(this)->At(block);
}

void OnDemandMemory::Add(Block block, Bytes size_bytes) { Insert(block, size_bytes); }

void OnDemandMemory::AddAt(Block block, Bytes size_bytes, Bytes offset, std::byte* host) {
  Entry& entry = Insert(block, size_bytes);
  if (size_bytes == 0) return;
  const bool taken = rooms_.TakeAt(block, offset, size_bytes);
  PLIMSOLL_CHECK(taken, fmt::format("block {}: [{}, {}) is in use, or outside of {}", Number(block),
                                    offset, offset + size_bytes, rooms_.capacity_bytes()));
  EnterRoom(&entry, offset);
  entry.on_device = true;
  entry.host = host;
  entry.borrowed = host != nullptr;
}

void OnDemandMemory::AddOnHost(Block block, Bytes size_bytes, std::byte* host) {
  Entry& entry = Insert(block, size_bytes);
  if (size_bytes == 0) return;
  entry.host = host;
  entry.borrowed = true;
}

void OnDemandMemory::AddOnSlab(Block block, Bytes size_bytes, std::byte* range) {
  PLIMSOLL_CHECK(size_bytes > 0, fmt::format("block {} of {} bytes", Number(block), size_bytes));
  Insert(block, size_bytes).host = range;
}

void OnDemandMemory::Remove(Block block) {
  Entry& entry = At(block);
  LeaveRoom(&entry);
  Forget(&entry);
}

void OnDemandMemory::Clear() {
  while (!entries_.empty()) Forget(&entries_.begin()->second);
}

void OnDemandMemory::Forget(Entry* entry) {
  const Block block = entry->block;
  PLIMSOLL_CHECK(!entry->pinned, fmt::format("block {} is pinned", Number(block)));
  ReleaseRoom(entry);
  ReleaseHost(entry);
  stats_.live_bytes -= entry->size_bytes;
  entries_.erase(block);
}

void OnDemandMemory::EnterRoom(Entry* entry, Bytes offset) {
  entry->offset = offset;
  entry->on_device = false;
  entry->last_use = ++clock_;
  by_use_.emplace(entry->last_use, entry);
  stats_.peak_footprint_bytes = std::max(stats_.peak_footprint_bytes, rooms_.top_bytes());
}

void OnDemandMemory::Touch(Entry* entry) {
  by_use_.erase(entry->last_use);
  entry->last_use = ++clock_;
  by_use_.emplace(entry->last_use, entry);
}

void OnDemandMemory::LeaveRoom(Entry* entry) {
  // The last to use it was compute, or has been waited for; whoever comes next waits for compute.
  if (entry->offset >= 0) backend_.Discard(AddressOf(*entry), entry->size_bytes);
  ReleaseRoom(entry);
}

void OnDemandMemory::ReleaseRoom(Entry* entry) {
  if (entry->offset < 0) return;
  rooms_.Release(entry->offset);
  by_use_.erase(entry->last_use);
  entry->offset = -1;
  entry->on_device = false;
}

void OnDemandMemory::ReleaseHost(Entry* entry) {
  if (entry->host != nullptr && !entry->borrowed) slab_.Release(entry->host);
  entry->host = nullptr;
  entry->borrowed = false;
}

void OnDemandMemory::Pin(std::span<const Block> reads, std::span<const Block> writes,
                         std::string_view op_name, std::vector<std::byte*>* read_addresses,
                         std::vector<std::byte*>* write_addresses) {
  PLIMSOLL_CHECK(!is_pinned_, fmt::format("{} blocks are pinned, and now {}", pinned_.size(),
                                          std::string(op_name)));
  const std::vector<Entry*> entries = Collect(reads, writes);
  internal::Undo undo([this, &entries] {
    for (Entry* entry : entries) {
      entry->pinned = false;
      if (!entry->on_device) LeaveRoom(entry);
    }
  });
  CheckFits(entries, op_name);
  std::vector<Entry*> homeless;
  Bytes aligned_bytes = 0;
  for (Entry* entry : entries) {
    if (entry->offset >= 0) continue;
    homeless.push_back(entry);
    aligned_bytes += Aligned(entry->size_bytes);
  }
  MakeRoomFor(aligned_bytes);
  TakeRooms(homeless);
  Fetch(entries);
  for (Entry* entry : entries) Touch(entry);

  read_addresses->clear();
  write_addresses->clear();
  for (const Block block : reads) read_addresses->push_back(AddressOf(At(block)));
  for (const Block block : writes) write_addresses->push_back(AddressOf(At(block)));
  for (const Block block : writes) {
    Entry& entry = At(block);
    if (entry.size_bytes == 0) continue;
    entry.on_device = true;
    ReleaseHost(&entry);
  }
  pinned_ = entries;
  is_pinned_ = true;
  undo.Cancel();
}

void OnDemandMemory::Unpin() {
  for (Entry* entry : pinned_) entry->pinned = false;
  pinned_.clear();
  is_pinned_ = false;
}

std::vector<OnDemandMemory::Entry*> OnDemandMemory::Collect(std::span<const Block> reads,
                                                            std::span<const Block> writes) {
  std::vector<Entry*> entries;
  for (const Block block : reads) entries.push_back(&At(block));
  for (const Block block : writes) entries.push_back(&At(block));
  // From here on nothing throws. The first mention of a block stays.
  std::erase_if(entries, [](Entry* entry) {
    if (entry->size_bytes == 0 || entry->pinned) return true;
    entry->pinned = true;
    return false;
  });
  return entries;
}

void OnDemandMemory::CheckFits(const std::vector<Entry*>& entries, std::string_view op_name) const {
  Bytes needed_bytes = 0;
  for (const Entry* entry : entries) needed_bytes += Aligned(entry->size_bytes);
  if (needed_bytes <= rooms_.usable_bytes()) return;
  throw OutOfMemory(needed_bytes, rooms_.usable_bytes(),
                    fmt::format("op '{}' needs that for its {} blocks alone: raise the limit to "
                                "{} ({} bytes) or more, or use a smaller batch",
                                op_name, entries.size(), FormatBytes(needed_bytes), needed_bytes));
}

void OnDemandMemory::MakeRoomFor(Bytes aligned_bytes) {
  if (aligned_bytes == 0 || rooms_.HasRoomFor(aligned_bytes)) return;
  const Bytes spare_bytes = rooms_.usable_bytes() / kSpareShare;
  try {
    Evict(LeastRecentlyUsed(aligned_bytes, spare_bytes));
  } catch (const OutOfMemory&) {
    // The host may have room for what must leave.
    Evict(LeastRecentlyUsed(aligned_bytes, 0));
  }
}

std::vector<OnDemandMemory::Leaving> OnDemandMemory::LeastRecentlyUsed(Bytes aligned_bytes,
                                                                       Bytes spare_bytes) const {
  std::vector<Leaving> leaving;
  for (const auto& [last_use, entry] : by_use_) {
    if (entry->pinned) continue;
    const Bytes size_bytes = Aligned(entry->size_bytes);
    if (!rooms_.HasRoomFor(aligned_bytes)) {
      aligned_bytes -= size_bytes;
    } else if (size_bytes <= spare_bytes) {
      spare_bytes -= size_bytes;
    } else {
      break;
    }
    leaving.push_back({entry});
  }
  return leaving;
}

void OnDemandMemory::TakeRooms(const std::vector<Entry*>& entries) {
  std::vector<Entry*> by_size = entries;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const Entry* a, const Entry* b) { return a->size_bytes > b->size_bytes; });
  for (Entry* entry : by_size) {
    auto offset = rooms_.Take(entry->block, entry->size_bytes);
    if (!offset) {
      for (const Rooms::Shift& shift : rooms_.ShiftsFor(entry->size_bytes)) {
        const bool moved = Shift(&At(shift.block), shift.to);
        PLIMSOLL_CHECK(moved, fmt::format("{} is in the way of {}", shift.to, shift.from));
      }
      offset = rooms_.Take(entry->block, entry->size_bytes);
      PLIMSOLL_CHECK(offset.has_value(), fmt::format("no hole of {} bytes below {}",
                                                     entry->size_bytes, rooms_.top_bytes()));
    }
    EnterRoom(entry, *offset);
  }
}

bool OnDemandMemory::has_content(Block block) const {
  const Entry& entry = At(block);
  return entry.on_device || entry.host != nullptr;
}

bool OnDemandMemory::resident(Block block) const { return At(block).offset >= 0; }

Bytes OnDemandMemory::offset(Block block) const { return At(block).offset; }

const std::byte* OnDemandMemory::host(Block block) const { return At(block).host; }

OnDemandStats OnDemandMemory::stats() const {
  OnDemandStats stats = stats_;
  stats.footprint_bytes = rooms_.top_bytes();
  return stats;
}

}  // namespace plimsoll::exec

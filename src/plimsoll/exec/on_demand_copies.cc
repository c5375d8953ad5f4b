// SPDX-License-Identifier: Apache-2.0
//
// How on-demand memory moves contents.
#include <algorithm>
#include <cstring>
#include <exception>

#include "plimsoll/base/error.h"
#include "plimsoll/exec/on_demand.h"
#include "plimsoll/exec/undo_internal.h"

namespace plimsoll::exec {

using device::Stream;

void OnDemandMemory::Evict(std::vector<Leaving> leaving) {
  // A content that is on the host already, or nowhere, needs no copy. It leaves first, so that
  // nobody takes its host copy for one that can be done without.
  std::erase_if(leaving, [this](const Leaving& one) {
    if (one.entry->on_device && one.entry->host == nullptr) return false;
    LeaveRoom(one.entry);
    return true;
  });
  SaveToHost(leaving);
  for (const Leaving& gone : leaving) LeaveRoom(gone.entry);
}

void OnDemandMemory::SaveToHost(std::vector<Leaving> leaving) {
  if (leaving.empty()) return;
  std::vector<Leaving> taken;
  internal::Undo undo([this, &taken] {
    // Copies may be under way from rooms that go on being used.
    SynchronizeQuietly();
    for (const Leaving& one : taken) slab_.Release(one.host);
  });
  for (Leaving& one : leaving) {
    if (one.host != nullptr) continue;
    one.host = TakeHost(one.entry->size_bytes);
    taken.push_back(one);
  }
  backend_.Record(computed_, Stream::kCompute);
  backend_.Wait(Stream::kCopyOut, computed_);
  for (const Leaving& one : leaving) {
    backend_.CopyOut(one.host, AddressOf(*one.entry), one.entry->size_bytes);
  }
  backend_.Record(copied_, Stream::kCopyOut);
  backend_.Synchronize(copied_);
  undo.Cancel();
  for (const Leaving& one : leaving) {
    one.entry->host = one.host;
    one.entry->borrowed = true;
    ++stats_.copies_out;
    stats_.copied_out_bytes += one.entry->size_bytes;
  }
  for (const Leaving& one : taken) one.entry->borrowed = false;
}

void OnDemandMemory::Fetch(const std::vector<Entry*>& entries) {
  std::vector<Entry*> absent;
  for (Entry* entry : entries) {
    if (!entry->on_device && entry->host != nullptr) absent.push_back(entry);
  }
  if (absent.empty()) return;
  internal::Undo undo([this] { SynchronizeQuietly(); });
  backend_.Record(computed_, Stream::kCompute);
  backend_.Wait(Stream::kCopyIn, computed_);
  for (const Entry* entry : absent) {
    backend_.CopyIn(AddressOf(*entry), entry->host, entry->size_bytes);
  }
  backend_.Record(copied_, Stream::kCopyIn);
  backend_.Wait(Stream::kCompute, copied_);
  undo.Cancel();
  for (Entry* entry : absent) {
    entry->on_device = true;
    ++stats_.copies_in;
    stats_.copied_in_bytes += entry->size_bytes;
  }
}

bool OnDemandMemory::Shift(Entry* entry, Bytes to) {
  const Bytes from = entry->offset;
  if (!rooms_.Move(from, to)) return false;
  internal::Undo undo([this, from, to] { (void)rooms_.Move(to, from); });
  if (entry->on_device) {
    backend_.Move(base_ + to, base_ + from, entry->size_bytes);
    ++stats_.moves;
    stats_.moved_bytes += entry->size_bytes;
  }
  undo.Cancel();
  // What it has left behind, above or below.
  const Bytes end = from + entry->size_bytes;
  const Bytes begin = to < from ? std::max(from, to + entry->size_bytes) : from;
  backend_.Discard(base_ + begin, (to < from ? end : std::min(end, to)) - begin);
  entry->offset = to;
  stats_.peak_footprint_bytes = std::max(stats_.peak_footprint_bytes, rooms_.top_bytes());
  return true;
}

std::byte* OnDemandMemory::TakeHost(Bytes size_bytes) {
  try {
    return slab_.Take(size_bytes);
  } catch (const OutOfMemory&) {
    if (!ReleaseCopies()) throw;
    return slab_.Take(size_bytes);
  }
}

bool OnDemandMemory::ReleaseCopies() {
  bool released = false;
  for (auto& [block, entry] : entries_) {
    if (!entry.on_device || entry.host == nullptr || entry.borrowed) continue;
    ReleaseHost(&entry);
    released = true;
  }
  return released;
}

void OnDemandMemory::CopyOnHost(Entry* entry, std::byte* to, bool borrowed) {
  if (backend_.capabilities().runs) {
    std::memcpy(to, entry->host, static_cast<std::size_t>(entry->size_bytes));
  }
  ReleaseHost(entry);
  entry->host = to;
  entry->borrowed = borrowed;
}

void OnDemandMemory::SynchronizeQuietly() noexcept {
  try {
    backend_.Synchronize();
  } catch (const std::exception&) {
    // Whoever asked is throwing already, or waits for nothing any more.
  }
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/host_slab.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"

namespace plimsoll::exec {

HostSlab::HostSlab(device::Backend* backend, Bytes limit_bytes, Bytes chunk_bytes)
    : backend_(*backend),
      limit_bytes_(std::max<Bytes>(limit_bytes, 0)),
      chunk_bytes_(std::max<Bytes>(chunk_bytes, 1)) {}

HostSlab::~HostSlab() {
  try {
    backend_.Synchronize();
  } catch (const std::exception&) {
    // A copy failed that nobody waits for any more; the streams are idle all the same.
  }
  for (const auto& [address, chunk] : chunks_) backend_.FreeHost(address);
}

std::byte* HostSlab::Take(Bytes size_bytes) {
  PLIMSOLL_CHECK(size_bytes > 0, fmt::format("asked for {} bytes", size_bytes));
  std::byte* address = nullptr;
  std::optional<Bytes> offset;
  for (auto& [chunk_address, chunk] : chunks_) {
    offset = chunk.space.Take(size_bytes);
    address = chunk_address;
    if (offset) break;
  }
  if (!offset) offset = Grow(size_bytes, &address).space.Take(size_bytes);
  used_bytes_ += size_bytes;
  peak_used_bytes_ = std::max(peak_used_bytes_, used_bytes_);
  return address + *offset;
}

HostSlab::Chunks::value_type& HostSlab::ChunkOf(const std::byte* address) {
  const auto after = chunks_.upper_bound(address);
  PLIMSOLL_CHECK(after != chunks_.begin(), fmt::format("{} is in no chunk", fmt::ptr(address)));
  return *std::prev(after);
}

void HostSlab::Release(std::byte* address) {
  auto& [chunk_address, chunk] = ChunkOf(address);
  const auto size_bytes = chunk.space.Release(address - chunk_address);
  PLIMSOLL_CHECK(size_bytes.has_value(), fmt::format("no range begins at {}", fmt::ptr(address)));
  used_bytes_ -= *size_bytes;
}

void HostSlab::Split(std::byte* address, std::span<const Part> parts) {
  Release(address);
  auto& [chunk_address, chunk] = ChunkOf(address);
  for (const Part& part : parts) {
    const Bytes offset = address - chunk_address + part.offset;
    const bool taken = chunk.space.TakeAt(offset, part.size_bytes);
    PLIMSOLL_CHECK(taken, fmt::format("parts overlap: {} bytes at {}", part.size_bytes, offset));
    used_bytes_ += part.size_bytes;
  }
}

HostSlab::Chunk& HostSlab::Grow(Bytes size_bytes, std::byte** address) {
  if (size_bytes > limit_bytes_ - reserved_bytes_) Trim();
  const Bytes left_bytes = limit_bytes_ - reserved_bytes_;
  if (size_bytes > left_bytes) {
    throw OutOfMemory(
        size_bytes, limit_bytes_ - used_bytes_,
        fmt::format("host memory for what has left the device is limited to {}, of which {} are "
                    "in use: raise the host's limit, raise the device's limit, or use a smaller "
                    "batch",
                    FormatBytes(limit_bytes_), FormatBytes(used_bytes_)));
  }
  const auto add = [&]() -> Chunk& {
    const Bytes most_bytes = std::max(size_bytes, chunk_bytes_);
    return AddChunk(std::min(most_bytes, limit_bytes_ - reserved_bytes_), size_bytes, address);
  };
  try {
    return add();
  } catch (const OutOfMemory&) {
    if (!Trim()) throw;
    return add();
  }
}

HostSlab::Chunk& HostSlab::AddChunk(Bytes most_bytes, Bytes least_bytes, std::byte** address) {
  Bytes size_bytes = most_bytes;
  for (;;) {
    try {
      *address = backend_.AllocateHost(size_bytes);
      break;
    } catch (const OutOfMemory&) {
      was_refused_ = true;
      if (size_bytes <= least_bytes) throw;
      size_bytes = std::max(size_bytes - (size_bytes + 3) / 4, least_bytes);
    }
  }
  if (size_bytes < most_bytes) {
    chunk_bytes_ = std::min(chunk_bytes_, size_bytes);
    if (most_bytes > refused_bytes_) {
      refused_bytes_ = most_bytes;
      got_bytes_ = size_bytes;
    }
  }
  reserved_bytes_ += size_bytes;
  return chunks_.emplace(*address, Chunk{FreeSpace(size_bytes), size_bytes}).first->second;
}

Bytes HostSlab::Offer(Bytes most_bytes) {
  Bytes free_bytes = 0;
  for (const auto& [address, chunk] : chunks_) {
    const bool empty = chunk.space.blocks().empty();
    const Bytes hole = chunk.space.largest_hole_bytes();
    // A hole between ranges may begin at any byte.
    free_bytes = std::max(free_bytes, empty ? hole : hole - std::min(hole, kDefaultAlignment));
  }
  const Bytes asked_bytes = std::min(most_bytes, limit_bytes_ - reserved_bytes_);
  // A slab of a thousandth is of no use.
  const Bytes least_bytes = std::max(free_bytes, asked_bytes / 1024) + 1;
  if (asked_bytes < least_bytes) return std::min(free_bytes, most_bytes);
  try {
    std::byte* address = nullptr;
    return AddChunk(asked_bytes, least_bytes, &address).size_bytes;
  } catch (const OutOfMemory&) {
    return free_bytes;
  }
}

bool HostSlab::Trim() {
  const auto empty = [](const auto& chunk) { return chunk.second.space.blocks().empty(); };
  if (std::none_of(chunks_.begin(), chunks_.end(), empty)) return false;
  backend_.Synchronize();
  for (auto chunk = chunks_.begin(); chunk != chunks_.end();) {
    if (!empty(*chunk)) {
      ++chunk;
      continue;
    }
    backend_.FreeHost(chunk->first);
    reserved_bytes_ -= chunk->second.size_bytes;
    chunk = chunks_.erase(chunk);
  }
  return true;
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/backend.h"
#include "plimsoll/exec/free_space.h"

namespace plimsoll::exec {

/// Host memory: for blocks that leave the device on demand, one by one, and for all that a plan has
/// on the host at once. It grows by chunks, as such memory is
/// slow to get (on a GPU it is pinned), and serves ranges out of them, best fit in the first chunk
/// that has room; addresses never change. Where the backend does not have a whole chunk, it is
/// asked for a quarter less, and again, down to what is needed.
///
///     chunk ├─ range ─┼── free ──┼─ range ─┤   chunk ├──── range ────┼─ free ─┤   … up to the
///     limit
///
/// Memory goes back to the backend when the slab ends, by Trim(), or where empty chunks stand in
/// the way of a larger one, under the limit or because the backend has no more. Not thread-safe.
class HostSlab {
 public:
  /// `limit_bytes` bounds the sum of the chunks. Keeps a reference to the backend, which outlives
  /// it.
  explicit HostSlab(device::Backend* backend, Bytes limit_bytes = kMaxBytes,
                    Bytes chunk_bytes = Bytes{64} << 20);
  ~HostSlab();
  HostSlab(const HostSlab&) = delete;
  HostSlab& operator=(const HostSlab&) = delete;

  /// Returns an aligned range. Throws OutOfMemory if the limit, or the backend, has no room for it;
  /// no range has changed then. REQUIRES: size_bytes > 0.
  [[nodiscard]] std::byte* Take(Bytes size_bytes);
  /// Sees to it that Take() has a range that is as large as can be had, up to this, and returns how
  /// large: all of it, a quarter less, and so on, or whatever is free already.
  [[nodiscard]] Bytes Offer(Bytes most_bytes);
  /// Gives a range back. Commands that use it may still be under way: whoever takes it next orders
  /// itself after them, and memory that goes back to the backend is waited for.
  /// REQUIRES: Take() returned this address.
  void Release(std::byte* address);

  /// A part of a range.
  struct Part {
    Bytes offset;
    Bytes size_bytes;
  };
  /// Gives a range back but for some parts of it, each of which is a range of its own from here on.
  /// REQUIRES: Take() returned this address; the parts are inside, disjoint and not empty.
  void Split(std::byte* address, std::span<const Part> parts);

  /// Gives empty chunks back to the backend; returns whether there were any. Throws what its
  /// streams still had to throw.
  bool Trim();

  /// Whether the backend has ever not had what it was asked for.
  bool was_refused() const { return was_refused_; }
  /// The most that it was asked for when it had less, and what it had; 0 if that never was.
  Bytes refused_bytes() const { return refused_bytes_; }
  Bytes got_bytes() const { return got_bytes_; }

  Bytes limit_bytes() const { return limit_bytes_; }
  Bytes used_bytes() const { return used_bytes_; }
  Bytes peak_used_bytes() const { return peak_used_bytes_; }
  Bytes reserved_bytes() const { return reserved_bytes_; }  ///< The sum of the chunks.

 private:
  struct Chunk {
    FreeSpace space;
    Bytes size_bytes;
  };
  using Chunks = std::map<std::byte*, Chunk, std::less<>>;

  Chunks::value_type& ChunkOf(const std::byte* address);
  // Adds a chunk with room for `size_bytes`, larger if that can be had.
  Chunk& Grow(Bytes size_bytes, std::byte** address);
  // Adds the largest that can be had between these.
  Chunk& AddChunk(Bytes most_bytes, Bytes least_bytes, std::byte** address);

  device::Backend& backend_;
  const Bytes limit_bytes_;
  Bytes chunk_bytes_;  // What to ask for; less once it was refused.
  Chunks chunks_;
  Bytes used_bytes_ = 0;
  Bytes peak_used_bytes_ = 0;
  Bytes reserved_bytes_ = 0;
  bool was_refused_ = false;
  Bytes refused_bytes_ = 0;
  Bytes got_bytes_ = 0;
};

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "plimsoll/base/bytes.h"

namespace plimsoll::exec {

/// Serves blocks of an arena on demand: best fit over the holes between the live blocks, which
/// merge again when a block is released. It deals in offsets and never touches memory.
///
///     0        blocks_             capacity
///     ├──────┬─────┬───┬────────┬─────┤
///     │ live │ hole│ li│ hole   │ live│
///     └──────┴─────┴───┴────────┴─────┘
///
/// Every call is O(log n), but Take() also passes over holes that are large enough in bytes and too
/// small once the offset is aligned or raised to `lowest`. Not thread-safe.
class FreeSpace {
 public:
  /// An arena in which `blocks`, from offset to size, are live. O(n log n).
  /// REQUIRES: the sizes are positive, the blocks are disjoint and inside [0, capacity_bytes).
  explicit FreeSpace(Bytes capacity_bytes, std::map<Bytes, Bytes> blocks = {},
                     Bytes alignment = kDefaultAlignment);

  /// Takes an aligned block at or above `lowest` out of the smallest hole that has room for it, and
  /// returns its offset; nothing if no hole has. REQUIRES: size_bytes > 0, lowest >= 0.
  [[nodiscard]] std::optional<Bytes> Take(Bytes size_bytes, Bytes lowest = 0);

  /// Takes the block at exactly this offset, aligned or not; returns false if any byte of it is in
  /// use or outside. REQUIRES: size_bytes > 0.
  [[nodiscard]] bool TakeAt(Bytes offset, Bytes size_bytes);

  /// Gives the live block at `offset` back and returns its size; nothing, and nothing changes, if
  /// no live block begins there.
  [[nodiscard]] std::optional<Bytes> Release(Bytes offset);

  /// The live blocks, from offset to size.
  const std::map<Bytes, Bytes>& blocks() const { return blocks_; }
  Bytes free_bytes() const { return free_bytes_; }
  Bytes largest_hole_bytes() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  using Holes = std::map<Bytes, Bytes>;

  /// Enters a hole unless it is empty.
  void AddHole(Bytes offset, Bytes size_bytes);
  void RemoveHole(Holes::iterator hole);
  /// Makes [offset, offset + size_bytes), a part of `hole`, a live block.
  void Carve(Holes::iterator hole, Bytes offset, Bytes size_bytes);

  Bytes alignment_;
  Bytes free_bytes_ = 0;
  std::map<Bytes, Bytes> blocks_;
  Holes holes_;                                // From offset to size; no two touch.
  std::set<std::pair<Bytes, Bytes>> by_size_;  // The same holes as (size, offset).
};

}  // namespace plimsoll::exec

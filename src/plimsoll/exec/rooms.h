// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/exec/free_space.h"
#include "plimsoll/exec/ledger.h"

namespace plimsoll::exec {

/// Which block has which room in an arena: FreeSpace with names on it, and the way to make one hole
/// of many. It deals in offsets and never touches memory. Every change is told to a ledger.
class Rooms {
 public:
  /// A block that moves from one offset to another.
  struct Shift {
    Block block = kNoBlock;
    Bytes from = 0;
    Bytes to = 0;
    Bytes size_bytes = 0;
  };

  /// Keeps a reference to the ledger, which outlives it.
  Rooms(Bytes capacity_bytes, Ledger* ledger);
  /// Leaves the ledger without these rooms.
  ~Rooms();
  Rooms(const Rooms&) = delete;
  Rooms& operator=(const Rooms&) = delete;

  /// Gives a block the smallest hole that has room for it, aligned, and returns its offset; nothing
  /// if no hole has. REQUIRES: size_bytes > 0, and the block has no room yet.
  [[nodiscard]] std::optional<Bytes> Take(Block block, Bytes size_bytes);
  /// Gives a block exactly this room; returns false if any of it is in use or outside.
  [[nodiscard]] bool TakeAt(Block block, Bytes offset, Bytes size_bytes);
  /// Gives the room at `offset` back. REQUIRES: a room begins there.
  void Release(Bytes offset);
  /// Moves a room; the new one may overlap the old. Returns false, and nothing has changed, if it
  /// would overlap another. REQUIRES: a room begins at `from`.
  [[nodiscard]] bool Move(Bytes from, Bytes to);

  /// Whether blocks whose sizes, each rounded up to the alignment, add up to this can be given
  /// rooms after moving others if need be.
  bool HasRoomFor(Bytes aligned_bytes) const {
    return aligned_bytes_ <= usable_bytes_ - aligned_bytes;
  }
  /// The least bytes to move, all downwards and in this order, for a hole of that many bytes;
  /// nothing has changed yet. O(n). REQUIRES: HasRoomFor() it.
  ///
  ///     ├ a ┤   ├ b ┤ ├ c ┤  ├ d ┤          ├ a ┤   ├ b ┤├ c ┤    ├ d ┤
  std::vector<Shift> ShiftsFor(Bytes size_bytes) const;

  Bytes capacity_bytes() const { return capacity_bytes_; }
  /// Blocks whose sizes, rounded up, add up to more never fit.
  Bytes usable_bytes() const { return usable_bytes_; }
  Bytes used_bytes() const { return capacity_bytes_ - space_.free_bytes(); }
  /// The highest end of any room.
  Bytes top_bytes() const;
  std::int64_t count() const { return std::ssize(blocks_); }
  /// Who has which room, from the offset.
  const std::map<Bytes, Block>& blocks() const { return blocks_; }

 private:
  void Enter(Block block, Bytes offset, Bytes size_bytes);
  Bytes SizeAt(Bytes offset) const;

  const Bytes capacity_bytes_;
  const Bytes usable_bytes_;
  Ledger& ledger_;
  FreeSpace space_;
  std::map<Bytes, Block> blocks_;  // From offset; the same as the live blocks of space_.
  Bytes aligned_bytes_ = 0;        // The sum of sizes, each rounded up.
};

}  // namespace plimsoll::exec

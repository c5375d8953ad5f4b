// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/backend.h"
#include "plimsoll/exec/device.h"
#include "plimsoll/exec/host_slab.h"
#include "plimsoll/exec/ledger.h"
#include "plimsoll/exec/rooms.h"

namespace plimsoll::exec {

/// Where Arrange() puts the content of a block: on the device, on the host, the same in both, or,
/// by default, nowhere: the content is not needed and is given up.
struct Target {
  Block block = kNoBlock;
  Bytes device_offset = -1;   ///< Negative: not on the device.
  std::byte* host = nullptr;  ///< Memory of the caller, of the block's size; none: not there.
};

/// What on-demand memory has done so far, and where it stands.
struct OnDemandStats {
  std::int64_t copies_out = 0;
  std::int64_t copies_in = 0;
  std::int64_t moves = 0;  ///< Within the device.
  Bytes copied_out_bytes = 0;
  Bytes copied_in_bytes = 0;
  Bytes moved_bytes = 0;
  Bytes live_bytes = 0;       ///< Of all blocks, wherever they are.
  Bytes footprint_bytes = 0;  ///< The highest top of what is on the device now.
  Bytes peak_footprint_bytes = 0;
};

/// Serves the blocks of a program from an arena that may be smaller than their sum, without knowing
/// what comes next: what an op needs is brought in before it, and what was not used for the longest
/// time leaves for the host slab to make room (least recently used). It holds the limit from the
/// first call on, so it is what serves while an iteration is being learned, and wherever a program
/// departs from its plan.
///
///                 Pin: room       written                    Pin: room, copy in
///     no content ─────────▶ room ─────────▶ on the device ◀──────────────────── on the host
///                                            │        ▲ written      │                ▲
///                                            │        └───────────── on both ◀────────┘
///                                            └──── copy out ──▶                 (evicted)
///
/// A host copy is always current: it is released when the block is written. A block that has one
/// leaves the device without a copy. Where something must leave, a little more does. When free
/// bytes suffice and no hole does, blocks are moved together.
///
/// Streams: a copy out waits for all compute issued so far, and the caller waits for it, so that a
/// room is free when it is given away; a copy in waits for all compute issued so far, and compute
/// for it. Rooms and host ranges whose last user is compute can so be given away at once.
///
/// After an exception everything is where the books say, and calls may go on. Not thread-safe.
class OnDemandMemory {
 public:
  /// The arena is [base, base + capacity_bytes). Keeps references to backend, slab and ledger,
  /// which outlive it, as does the arena.
  OnDemandMemory(device::Backend* backend, std::byte* base, Bytes capacity_bytes, HostSlab* slab,
                 Ledger* ledger);
  /// Gives rooms and host ranges back; contents are lost.
  ~OnDemandMemory();
  OnDemandMemory(const OnDemandMemory&) = delete;
  OnDemandMemory& operator=(const OnDemandMemory&) = delete;

  /// Makes a block known: without content and without memory until it is first used; with content
  /// that is on the device at that offset, and on the host too if `host` is given; or with content
  /// on the host. Host memory given here stays the caller's, is never written, and must stay until
  /// the block is written or removed, or Settle() or Arrange() has returned.
  /// REQUIRES: the block is not known, nothing that is known overlaps it on the device, and no copy
  /// of its content is still under way that compute does not wait for.
  void Add(Block block, Bytes size_bytes);
  void AddAt(Block block, Bytes size_bytes, Bytes offset, std::byte* host = nullptr);
  void AddOnHost(Block block, Bytes size_bytes, std::byte* host);
  /// With content in a range of the slab, which is the block's from here on.
  void AddOnSlab(Block block, Bytes size_bytes, std::byte* range);
  /// Forgets a block and what it holds. REQUIRES: it is known and not pinned.
  void Remove(Block block);
  /// Forgets all blocks; what is on the device stays there. REQUIRES: nothing is pinned.
  void Clear();

  /// Brings the blocks of an op to the device and keeps them there until Unpin(). Written ones keep
  /// their old content until it is overwritten. Returns addresses in the order of the lists; those
  /// of empty blocks must not be used. Throws OutOfMemory, naming the op, if its blocks alone do
  /// not fit, also if the slab is full, and DeviceError if a copy fails; nothing is pinned then.
  /// REQUIRES: nothing is pinned; the blocks are known.
  void Pin(std::span<const Block> reads, std::span<const Block> writes, std::string_view op_name,
           std::vector<std::byte*>* read_addresses, std::vector<std::byte*>* write_addresses);
  void Unpin();

  /// Moves contents until every target is met, and nothing else is on the device; what has content
  /// and no target goes to the slab. A block without content gets the room and no more. Returns
  /// when all of it is done. Host memory of targets stays the caller's, as in AddAt().
  /// Throws as Pin() does; blocks may be anywhere then. REQUIRES: nothing is pinned; the blocks are
  /// known, and no two targets overlap.
  void Arrange(std::span<const Target> targets);
  /// Moves what is in host memory of callers into the slab, so that they may give it up.
  void Settle();
  /// Gives back a range of the slab that targets were in, but for what is there: that is the
  /// blocks' own from here on. REQUIRES: no other host memory of callers is in use.
  void TakeOver(std::byte* range);
  /// Gives ranges of the slab back whose content is on the device too: they are only there to save
  /// copies. Returns whether there were any.
  bool ReleaseCopies();

  bool knows(Block block) const { return entries_.contains(block); }
  /// These want a known block.
  bool has_content(Block block) const;
  bool resident(Block block) const;          ///< Whether it has a room on the device.
  Bytes offset(Block block) const;           ///< -1 if it has none.
  const std::byte* host(Block block) const;  ///< Its current host copy; null if it has none.

  Bytes capacity_bytes() const { return rooms_.capacity_bytes(); }
  OnDemandStats stats() const;

 private:
  struct Entry {
    Block block = kNoBlock;
    Bytes size_bytes = 0;
    Bytes offset = -1;          // Of its room; -1 if it has none.
    bool on_device = false;     // Whether the room holds the content.
    std::byte* host = nullptr;  // The content, if it is on the host.
    bool borrowed = false;      // Whether that memory is a caller's.
    bool pinned = false;
    std::int64_t last_use = 0;  // Unique among blocks with rooms.
  };
  // An entry that leaves the device, and where to; to a range of the slab if to nullptr.
  struct Leaving {
    Entry* entry = nullptr;
    std::byte* host = nullptr;
  };

  Entry& Insert(Block block, Bytes size_bytes);
  void Forget(Entry* entry);
  Entry& At(Block block);
  const Entry& At(Block block) const;
  std::byte* AddressOf(const Entry& entry) const {
    return base_ + std::max<Bytes>(entry.offset, 0);
  }

  // Rooms. The first two note the room and its use.
  void EnterRoom(Entry* entry, Bytes offset);
  void Touch(Entry* entry);
  void ReleaseRoom(Entry* entry);
  // And what it holds is no longer needed there.
  void LeaveRoom(Entry* entry);
  void ReleaseHost(Entry* entry);
  // Moves a room and what it holds; returns false if another is in the way.
  bool Shift(Entry* entry, Bytes to);

  // Pin().
  std::vector<Entry*> Collect(std::span<const Block> reads, std::span<const Block> writes);
  void CheckFits(const std::vector<Entry*>& entries, std::string_view op_name) const;
  void MakeRoomFor(Bytes aligned_bytes);
  // What must go for so much room, or all that can; and of what is next, no more than to spare.
  std::vector<Leaving> LeastRecentlyUsed(Bytes aligned_bytes, Bytes spare_bytes) const;
  void TakeRooms(const std::vector<Entry*>& entries);

  // Copies, in batches. Each returns when its copies have ended, or are waited for by compute.
  void Evict(std::vector<Leaving> leaving);
  // They keep their rooms. REQUIRES: the contents are on the device and nowhere else.
  void SaveToHost(std::vector<Leaving> leaving);
  void Fetch(const std::vector<Entry*>& entries);
  std::byte* TakeHost(Bytes size_bytes);
  void SynchronizeQuietly() noexcept;
  // Only while no copy of it is under way.
  void CopyOnHost(Entry* entry, std::byte* to, bool borrowed);

  // Arrange().
  using Wanted = std::unordered_map<Block, const Target*>;
  void Unborrow(const Wanted& wanted);
  void ClearTheWay(const Wanted& wanted);
  void PlaceOnDevice(std::span<const Target> targets);
  // Takes what got to its place off the list; returns whether anything has.
  bool ShiftToPlace(std::vector<const Target*>* misplaced);
  void EvictSome(std::vector<const Target*>* misplaced);
  void PlaceOnHost(std::span<const Target> targets);

  device::Backend& backend_;
  std::byte* const base_;
  HostSlab& slab_;
  Rooms rooms_;
  device::EventId computed_;
  device::EventId copied_;
  std::unordered_map<Block, Entry> entries_;
  std::map<std::int64_t, Entry*> by_use_;  // Those with rooms, by last use.
  std::vector<Entry*> pinned_;
  bool is_pinned_ = false;
  std::int64_t clock_ = 0;
  OnDemandStats stats_;
};

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "plimsoll/place/problem.h"

/// Internal to place/: what the models of online allocators share. A problem is turned back into
/// the calls that an allocator would have seen, and these are replayed on a model of it.
namespace plimsoll::place {

/// One call of an allocator.
struct Event {
  enum class Kind { kFree, kMalloc };

  Time time = 0;
  Kind kind = Kind::kMalloc;
  std::size_t buffer = 0;  ///< Index into the problem's buffers.

  friend bool operator==(const Event&, const Event&) = default;
};

/// Returns the calls in the order of time. At equal time frees come before mallocs, since lifetimes
/// are half-open, and otherwise the problem's order holds. Gaps are ignored: an online allocator
/// holds a block for the whole lifetime. Buffers of size zero make no calls. O(n log n).
std::vector<Event> ReplayEvents(const Problem& problem);

/// A stretch of address space.
struct Block {
  Bytes offset = 0;
  Bytes size_bytes = 0;

  friend bool operator==(const Block&, const Block&) = default;
};

/// Address space that is cut into blocks, used and free. Free blocks are found by best fit and
/// merged with free neighbours of the same segment. Every operation is O(log n) in blocks.
class BlockHeap {
 public:
  /// As good as endless: no sum of sizes reaches half of it.
  static constexpr Bytes kEndless = 2 * (kMaxBytes - 1);

  /// Adds one free block that is never merged with its neighbours.
  /// REQUIRES: it overlaps no other segment.
  void AddSegment(const Block& segment);

  /// Returns the smallest free block of at least `size_bytes`, the lowest of equals.
  std::optional<Block> FindBestFit(Bytes size_bytes) const;

  /// Marks the lowest `used_bytes` of a free block as used; the rest, if any, stays free.
  /// REQUIRES: `block` comes from FindBestFit(), nothing was taken or freed since, and
  /// 0 < used_bytes <= block.size_bytes.
  void Take(const Block& block, Bytes used_bytes);

  /// Frees the used block at `offset` and merges it with its free neighbours.
  void Free(Bytes offset);

 private:
  struct State {
    Bytes size_bytes;
    bool is_free;
    bool begins_segment;
  };
  using Iterator = std::map<Bytes, State>::iterator;

  /// Merges the free block `above` into the free block below it.
  void Merge(Iterator below, Iterator above);

  std::map<Bytes, State> blocks_;           // By offset; used and free.
  std::set<std::pair<Bytes, Bytes>> free_;  // Size and offset of the free ones.
};

/// A model of an allocator that knows nothing of the future.
class OnlineAllocator {
 public:
  virtual ~OnlineAllocator() = default;

  /// Every block that Malloc() returns begins at a multiple of this.
  virtual Bytes granularity() const = 0;
  /// Returns a block of at least `size_bytes`: all that is then unavailable to others.
  virtual Block Malloc(Bytes size_bytes) = 0;
  /// Takes back a block that Malloc() has returned.
  virtual void Free(const Block& block) = 0;
};

/// Replays the problem's events on `allocator`. The footprint is the highest end of any block.
///
/// An allocator grants its own alignment and is told of no other. Where that does not do, the
/// caller is modelled as callers behave: it asks for as much more as aligning may cost and places
/// the buffer at the first aligned offset in the block. Offsets of all other buffers are multiples
/// of granularity().
Placement Replay(const Problem& problem, OnlineAllocator& allocator);

}  // namespace plimsoll::place

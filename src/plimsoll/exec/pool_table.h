// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/bytes.h"

/// The table that the runtime pool serves from, and what can be derived from it.
namespace plimsoll::exec {

/// One call of a cycle.
struct PoolStep {
  enum class Kind { kMalloc, kFree };

  Kind kind = Kind::kMalloc;
  Bytes size_bytes = 0;  ///< May be zero: then the block collides with nothing.
  Bytes offset = 0;      ///< Where the block is; of no meaning if the size is zero.
};

/// A block that is live whenever the cycle begins: a persistent variable, such as a weight, or one
/// that was carried over from the cycle before.
struct PoolBlock {
  std::int64_t variable = -1;  ///< The caller's number for it; only for messages.
  Bytes size_bytes = 0;
  Bytes offset = 0;
};

/// One cycle of mallocs and frees with planned offsets. The blocks that are live at its end are
/// those that were live at its beginning, so it can be repeated for ever.
struct PoolTable {
  std::vector<PoolStep> steps;
  std::vector<PoolBlock> initial;
  Bytes footprint_bytes = 0;            ///< No block reaches above this.
  Bytes alignment = kDefaultAlignment;  ///< Of blocks that are served on demand.
};

/// Replays the table and returns what is wrong with it, one sentence for each fault: a size or
/// offset out of range, a block that overlaps a live one or reaches above the footprint, a free of
/// what is not live, an end that differs from the beginning. O(n log n).
[[nodiscard]] std::vector<std::string> FindFaults(const PoolTable& table);

/// The blocks that are live at one moment.
struct LiveSet {
  std::map<Bytes, Bytes> blocks;  ///< From offset to size; sizes are positive.
  std::int64_t zero_blocks = 0;   ///< Blocks of size zero have no place, only a number.

  friend bool operator==(const LiveSet&, const LiveSet&) = default;
};

/// Returns what is live before step `position`. O(n log n).
/// REQUIRES: the table has no faults, position <= steps.size().
LiveSet LiveSetAt(const PoolTable& table, std::size_t position);

/// A digest of a live set, kept up to date in O(1) at each call. Equal sets have equal signatures;
/// different sets have different ones but for one chance in 2^64.
struct LiveSignature {
  std::uint64_t hash = 0;  ///< XOR over the blocks of positive size.
  std::int64_t blocks = 0;
  std::int64_t zero_blocks = 0;
  Bytes bytes = 0;

  void Add(Bytes offset, Bytes size_bytes);
  void Remove(Bytes offset, Bytes size_bytes);

  friend bool operator==(const LiveSignature&, const LiveSignature&) = default;
};

/// The last few calls, kind and size of each, by which a place in the cycle is recognised.
class CallHistory {
 public:
  static constexpr std::size_t kCalls = 8;

  void Add(PoolStep::Kind kind, Bytes size_bytes);
  std::uint64_t hash() const;

 private:
  std::array<std::uint64_t, kCalls> calls_ = {};  // A ring.
  std::size_t oldest_ = 0;
};

/// Adds the last `count` calls, or the last kCalls if that is fewer, that a program has made before
/// step `position` if it follows the table, cycle after cycle.
/// REQUIRES: position <= steps.size().
void AddCallsBefore(const PoolTable& table, std::size_t position, std::size_t count,
                    CallHistory* history);

/// Answers where in the cycle a program is. Positions are below max(1, steps.size()); the end of
/// the cycle is position 0. Immutable, so safe to read from any thread.
class PoolIndex {
 public:
  /// REQUIRES: the table has no faults. O(n).
  explicit PoolIndex(const PoolTable& table);

  /// Returns the signature of what is live before step `position`.
  const LiveSignature& live_at(std::size_t position) const { return live_[position]; }

  /// Returns the only position that these calls lead to; nothing if there are none or several.
  std::optional<std::size_t> FindCalls(const CallHistory& history) const;

  /// Returns the only position at which this is live; 0 if it is the initial set, even if that
  /// comes back within the cycle; nothing otherwise.
  std::optional<std::size_t> FindLiveSet(const LiveSignature& live) const;

 private:
  std::vector<LiveSignature> live_;
  std::unordered_map<std::uint64_t, std::size_t> by_calls_;
  std::unordered_map<std::uint64_t, std::size_t> by_live_set_;
};

}  // namespace plimsoll::exec

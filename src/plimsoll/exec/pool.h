// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/exec/free_space.h"
#include "plimsoll/exec/pool_table.h"

namespace plimsoll::exec {

/// What a pool has done so far, and where it stands.
struct PoolStats {
  std::int64_t planned_calls = 0;    ///< Served from the table.
  std::int64_t on_demand_calls = 0;  ///< Served while the program was out of step.
  std::int64_t drifts = 0;           ///< Times that planned service was left.
  std::int64_t returns = 0;          ///< Times that it was resumed.
  Bytes live_bytes = 0;              ///< Of all live blocks, sizes as asked for.
  bool in_step = true;               ///< Whether the next call may be served from the table.
};

/// Serves the mallocs and frees of a program that repeats itself from a table of planned offsets
/// (the pool of SmartPool, paper 001, section V; by position, where the paper looks up a map), and
/// on demand wherever the program departs from it.
///
///               call matches the step at the cursor
///                 ┌──────┐                        ┌──────┐ any call: FreeSpace,
///                 │      ▼    first mismatch      │      ▼ planned offset if free
///               planned ──────────────────────▶ drifting
///                  ▲                                │
///                  └────────────────────────────────┘
///            the live set is the plan's at the cursor
///
/// Invariant: in planned service the live set is exactly the table's at the cursor. The table has
/// no faults, so no planned block can overlap a live one. At the first call that does not match,
/// the live set is rebuilt from the table, and from then on FreeSpace knows every live block.
/// Blocks that the plan does not expect go above the footprint where there is room, to leave the
/// plan's own places free.
///
/// A drifting pool looks for its place in the cycle: the cursor moves on at each call that matches
/// in kind and size, and is set where the last calls, or the live set, occur only once in the
/// cycle; or to the start where the live set is the initial one. So a program whose extra blocks
/// are gone and which repeats the cycle again is back in step by the next boundary at which nothing
/// but the initial blocks, at their places, is live. Blocks that are carried over a boundary settle
/// within three cycles if the capacity leaves room for strays above the footprint and the calls can
/// be told apart; otherwise they may take each other's places for ever, safely. An initial block
/// that was freed and allocated elsewhere for good keeps the pool drifting: it wants a new plan.
///
/// The pool hands out addresses and never touches the memory behind them. Every public call may be
/// made from any thread; a spin lock orders them. The order of calls is the program's business: two
/// threads that race drift, and nothing else happens. A planned call is O(1), drift and return are
/// O(n log n); a call on demand is O(log n), but for a malloc that finds no room above the
/// footprint, which passes over the holes below it.
class Pool {
 public:
  /// Serves from [base, base + capacity_bytes), in which the table's initial blocks are live.
  /// `base` must be aligned as the table says, or offsets are aligned where addresses are not.
  /// Throws Error if the table has faults or its footprint exceeds the capacity.
  Pool(void* base, Bytes capacity_bytes, PoolTable table);
  ~Pool() noexcept = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Returns the address of a block that overlaps no live one. All blocks of size zero have the
  /// same address, base + capacity, at which no other block can be. Throws Error if the size is
  /// negative and OutOfMemory if no hole is large enough; nothing has changed then.
  [[nodiscard]] void* Malloc(Bytes size_bytes);

  /// Gives a live block back. Throws Error if there is none at that address; nothing has changed
  /// then.
  void Free(void* block);

  /// Returns where an initial block of the table is.
  void* Address(const PoolBlock& block) const;

  PoolStats stats() const;

 private:
  /// Spins for a while, then yields between attempts: the holder may not be running.
  class SpinLock {
   public:
    void lock() {
      if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
        Wait();
    }
    void unlock() { taken_.store(false, std::memory_order_release); }

   private:
    void Wait();
    std::atomic<bool> taken_ = false;
  };

  /// What the fast path needs to know of a step.
  struct Service {
    Bytes size_bytes;        // Of a malloc; kFreeStep or kNoStep, both negative, otherwise.
    std::uintptr_t address;  // Of the block that is handed out or given back.
  };
  static constexpr Bytes kFreeStep = -1;
  static constexpr Bytes kNoStep = -2;

  // These two are called with the lock held and release it.
  [[gnu::noinline]] void* MallocOnDemand(Bytes size_bytes);
  [[gnu::noinline]] void FreeOnDemand(std::uintptr_t address);

  // All of these want the lock held.
  void Advance() {
    if (++next_ == end_) [[unlikely]] {
      next_ = services_.data();
      ++laps_;
    }
  }
  std::size_t cursor() const { return static_cast<std::size_t>(next_ - services_.data()); }
  void set_cursor(std::size_t position) { next_ = services_.data() + position; }
  // In planned service, the number of steps that were served since the last return.
  std::int64_t StepsSinceReturn() const { return StepsTravelled() - steps_at_return_; }
  std::int64_t StepsTravelled() const {
    return laps_ * std::ssize(services_) + (next_ - services_.data());
  }
  void RebuildIfInStep();
  Bytes Place(Bytes size_bytes);
  bool Expects(PoolStep::Kind kind, Bytes size_bytes) const;
  void Follow(PoolStep::Kind kind, Bytes size_bytes);

  std::uintptr_t AddressOf(Bytes offset, Bytes size_bytes) const;

  mutable SpinLock lock_;
  bool in_step_ = true;
  const Service* next_ = nullptr;  // The cursor; while drifting, a guess.
  const Service* end_ = nullptr;
  std::vector<Service> services_;  // One for each step; one that nothing matches if there is none.
  std::int64_t laps_ = 0;          // Times that the cursor has passed the end.

  const std::uintptr_t base_;
  const Bytes capacity_bytes_;
  const PoolTable table_;
  const PoolIndex index_;

  // Up to date only while drifting.
  FreeSpace free_space_;
  LiveSignature live_;
  CallHistory history_;

  std::int64_t steps_at_return_ = 0;  // StepsTravelled() then.
  std::int64_t planned_calls_ = 0;    // Until the last drift.
  std::int64_t on_demand_calls_ = 0;
  std::int64_t drifts_ = 0;
  std::int64_t returns_ = 0;
};

}  // namespace plimsoll::exec

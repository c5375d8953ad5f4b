// SPDX-License-Identifier: Apache-2.0
//
// A program that uses a pool, in memory that is not there. For tests only.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/exec/pool.h"

namespace plimsoll::exec {

inline constexpr auto kMalloc = PoolStep::Kind::kMalloc;
inline constexpr auto kFree = PoolStep::Kind::kFree;
inline constexpr std::uintptr_t kBase = std::uintptr_t{1}
                                        << 40;  // Nothing is there; nothing must be.

inline void* BasePointer() { return reinterpret_cast<void*>(kBase); }
inline Bytes OffsetOf(const void* block) {
  return static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(block) - kBase);
}

/// Fails a test by an exception, which both GoogleTest and RapidCheck understand.
inline void Require(bool condition, const std::string& claim) {
  if (!condition) throw std::logic_error("violated: " + claim);
}

/// Knows every live block and requires that a new one overlaps none of them. Thread-safe.
class Checker {
 public:
  explicit Checker(Bytes capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  void Add(const void* block, Bytes size_bytes) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Bytes offset = OffsetOf(block);
    if (size_bytes == 0) {
      Require(offset == capacity_bytes_, "an empty block is at the end of the arena");
      return;
    }
    Require(offset % kDefaultAlignment == 0, "a block is aligned");
    Require(offset >= 0 && offset + size_bytes <= capacity_bytes_, "a block is in the arena");
    const auto above = blocks_.lower_bound(offset);
    Require(above == blocks_.end() || offset + size_bytes <= above->first, "no overlap above");
    if (above != blocks_.begin()) {
      const auto below = std::prev(above);
      Require(below->first + below->second <= offset, "no overlap below");
    }
    blocks_[offset] = size_bytes;
  }

  void Remove(const void* block) {
    const std::lock_guard<std::mutex> guard(mutex_);
    blocks_.erase(OffsetOf(block));
  }

  Bytes live_bytes() const {
    Bytes sum = 0;
    for (const auto& [offset, size_bytes] : blocks_) sum += size_bytes;
    return sum;
  }

 private:
  std::mutex mutex_;
  const Bytes capacity_bytes_;
  std::map<Bytes, Bytes> blocks_;
};

/// A program that follows a table, or does not, and checks every block that it gets.
class Program {
 public:
  Program(PoolTable table, Bytes capacity_bytes)
      : table_(std::move(table)),
        pool_(BasePointer(), capacity_bytes, table_),
        checker_(capacity_bytes) {
    for (const PoolBlock& block : table_.initial) {
      void* address = pool_.Address(block);
      checker_.Add(address, block.size_bytes);
      held_[{block.offset, block.size_bytes}].push_back(address);
    }
  }

  // Makes the calls of steps [begin, end), whatever places the pool chooses.
  void Run(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) Call(table_.steps[i]);
  }
  void RunCycle() { Run(0, table_.steps.size()); }

  // Makes the calls of a cycle and requires that every block is where the table has it.
  void RunPlannedCycle() {
    for (const PoolStep& step : table_.steps) {
      Require(pool_.stats().in_step, "every call of the cycle is served by the plan");
      const void* block = Call(step);
      Require(step.size_bytes == 0 || OffsetOf(block) == step.offset, "the address is the plan's");
    }
    Require(pool_.stats().in_step, "the cycle ends in step");
    Require(pool_.stats().live_bytes == checker_.live_bytes(),
            "live bytes are those of the blocks");
  }

  // Runs regular cycles, and then one more that must be served as planned.
  void ExpectReturnWithin(int cycles) {
    while (cycles-- > 0) RunCycle();
    RunPlannedCycle();
    Require(pool_.stats().drifts == pool_.stats().returns, "every drift has ended");
  }

  void* Call(const PoolStep& step) {
    std::vector<void*>& held = held_[{step.size_bytes == 0 ? 0 : step.offset, step.size_bytes}];
    if (step.kind == kMalloc) {
      held.push_back(Malloc(step.size_bytes));
      return held.back();
    }
    void* block = held.back();
    held.pop_back();
    Free(block);
    return block;
  }

  void* Malloc(Bytes size_bytes) {
    void* block = pool_.Malloc(size_bytes);
    checker_.Add(block, size_bytes);
    return block;
  }

  void Free(void* block) {
    checker_.Remove(block);
    pool_.Free(block);
  }

  Pool& pool() { return pool_; }
  Checker& checker() { return checker_; }

 private:
  const PoolTable table_;
  Pool pool_;
  Checker checker_;
  std::map<std::pair<Bytes, Bytes>, std::vector<void*>> held_;  // By the table's (offset, size).
};

/// A small network: weights W, activations A to F with frees in reverse, workspaces in between.
inline PoolTable SmallNetwork() {
  return {.steps = {{kMalloc, 1024, 1024},  // 0: A
                    {kMalloc, 600, 2048},   // 1: workspace
                    {kFree, 600, 2048},     // 2
                    {kMalloc, 2048, 2048},  // 3: B
                    {kMalloc, 512, 4096},   // 4: C
                    {kMalloc, 300, 4608},   // 5: workspace
                    {kFree, 300, 4608},     // 6
                    {kMalloc, 700, 5120},   // 7: D
                    {kFree, 700, 5120},     // 8
                    {kMalloc, 900, 4608},   // 9: gradient of C
                    {kFree, 512, 4096},     // 10
                    {kFree, 2048, 2048},    // 11
                    {kMalloc, 0, 0},        // 12: empty
                    {kMalloc, 1500, 2048},  // 13: gradient of B
                    {kFree, 900, 4608},     // 14
                    {kFree, 0, 0},          // 15
                    {kFree, 1024, 1024},    // 16
                    {kFree, 1500, 2048}},   // 17
          .initial = {{.variable = 0, .size_bytes = 1000, .offset = 0}},
          .footprint_bytes = 6144};
}

/// A block of 512 bytes is carried over from each cycle to the next.
inline PoolTable CarryingTable() {
  return {.steps = {{kMalloc, 1024, 512},
                    {kFree, 512, 0},
                    {kMalloc, 2048, 1536},
                    {kFree, 1024, 512},
                    {kMalloc, 512, 0},
                    {kFree, 2048, 1536}},
          .initial = {{.variable = 3, .size_bytes = 512, .offset = 0}},
          .footprint_bytes = 3584};
}

}  // namespace plimsoll::exec

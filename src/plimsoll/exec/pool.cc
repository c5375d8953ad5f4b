// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/pool.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::exec {
namespace {

// Returns the table, or throws: members that need a table without faults are made after this.
PoolTable Checked(PoolTable table, Bytes capacity_bytes) {
  const std::vector<std::string> faults = FindFaults(table);
  if (!faults.empty()) {
    throw Error(
        fmt::format("the pool's table has {} faults and must be planned again; the first: {}",
                    faults.size(), faults.front()));
  }
  if (capacity_bytes < 0 || capacity_bytes >= kMaxBytes || table.footprint_bytes < 0 ||
      capacity_bytes < table.footprint_bytes) {
    throw Error(
        fmt::format("a pool of {} bytes cannot hold a plan of {} bytes; raise the limit or plan "
                    "for a lower one",
                    capacity_bytes, table.footprint_bytes));
  }
  return table;
}

}  // namespace

void Pool::SpinLock::Wait() {
  constexpr int kSpins = 64;
  int spins = 0;
  do {
    while (taken_.load(std::memory_order_relaxed)) {
      if (++spins >= kSpins) std::this_thread::yield();
    }
  } while (taken_.exchange(true, std::memory_order_acquire));
}

Pool::Pool(void* base, Bytes capacity_bytes, PoolTable table)
    : base_(reinterpret_cast<std::uintptr_t>(base)),
      capacity_bytes_(capacity_bytes),
      table_(Checked(std::move(table), capacity_bytes)),
      index_(table_),
      free_space_(capacity_bytes) {
  services_.reserve(table_.steps.size() + 1);
  for (const PoolStep& step : table_.steps) {
    const bool is_malloc = step.kind == PoolStep::Kind::kMalloc;
    services_.push_back(
        {is_malloc ? step.size_bytes : kFreeStep, AddressOf(step.offset, step.size_bytes)});
  }
  if (services_.empty()) services_.push_back({kNoStep, 0});
  next_ = services_.data();
  end_ = next_ + services_.size();
}

// Malloc and Free hold nothing but the fast path, which then needs no stack frame; what is left to
// do in the other case is a call in tail position, and takes over the lock.
void* Pool::Malloc(Bytes size_bytes) {
  lock_.lock();
  const Service& service = *next_;
  // No step has a negative size but the frees, so a negative one needs a look of its own.
  if (in_step_ && service.size_bytes == size_bytes && size_bytes >= 0) [[likely]] {
    Advance();
    void* block = reinterpret_cast<void*>(service.address);
    lock_.unlock();
    return block;
  }
  return MallocOnDemand(size_bytes);
}

void Pool::Free(void* block) {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  lock_.lock();
  const Service& service = *next_;
  if (in_step_ && service.size_bytes == kFreeStep && service.address == address) [[likely]] {
    Advance();
    lock_.unlock();
    return;
  }
  FreeOnDemand(address);
}

void* Pool::Address(const PoolBlock& block) const {
  return reinterpret_cast<void*>(AddressOf(block.offset, block.size_bytes));
}

PoolStats Pool::stats() const {
  const std::lock_guard<SpinLock> guard(lock_);
  PoolStats stats;
  stats.planned_calls = planned_calls_ + (in_step_ ? StepsSinceReturn() : 0);
  stats.on_demand_calls = on_demand_calls_;
  stats.drifts = drifts_;
  stats.returns = returns_;
  stats.live_bytes = in_step_ ? index_.live_at(cursor()).bytes : live_.bytes;
  stats.in_step = in_step_;
  return stats;
}

void* Pool::MallocOnDemand(Bytes size_bytes) {
  const std::lock_guard<SpinLock> guard(lock_, std::adopt_lock);
  if (size_bytes < 0) {
    throw Error(fmt::format("cannot allocate a block of {} bytes", size_bytes));
  }
  RebuildIfInStep();
  const Bytes offset = Place(size_bytes);
  live_.Add(offset, size_bytes);
  Follow(PoolStep::Kind::kMalloc, size_bytes);
  return reinterpret_cast<void*>(AddressOf(offset, size_bytes));
}

void Pool::FreeOnDemand(std::uintptr_t address) {
  const std::lock_guard<SpinLock> guard(lock_, std::adopt_lock);
  RebuildIfInStep();
  std::optional<Bytes> size_bytes;
  // An address below the base wraps around to an offset at which nothing is.
  const auto offset = static_cast<Bytes>(address - base_);
  if (address != AddressOf(0, 0)) {
    size_bytes = free_space_.Release(offset);
  } else if (live_.zero_blocks > 0) {
    size_bytes = 0;
  }
  if (!size_bytes) {
    throw Error(fmt::format(
        "cannot free {:#x}: no live block of the pool at [{:#x}, {:#x}) begins there; it was freed "
        "before or came from elsewhere",
        address, base_, AddressOf(0, 0)));
  }
  live_.Remove(offset, *size_bytes);
  Follow(PoolStep::Kind::kFree, *size_bytes);
}

// Makes the live set known to FreeSpace. Until Follow() the pool is still in planned service, so a
// call that fails after this has changed nothing.
void Pool::RebuildIfInStep() {
  if (!in_step_) return;
  free_space_ = FreeSpace(capacity_bytes_, LiveSetAt(table_, cursor()).blocks, table_.alignment);
  live_ = index_.live_at(cursor());
}

// Chooses an offset and makes it a live block.
Bytes Pool::Place(Bytes size_bytes) {
  if (size_bytes == 0) return capacity_bytes_;
  if (Expects(PoolStep::Kind::kMalloc, size_bytes)) {
    const Bytes planned = table_.steps[cursor()].offset;
    if (free_space_.TakeAt(planned, size_bytes)) return planned;
  }
  std::optional<Bytes> offset = free_space_.Take(size_bytes, table_.footprint_bytes);
  if (!offset) offset = free_space_.Take(size_bytes);
  if (offset) return *offset;
  throw OutOfMemory(
      size_bytes, free_space_.free_bytes(),
      fmt::format("the largest hole has {}; free blocks, or raise the limit of {}",
                  FormatBytes(free_space_.largest_hole_bytes()), FormatBytes(capacity_bytes_)));
}

bool Pool::Expects(PoolStep::Kind kind, Bytes size_bytes) const {
  if (table_.steps.empty()) return false;
  const PoolStep& step = table_.steps[cursor()];
  return step.kind == kind && step.size_bytes == size_bytes;
}

// Takes note of a call that was served on demand, looks for the place in the cycle that it leads
// to, and resumes planned service if what is live is what the plan has there.
void Pool::Follow(PoolStep::Kind kind, Bytes size_bytes) {
  if (in_step_) {
    in_step_ = false;
    ++drifts_;
    // A stay in planned service that was short leaves some of the history before it.
    AddCallsBefore(table_, cursor(), static_cast<std::size_t>(StepsSinceReturn()), &history_);
    planned_calls_ += StepsSinceReturn();
  }
  ++on_demand_calls_;
  if (Expects(kind, size_bytes)) Advance();
  history_.Add(kind, size_bytes);
  if (const std::optional<std::size_t> found = index_.FindCalls(history_)) set_cursor(*found);
  if (live_ != index_.live_at(cursor())) {
    const std::optional<std::size_t> found = index_.FindLiveSet(live_);
    if (!found) return;
    set_cursor(*found);
  }
  // Equal signatures are all but proof; planned service needs proof.
  const LiveSet plan = LiveSetAt(table_, cursor());
  if (plan.blocks != free_space_.blocks() || plan.zero_blocks != live_.zero_blocks) return;
  in_step_ = true;
  ++returns_;
  steps_at_return_ = StepsTravelled();
}

std::uintptr_t Pool::AddressOf(Bytes offset, Bytes size_bytes) const {
  return base_ + static_cast<std::uintptr_t>(size_bytes == 0 ? capacity_bytes_ : offset);
}

}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/pool_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace plimsoll::exec {
namespace {

constexpr std::size_t kAmbiguous = std::numeric_limits<std::size_t>::max();

// Spreads the bits of a number over all bits (the finaliser of SplitMix64).
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

std::uint64_t HashBlock(Bytes offset, Bytes size_bytes) {
  return Mix(Mix(static_cast<std::uint64_t>(offset)) + static_cast<std::uint64_t>(size_bytes));
}

std::uint64_t KeyOf(const LiveSignature& live) {
  return live.hash ^ Mix(static_cast<std::uint64_t>(live.zero_blocks));
}

// Keeps the live set of a table that may be wrong anywhere, and what was found.
class Replay {
 public:
  explicit Replay(Bytes footprint_bytes) : footprint_bytes_(footprint_bytes) {}

  void Place(Bytes offset, Bytes size_bytes, const std::string& what) {
    if (size_bytes < 0 || size_bytes >= kMaxBytes || offset < 0 || offset >= kMaxBytes) {
      faults_.push_back(fmt::format("{}: size or offset is out of range", what));
    } else if (size_bytes == 0) {
      ++live_.zero_blocks;
    } else if (const auto other = Overlapping(offset, size_bytes); other != live_.blocks.end()) {
      faults_.push_back(fmt::format("{}: overlaps the live block of {} bytes at {}", what,
                                    other->second, other->first));
    } else {
      live_.blocks.emplace(offset, size_bytes);
      if (offset + size_bytes > footprint_bytes_) {
        faults_.push_back(
            fmt::format("{}: reaches above the footprint of {} bytes", what, footprint_bytes_));
      }
    }
  }

  void Remove(Bytes offset, Bytes size_bytes, const std::string& what) {
    if (size_bytes == 0 && live_.zero_blocks > 0) {
      --live_.zero_blocks;
      return;
    }
    const auto block = live_.blocks.find(offset);
    if (block == live_.blocks.end() || block->second != size_bytes) {
      faults_.push_back(fmt::format("{}: is not live", what));
    } else {
      live_.blocks.erase(block);
    }
  }

  const LiveSet& live() const { return live_; }
  std::vector<std::string>& faults() { return faults_; }

 private:
  std::map<Bytes, Bytes>::const_iterator Overlapping(Bytes offset, Bytes size_bytes) const {
    const auto above = live_.blocks.lower_bound(offset);
    if (above != live_.blocks.end() && above->first < offset + size_bytes) return above;
    if (above == live_.blocks.begin()) return live_.blocks.end();
    const auto below = std::prev(above);
    return below->first + below->second > offset ? below : live_.blocks.end();
  }

  Bytes footprint_bytes_;
  LiveSet live_;
  std::vector<std::string> faults_;
};

// Enters `position` under `key`, or notes that the key stands for several positions.
void Enter(std::unordered_map<std::uint64_t, std::size_t>* index, std::uint64_t key,
           std::size_t position) {
  const auto [entry, inserted] = index->emplace(key, position);
  if (!inserted) entry->second = kAmbiguous;
}

}  // namespace

std::vector<std::string> FindFaults(const PoolTable& table) {
  Replay replay(table.footprint_bytes);
  for (const PoolBlock& block : table.initial) {
    replay.Place(block.offset, block.size_bytes,
                 fmt::format("initial block of variable {} ({} bytes at {})", block.variable,
                             block.size_bytes, block.offset));
  }
  const LiveSet initial = replay.live();
  for (std::size_t i = 0; i < table.steps.size(); ++i) {
    const PoolStep& step = table.steps[i];
    if (step.kind == PoolStep::Kind::kMalloc) {
      replay.Place(
          step.offset, step.size_bytes,
          fmt::format("step {} (malloc of {} bytes at {})", i, step.size_bytes, step.offset));
    } else {
      replay.Remove(
          step.offset, step.size_bytes,
          fmt::format("step {} (free of {} bytes at {})", i, step.size_bytes, step.offset));
    }
  }
  if (replay.live() != initial) {
    replay.faults().push_back(fmt::format(
        "the cycle ends with {} live blocks that are not the {} that it began with",
        replay.live().blocks.size() + static_cast<std::size_t>(replay.live().zero_blocks),
        initial.blocks.size() + static_cast<std::size_t>(initial.zero_blocks)));
  }
  return std::move(replay.faults());
}

LiveSet LiveSetAt(const PoolTable& table, std::size_t position) {
  LiveSet live;
  const auto place = [&live](Bytes offset, Bytes size_bytes) {
    if (size_bytes == 0) {
      ++live.zero_blocks;
    } else {
      live.blocks.emplace(offset, size_bytes);
    }
  };
  for (const PoolBlock& block : table.initial) place(block.offset, block.size_bytes);
  for (std::size_t i = 0; i < position; ++i) {
    const PoolStep& step = table.steps[i];
    if (step.kind == PoolStep::Kind::kMalloc) {
      place(step.offset, step.size_bytes);
    } else if (step.size_bytes == 0) {
      --live.zero_blocks;
    } else {
      live.blocks.erase(step.offset);
    }
  }
  return live;
}

void LiveSignature::Add(Bytes offset, Bytes size_bytes) {
  if (size_bytes == 0) {
    ++zero_blocks;
    return;
  }
  hash ^= HashBlock(offset, size_bytes);
  ++blocks;
  bytes += size_bytes;
}

void LiveSignature::Remove(Bytes offset, Bytes size_bytes) {
  if (size_bytes == 0) {
    --zero_blocks;
    return;
  }
  hash ^= HashBlock(offset, size_bytes);
  --blocks;
  bytes -= size_bytes;
}

void CallHistory::Add(PoolStep::Kind kind, Bytes size_bytes) {
  const auto size = static_cast<std::uint64_t>(size_bytes);
  calls_[oldest_] = Mix(2 * size + (kind == PoolStep::Kind::kFree ? 1 : 0));
  oldest_ = (oldest_ + 1) % kCalls;
}

std::uint64_t CallHistory::hash() const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kCalls; ++i) hash = Mix(hash + calls_[(oldest_ + i) % kCalls]);
  return hash;
}

void AddCallsBefore(const PoolTable& table, std::size_t position, std::size_t count,
                    CallHistory* history) {
  const std::size_t period = table.steps.size();
  if (period == 0) return;
  for (std::size_t back = std::min(count, CallHistory::kCalls); back > 0; --back) {
    const PoolStep& step = table.steps[(position + CallHistory::kCalls * period - back) % period];
    history->Add(step.kind, step.size_bytes);
  }
}

PoolIndex::PoolIndex(const PoolTable& table) {
  LiveSignature live;
  for (const PoolBlock& block : table.initial) live.Add(block.offset, block.size_bytes);
  live_.reserve(table.steps.size() + 1);
  live_.push_back(live);
  CallHistory history;
  AddCallsBefore(table, 0, CallHistory::kCalls, &history);
  for (std::size_t i = 0; i < table.steps.size(); ++i) {
    const PoolStep& step = table.steps[i];
    Enter(&by_calls_, history.hash(), i);
    Enter(&by_live_set_, KeyOf(live), i);
    history.Add(step.kind, step.size_bytes);
    if (step.kind == PoolStep::Kind::kMalloc) {
      live.Add(step.offset, step.size_bytes);
    } else {
      live.Remove(step.offset, step.size_bytes);
    }
    live_.push_back(live);
  }
  by_live_set_[KeyOf(live_.front())] = 0;
}

std::optional<std::size_t> PoolIndex::FindCalls(const CallHistory& history) const {
  const auto entry = by_calls_.find(history.hash());
  if (entry == by_calls_.end() || entry->second == kAmbiguous) return std::nullopt;
  return entry->second;
}

std::optional<std::size_t> PoolIndex::FindLiveSet(const LiveSignature& live) const {
  const auto entry = by_live_set_.find(KeyOf(live));
  if (entry == by_live_set_.end() || entry->second == kAmbiguous) return std::nullopt;
  if (live_[entry->second] != live) return std::nullopt;
  return entry->second;
}

}  // namespace plimsoll::exec

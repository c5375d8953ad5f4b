// SPDX-License-Identifier: Apache-2.0
//
// On-demand memory beside a reference that keeps every content in a vector. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/random_for_test.h"
#include "plimsoll/device/fault_backend.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/device/order_check_for_test.h"
#include "plimsoll/exec/on_demand.h"

namespace plimsoll::exec {

/// Programs on on-demand memory, whose reads are checked, as is every order between streams. What
/// an action throws leaves it, and the reference is then what it was before. Content that an action
/// is right to lose is given up in the reference before the action.
class CheckedMemory {
 public:
  struct Options {
    Bytes capacity_bytes = 16'384;
    Bytes host_limit_bytes = kMaxBytes;
    Nanoseconds jitter_ns = 0;
    std::uint64_t seed = 1;
  };

  explicit CheckedMemory(const Options& options)
      : options_(options),
        host_({.poison_on_free = true, .jitter_ns = options.jitter_ns, .seed = options.seed}),
        orders_(&host_),
        faults_(&orders_),
        ledger_(options.capacity_bytes, /*enabled=*/true),
        random_(options.seed),
        arena_(host_.AllocateDevice(options.capacity_bytes)),
        region_(host_.AllocateHost(kRegionBytes)),
        slab_(std::in_place, &faults_, options.host_limit_bytes, Bytes{8192}),
        memory_(std::in_place, &faults_, arena_, options.capacity_bytes, &*slab_, &ledger_) {}

  /// Expects that nothing is left behind.
  ~CheckedMemory() {
    memory_.reset();
    EXPECT_EQ(slab_->used_bytes(), 0);
    EXPECT_EQ(ledger_.used_bytes(), 0);
    EXPECT_LE(ledger_.peak_top_bytes(), options_.capacity_bytes);
    slab_.reset();
    EXPECT_EQ(orders_.violations(), std::vector<std::string>{});
    host_.FreeDevice(arena_);
    host_.FreeHost(region_);
    EXPECT_EQ(host_.device_bytes(), 0);
    EXPECT_EQ(host_.host_bytes(), 0);
  }
  CheckedMemory(const CheckedMemory&) = delete;
  CheckedMemory& operator=(const CheckedMemory&) = delete;

  device::FaultBackend& faults() { return faults_; }
  OnDemandMemory& memory() { return *memory_; }
  const Ledger& ledger() const { return ledger_; }
  const HostSlab& slab() const { return *slab_; }
  std::int64_t count() const { return std::ssize(contents_); }
  /// For runs in which contents may be lost before that is known.
  void CheckNoContents() { checks_contents_ = false; }

  /// The n-th live block, around; kNoBlock if there is none.
  Block Nth(std::size_t n) const {
    if (contents_.empty()) return kNoBlock;
    return std::next(contents_.begin(), static_cast<std::ptrdiff_t>(n % contents_.size()))->first;
  }

  Block Add(Bytes size_bytes) {
    const Block block{next_++};
    memory_->Add(block, size_bytes);
    contents_[block] = {size_bytes, std::nullopt};
    return block;
  }

  void Remove(Block block) {
    memory_->Remove(block);
    contents_.erase(block);
  }

  /// Runs an op that checks what it reads and writes a part of what it writes, all of it the first
  /// time.
  void Run(const std::vector<Block>& reads, const std::vector<Block>& writes) {
    std::vector<std::byte*> from;
    std::vector<std::byte*> to;
    memory_->Pin(reads, writes, "op", &from, &to);
    for (std::size_t i = 0; i < reads.size(); ++i) {
      orders_.Touch(from[i], contents_.at(reads[i]).size_bytes, /*writes=*/false);
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      orders_.Touch(to[i], contents_.at(writes[i]).size_bytes, /*writes=*/true);
    }
    faults_.Run([&](void*) {
      for (std::size_t i = 0; i < reads.size(); ++i) Check(reads[i], from[i]);
      for (std::size_t i = 0; i < writes.size(); ++i) {
        Check(writes[i], to[i]);
        Write(writes[i], to[i]);
      }
    });
    memory_->Unpin();
    CheckLimits();
  }

  /// Moves everything to places chosen at random, and looks there. If `hand_over`, the memory then
  /// forgets all of it and is told of it anew.
  void Arrange(bool hand_over) {
    const std::vector<Target> targets = ChooseTargets();
    memory_->Arrange(targets);
    Bytes on_device_bytes = 0;
    for (const Target& target : targets) {
      const Content& content = contents_.at(target.block);
      if (content.size_bytes == 0) continue;
      EXPECT_EQ(memory_->offset(target.block), std::max<Bytes>(target.device_offset, -1));
      if (target.device_offset >= 0) {
        on_device_bytes += content.size_bytes;
        Check(target.block, arena_ + target.device_offset);
      }
      if (target.host != nullptr) Check(target.block, target.host);
    }
    EXPECT_EQ(ledger_.used_bytes(), on_device_bytes);
    CheckLimits();
    if (hand_over) HandOver(targets);
  }

  /// Reads everything.
  void CheckAll() {
    for (const auto& [block, content] : contents_) {
      EXPECT_TRUE(!content.bytes || content.size_bytes == 0 || memory_->has_content(block));
      Run({block}, {});
    }
  }

 private:
  static constexpr Bytes kRegionBytes = Bytes{1} << 18;
  struct Content {
    Bytes size_bytes = 0;
    std::optional<std::vector<std::byte>> bytes;
  };

  void Check(Block block, const std::byte* address) {
    const Content& content = contents_.at(block);
    if (!content.bytes || content.size_bytes == 0 || !checks_contents_) return;
    const auto size = static_cast<std::size_t>(content.size_bytes);
    if (std::memcmp(address, content.bytes->data(), size) == 0) return;
    ADD_FAILURE() << "block " << static_cast<std::int64_t>(block) << " of " << size << " bytes";
  }

  void Write(Block block, std::byte* address) {
    Content& content = contents_.at(block);
    std::int64_t begin = random_.Between(0, content.size_bytes);
    if (!content.bytes) {
      content.bytes.emplace(static_cast<std::size_t>(content.size_bytes));
      begin = 0;
    }
    for (std::int64_t i = begin; i < content.size_bytes; ++i) {
      address[i] = static_cast<std::byte>(random_.Between(0, 255));
      (*content.bytes)[static_cast<std::size_t>(i)] = address[i];
    }
  }

  void CheckLimits() {
    const OnDemandStats stats = memory_->stats();
    EXPECT_LE(stats.peak_footprint_bytes, options_.capacity_bytes);
    EXPECT_EQ(stats.peak_footprint_bytes, ledger_.peak_top_bytes());
    EXPECT_LE(slab_->reserved_bytes(), options_.host_limit_bytes);
    Bytes live_bytes = 0;
    for (const auto& [block, content] : contents_) live_bytes += content.size_bytes;
    EXPECT_EQ(stats.live_bytes, live_bytes);
  }

  // Fills the arena and the region from below, with gaps, in random order.
  std::vector<Target> ChooseTargets() {
    std::vector<Block> order;
    for (const auto& [block, content] : contents_) order.push_back(block);
    for (std::size_t i = 1; i < order.size(); ++i) std::swap(order[i], order[random_.Index(i + 1)]);
    std::vector<Target> targets;
    Bytes top = 0;
    Bytes host_top = 0;
    const bool packed = random_.OneIn(2);
    for (const Block block : order) {
      Content& content = contents_.at(block);
      const std::int64_t choice = random_.Between(0, 9);
      if (choice == 0) continue;
      Target target{.block = block};
      const Bytes gap = packed ? 0 : random_.Between(0, 20) * 64;
      const Bytes offset = AlignUp(top, packed ? kDefaultAlignment : 64) + gap;
      if (choice <= 6 && offset + content.size_bytes <= options_.capacity_bytes) {
        target.device_offset = offset;
        top = offset + content.size_bytes;
      }
      if (choice >= 5 && choice <= 8 && host_top + content.size_bytes <= kRegionBytes) {
        target.host = region_ + host_top;
        host_top += content.size_bytes;
      }
      const bool somewhere = target.device_offset >= 0 || target.host != nullptr;
      // What is to be nowhere is lost, with or without an error.
      if (!somewhere) content.bytes.reset();
      targets.push_back(target);
    }
    return targets;
  }

  void HandOver(const std::vector<Target>& targets) {
    for (const Target& target : targets) {
      const Content& content = contents_.at(target.block);
      memory_->Remove(target.block);
      if (!content.bytes) {
        memory_->Add(target.block, content.size_bytes);
      } else if (target.device_offset >= 0) {
        // What is removed is poisoned.
        std::copy(content.bytes->begin(), content.bytes->end(), arena_ + target.device_offset);
        memory_->AddAt(target.block, content.size_bytes, target.device_offset, target.host);
      } else {
        memory_->AddOnHost(target.block, content.size_bytes, target.host);
      }
    }
  }

  Options options_;
  device::HostBackend host_;
  device::OrderCheckBackend orders_;
  device::FaultBackend faults_;
  Ledger ledger_;
  TestRandom random_;
  std::byte* arena_;
  std::byte* region_;  // Host memory that targets are in.
  std::optional<HostSlab> slab_;
  std::optional<OnDemandMemory> memory_;
  std::map<Block, Content> contents_;
  std::int64_t next_ = 0;
  bool checks_contents_ = true;
};

}  // namespace plimsoll::exec

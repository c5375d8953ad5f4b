// SPDX-License-Identifier: Apache-2.0
//
// A backend that proves orders instead of meeting them by luck. For tests only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/device/forwarding_backend.h"

namespace plimsoll::device {

/// Notes which bytes every command reads and writes, and whether any two commands of different
/// streams that touch the same bytes, one of them writing, could run in either order: those whose
/// order does not follow from streams, events and the caller's waiting. It takes the compute stream
/// for as concurrent as it is on a GPU, even where the target runs it on the calling thread. What
/// functions touch it learns from Touch().
///
/// It is a vector clock: by stream, how many of its commands are over when a command begins.
class OrderCheckBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  /// What went wrong so far; at most a few of them.
  const std::vector<std::string>& violations() const { return violations_; }

  /// Says that the function that Run() is about to be given touches these bytes.
  void Touch(const std::byte* begin, Bytes size_bytes, bool writes) {
    Issue(Stream::kCompute, "run", {{begin, size_bytes, writes}});
  }

  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override {
    Issue(Stream::kCopyOut, "copy out", {{host, size_bytes, true}, {device, size_bytes, false}});
    target().CopyOut(host, device, size_bytes);
  }
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override {
    Issue(Stream::kCopyIn, "copy in", {{device, size_bytes, true}, {host, size_bytes, false}});
    target().CopyIn(device, host, size_bytes);
  }
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override {
    Issue(Stream::kCompute, "move", {{to, size_bytes, true}, {from, size_bytes, false}});
    target().Move(to, from, size_bytes);
  }
  void Discard(std::byte* device, Bytes size_bytes) noexcept override {
    if (capabilities().poisons) Issue(Stream::kCompute, "discard", {{device, size_bytes, true}});
    target().Discard(device, size_bytes);
  }
  void Upload(std::byte* device, const void* data, Bytes size_bytes) override {
    Issue(Stream::kCompute, "upload", {{device, size_bytes, true}});
    target().Upload(device, data, size_bytes);
  }
  void Download(void* data, const std::byte* device, Bytes size_bytes) override {
    Issue(Stream::kCompute, "download", {{device, size_bytes, false}});
    target().Download(data, device, size_bytes);
    Join(&caller_, ClockOf(Stream::kCompute));
  }
  void FreeDevice(std::byte* memory) noexcept override {
    CheckIdle(memory, "device");
    target().FreeDevice(memory);
  }
  void FreeHost(std::byte* memory) noexcept override {
    CheckIdle(memory, "host");
    target().FreeHost(memory);
  }
  std::byte* AllocateDevice(Bytes size_bytes) override {
    std::byte* const memory = target().AllocateDevice(size_bytes);
    allocations_[memory] = size_bytes;
    return memory;
  }
  std::byte* AllocateHost(Bytes size_bytes) override {
    std::byte* const memory = target().AllocateHost(size_bytes);
    allocations_[memory] = size_bytes;
    return memory;
  }

  void DestroyEvent(EventId event) noexcept override {
    events_.erase(event);
    target().DestroyEvent(event);
  }
  void Record(EventId event, Stream stream) override {
    events_[event] = ClockOf(stream);
    target().Record(event, stream);
  }
  void Wait(Stream stream, EventId event) override {
    Join(&ClockOf(stream), events_[event]);
    target().Wait(stream, event);
  }
  void Synchronize(EventId event) override {
    Join(&caller_, events_[event]);
    target().Synchronize(event);
  }
  void Synchronize() override {
    for (const Clock& clock : clocks_) Join(&caller_, clock);
    target().Synchronize();
  }

 private:
  using Clock = std::array<std::int64_t, kStreams>;
  struct Range {
    const std::byte* begin;
    Bytes size_bytes;
    bool writes;
  };
  struct Access {
    Range range;
    std::size_t stream;
    std::int64_t time;
    std::string what;
  };

  static void Join(Clock* clock, const Clock& other) {
    for (std::size_t i = 0; i < clock->size(); ++i) (*clock)[i] = std::max((*clock)[i], other[i]);
  }
  static bool Overlap(const Range& a, const Range& b) {
    return a.begin < b.begin + b.size_bytes && b.begin < a.begin + a.size_bytes;
  }
  Clock& ClockOf(Stream stream) { return clocks_[static_cast<std::size_t>(stream)]; }

  void Issue(Stream stream, const char* what, const std::vector<Range>& ranges) {
    const auto self = static_cast<std::size_t>(stream);
    Clock& clock = clocks_[self];
    Join(&clock, caller_);
    for (const Range& range : ranges) {
      for (const Access& access : accesses_) {
        if (access.stream == self || clock[access.stream] >= access.time) continue;
        if (!Overlap(access.range, range) || !(access.range.writes || range.writes)) continue;
        Report(fmt::format("{} #{} of {} may run before or after {} #{}", what, clock[self] + 1,
                           Name(stream), access.what, access.time));
      }
    }
    ++clock[self];
    for (const Range& range : ranges) accesses_.push_back({range, self, clock[self], what});
    Forget();
  }

  // What every stream has seen can hurt nobody.
  void Forget() {
    std::erase_if(accesses_, [this](const Access& access) {
      return caller_[access.stream] >= access.time &&
             std::all_of(clocks_.begin(), clocks_.end(), [&access](const Clock& clock) {
               return clock[access.stream] >= access.time;
             });
    });
  }

  void CheckIdle(const std::byte* memory, const char* kind) {
    const auto found = allocations_.find(memory);
    if (found == allocations_.end()) return;
    const Range range{memory, found->second, true};
    for (const Access& access : accesses_) {
      if (caller_[access.stream] >= access.time || !Overlap(access.range, range)) continue;
      Report(
          fmt::format("{} memory is freed while {} #{} may run", kind, access.what, access.time));
    }
    allocations_.erase(found);
  }

  void Report(std::string violation) {
    if (violations_.size() < 10) violations_.push_back(std::move(violation));
  }

  std::array<Clock, kStreams> clocks_{};
  Clock caller_{};
  std::unordered_map<EventId, Clock> events_;
  std::unordered_map<const std::byte*, Bytes> allocations_;
  std::vector<Access> accesses_;
  std::vector<std::string> violations_;
};

}  // namespace plimsoll::device

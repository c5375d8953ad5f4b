// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plimsoll/device/backend.h"

namespace plimsoll::device {

/// What a null backend was asked for since its beginning, and what is live.
struct NullCounts {
  std::int64_t device_allocations = 0;
  std::int64_t host_allocations = 0;
  Bytes device_bytes = 0;  ///< Live now, sizes as asked for.
  Bytes peak_device_bytes = 0;
  Bytes host_bytes = 0;
  Bytes peak_host_bytes = 0;
  std::int64_t live_events = 0;

  std::int64_t runs = 0;
  std::int64_t copies_out = 0;
  std::int64_t copies_in = 0;
  std::int64_t moves = 0;
  std::int64_t uploads = 0;
  std::int64_t downloads = 0;
  Bytes copied_out_bytes = 0;
  Bytes copied_in_bytes = 0;
  Bytes moved_bytes = 0;

  std::int64_t records = 0;
  std::int64_t waits = 0;
  std::int64_t synchronizations = 0;  ///< Of events and of all.
};

/// A backend that allocates nothing, runs nothing and counts everything: what stands above it can
/// be tested at any size, without the memory and without the time. Its addresses are all different,
/// aligned, and must not be dereferenced. Every event has happened, at time 0. Download() gives
/// zeros, so that what a program reads is at least the same each time.
class NullBackend final : public Backend {
 public:
  NullBackend() = default;

  const NullCounts& counts() const { return counts_; }

  std::string_view name() const override { return "null"; }
  Capabilities capabilities() const override { return {.runs = false, .host_addressable = false}; }

  std::byte* AllocateDevice(Bytes size_bytes) override;
  void FreeDevice(std::byte* memory) noexcept override;
  std::byte* AllocateHost(Bytes size_bytes) override;
  void FreeHost(std::byte* memory) noexcept override;

  void Run(const std::function<void(void* native_stream)>& function) override;
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override;
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override;
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override;
  void Upload(std::byte* device, const void* data, Bytes size_bytes) override;
  void Download(void* data, const std::byte* device, Bytes size_bytes) override;

  EventId CreateEvent() override;
  void DestroyEvent(EventId event) noexcept override;
  void Record(EventId event, Stream stream) override;
  void Wait(Stream stream, EventId event) override;
  bool HasHappened(EventId event) override;
  void Synchronize(EventId event) override;
  void Synchronize() override;
  Nanoseconds TimeOf(EventId event) override;

 private:
  using Live = std::unordered_map<std::byte*, Bytes>;

  std::byte* Allocate(Bytes size_bytes, Live* live);
  // Returns the size of what was freed.
  Bytes Free(std::byte* memory, Live* live) noexcept;

  NullCounts counts_;
  Live device_;
  Live host_;
  std::uintptr_t next_address_ = std::uintptr_t{1} << 32;
  std::vector<EventId> free_events_;
  EventId next_event_ = 0;
};

}  // namespace plimsoll::device

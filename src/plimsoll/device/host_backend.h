// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/device/backend.h"

namespace plimsoll::device {

namespace internal {
class CopyThread;
struct Moment;
struct Shared;
}  // namespace internal

/// How a host backend copies.
struct HostOptions {
  /// The speed of the link it models, each way on its own; 0 for as fast as memcpy. Copies are
  /// spread over their time, and never faster than it on average.
  double out_bytes_per_s = 0;
  double in_bytes_per_s = 0;
  Nanoseconds latency_ns = 0;  ///< Of every copy, before its first byte.
  /// Fills device memory with kPoison when it is allocated, freed and discarded, so that what was
  /// never written, or is no longer there, is seen to be wrong.
  bool poison_on_free = false;
  /// For tests: every copy is held up for a random time up to this, so that streams meet in orders
  /// in which they seldom meet.
  Nanoseconds jitter_ns = 0;
  std::uint64_t seed = 1;
  /// Host memory is refused where it and device memory would come to more, or to more than
  /// HostShare says when the backend is made.
  Bytes most_bytes = kMaxBytes;
};

/// Runs on the processor: device memory is memory of the host like any other, the compute stream is
/// the calling thread, and each copy stream has a thread of its own.
///
///     caller   ──[run]──[run]──record e──[run]──── wait f: blocks ──[run]──▶
///     thread 1              wait e ──[memcpy]──record f──▶                     out
///     thread 2                                                                 in
///
/// The destructor runs what was issued and then ends the threads.
class HostBackend final : public Backend {
 public:
  explicit HostBackend(const HostOptions& options = {});
  ~HostBackend() override;
  HostBackend(const HostBackend&) = delete;
  HostBackend& operator=(const HostBackend&) = delete;

  /// Bytes that were allocated and not yet freed.
  Bytes device_bytes() const;
  Bytes host_bytes() const;

  std::string_view name() const override { return "host"; }
  Capabilities capabilities() const override { return {.poisons = options_.poison_on_free}; }

  /// Also throws OutOfMemory for more than the machine has.
  std::byte* AllocateDevice(Bytes size_bytes) override;
  void FreeDevice(std::byte* memory) noexcept override;
  std::byte* AllocateHost(Bytes size_bytes) override;
  void FreeHost(std::byte* memory) noexcept override;

  void Run(const std::function<void(void* native_stream)>& function) override;
  /// Throws DeviceError, when it is waited for, if the range on the device is not live memory.
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override;
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override;
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override;
  void Discard(std::byte* device, Bytes size_bytes) noexcept override;
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
  // REQUIRES: the stream is a copy stream.
  internal::CopyThread& ThreadOf(Stream stream);
  std::shared_ptr<internal::Moment>& LatestOf(EventId event);
  // Blocks until the moments have happened, then throws what went wrong, if anything has.
  void Await(const std::vector<std::shared_ptr<internal::Moment>>& moments);

  HostOptions options_;
  Bytes most_bytes_;
  std::unique_ptr<internal::Shared> shared_;
  // The latest Record() of each event; none if it was never recorded.
  std::vector<std::shared_ptr<internal::Moment>> events_;
  std::vector<EventId> free_events_;
  std::array<std::unique_ptr<internal::CopyThread>, 2> threads_;  // Last: they use the rest.
};

}  // namespace plimsoll::device

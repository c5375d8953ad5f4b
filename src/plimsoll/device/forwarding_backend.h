// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/device/backend.h"

namespace plimsoll::device {

/// Forwards every call to another backend. What changes a few calls, to count, fail or delay them,
/// derives from it and overrides those.
class ForwardingBackend : public Backend {
 public:
  /// Keeps a reference to the target, which outlives it.
  explicit ForwardingBackend(Backend* target) : target_(*target) {}

  std::string_view name() const override { return target_.name(); }
  Capabilities capabilities() const override { return target_.capabilities(); }

  std::byte* AllocateDevice(Bytes size_bytes) override {
    return target_.AllocateDevice(size_bytes);
  }
  void FreeDevice(std::byte* memory) noexcept override { target_.FreeDevice(memory); }
  std::byte* AllocateHost(Bytes size_bytes) override { return target_.AllocateHost(size_bytes); }
  void FreeHost(std::byte* memory) noexcept override { target_.FreeHost(memory); }

  void Run(const std::function<void(void* native_stream)>& function) override {
    target_.Run(function);
  }
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override {
    target_.CopyOut(host, device, size_bytes);
  }
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override {
    target_.CopyIn(device, host, size_bytes);
  }
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override {
    target_.Move(to, from, size_bytes);
  }
  void Discard(std::byte* device, Bytes size_bytes) noexcept override {
    target_.Discard(device, size_bytes);
  }
  void Upload(std::byte* device, const void* data, Bytes size_bytes) override {
    target_.Upload(device, data, size_bytes);
  }
  void Download(void* data, const std::byte* device, Bytes size_bytes) override {
    target_.Download(data, device, size_bytes);
  }

  EventId CreateEvent() override { return target_.CreateEvent(); }
  EventId CreateUntimedEvent() override { return target_.CreateUntimedEvent(); }
  void DestroyEvent(EventId event) noexcept override { target_.DestroyEvent(event); }
  void Record(EventId event, Stream stream) override { target_.Record(event, stream); }
  void Wait(Stream stream, EventId event) override { target_.Wait(stream, event); }
  bool HasHappened(EventId event) override { return target_.HasHappened(event); }
  void Synchronize(EventId event) override { target_.Synchronize(event); }
  void Synchronize() override { target_.Synchronize(); }
  void BeginGraph() override { target_.BeginGraph(); }
  GraphId EndGraph() override { return target_.EndGraph(); }
  void DropGraph() noexcept override { target_.DropGraph(); }
  void LaunchGraph(GraphId graph) override { target_.LaunchGraph(graph); }
  void DestroyGraph(GraphId graph) noexcept override { target_.DestroyGraph(graph); }
  void PrepareToTime() override { target_.PrepareToTime(); }
  Nanoseconds TimeOf(EventId event) override { return target_.TimeOf(event); }

 protected:
  Backend& target() { return target_; }

 private:
  Backend& target_;
};

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "plimsoll/device/backend.h"

namespace plimsoll::cuda {

struct CudaOptions {
  int device = 0;  ///< Its number, as CUDA counts.
  /// For tests: every copy is held up on the card for a random time up to this, so that streams
  /// meet in orders in which they seldom meet.
  Nanoseconds jitter_ns = 0;
  std::uint64_t seed = 1;
  /// For tests: fills device memory with device::kPoison when it is allocated.
  bool poison = false;
  /// For tests: fills device memory with device::kPoison when it is discarded, on the compute
  /// stream, also in graphs.
  bool poison_on_free = false;
};

/// An NVIDIA GPU. Device memory is the card's, host memory is pinned, and the three streams are
/// streams of CUDA: whatever is issued runs later. Graphs are CUDA graphs: all three streams at
/// once.
///
///     BeginGraph    compute ──┬─ … ─┬─▶ EndGraph
///                   out       ├─ … ─┤
///                   in        └─ … ─┘
///
/// Calls come from the thread that made it. Throws DeviceError if there is no such device, or its
/// driver is too old.
class CudaBackend final : public device::Backend {
 public:
  explicit CudaBackend(const CudaOptions& options = {});
  ~CudaBackend() override;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string_view name() const override { return "cuda"; }
  device::Capabilities capabilities() const override {
    return {.host_addressable = false, .graphs = true, .poisons = options_.poison_on_free};
  }

  std::byte* AllocateDevice(Bytes size_bytes) override;
  void FreeDevice(std::byte* memory) noexcept override;
  std::byte* AllocateHost(Bytes size_bytes) override;
  void FreeHost(std::byte* memory) noexcept override;

  void Run(const std::function<void(void* native_stream)>& function) override;
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override;
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override;
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override;
  void Discard(std::byte* device, Bytes size_bytes) noexcept override;
  void Upload(std::byte* device, const void* data, Bytes size_bytes) override;
  void Download(void* data, const std::byte* device, Bytes size_bytes) override;

  device::EventId CreateEvent() override;
  device::EventId CreateUntimedEvent() override;
  void DestroyEvent(device::EventId event) noexcept override;
  void Record(device::EventId event, device::Stream stream) override;
  void Wait(device::Stream stream, device::EventId event) override;
  bool HasHappened(device::EventId event) override;
  void Synchronize(device::EventId event) override;
  void Synchronize() override;
  void PrepareToTime() override;
  Nanoseconds TimeOf(device::EventId event) override;

  void BeginGraph() override;
  device::GraphId EndGraph() override;
  void DropGraph() noexcept override;
  void LaunchGraph(device::GraphId graph) override;
  void DestroyGraph(device::GraphId graph) noexcept override;

 private:
  struct State;  // Knows CUDA's types.

  device::EventId CreateEventWith(unsigned flags);
  void HoldUp(device::Stream stream);
  void MoveThroughScratch(std::byte* to, const std::byte* from, Bytes size_bytes);
  void Fork();
  void Join();

  CudaOptions options_;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::cuda

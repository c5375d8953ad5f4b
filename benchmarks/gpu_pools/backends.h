// SPDX-License-Identifier: Apache-2.0
//
// The ways of programs to have device memory, each as a backend that allocates so and forwards all
// else to that of the GPU.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "linked_lists.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/device/forwarding_backend.h"

namespace plimsoll {

inline void CheckCuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw DeviceError(call, cudaGetErrorString(status));
}

/// Looks, if it is told to, after every allocation at what the process takes of the card.
class WatchedBackend : public device::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  std::byte* AllocateDevice(Bytes size_bytes) final {
    std::byte* memory = Allocate(std::max<Bytes>(size_bytes, 1));
    if (card_ != nullptr) most_taken_bytes_ = std::max(most_taken_bytes_, card_->taken_bytes());
    return memory;
  }

  /// From here on; null to look no more.
  void Watch(const cuda::CardMemory* card) { card_ = card; }
  Bytes most_taken_bytes() const { return most_taken_bytes_; }

 protected:
  virtual std::byte* Allocate(Bytes size_bytes) = 0;

 private:
  const cuda::CardMemory* card_ = nullptr;
  Bytes most_taken_bytes_ = 0;
};

/// Throws OutOfMemory if that is what was answered, DeviceError for all else.
inline void CheckAllocation(cudaError_t status, Bytes size_bytes, const char* call) {
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(size_bytes, 0, "the card has no more; take a smaller batch");
  }
  CheckCuda(status, call);
}

/// cudaMalloc and cudaFree for every block, and nothing else: CudaBackend would first ask for the
/// memory that is free, to say so in errors.
class DirectBackend final : public WatchedBackend {
 public:
  using WatchedBackend::WatchedBackend;
  void FreeDevice(std::byte* memory) noexcept override { cudaFree(memory); }

 protected:
  std::byte* Allocate(Bytes size_bytes) override {
    void* memory = nullptr;
    CheckAllocation(cudaMalloc(&memory, static_cast<std::size_t>(size_bytes)), size_bytes,
                    "cudaMalloc");
    return static_cast<std::byte*>(memory);
  }
};

/// Frees in the order of the compute stream, on which everything runs: what is freed may be given
/// to an op that is issued later, so that nobody waits.
class OrderedBackend : public WatchedBackend {
 public:
  using WatchedBackend::Synchronize;
  using WatchedBackend::WatchedBackend;
  /// What PlainDevice calls before it frees.
  void Synchronize() final {}
};

/// cudaMallocAsync and cudaFreeAsync, from a pool of its own.
class AsyncBackend final : public OrderedBackend {
 public:
  /// `keeps` what is free, as PyTorch's allocator of that kind does; otherwise, as by default, it
  /// goes back to the driver whenever somebody waits for the device.
  AsyncBackend(device::Backend* target, int device, bool keeps) : OrderedBackend(target) {
    target->Run([this](void* native) { stream_ = static_cast<cudaStream_t>(native); });
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    CheckCuda(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    std::uint64_t threshold = keeps ? std::numeric_limits<std::uint64_t>::max() : 0;
    CheckCuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &threshold),
              "cudaMemPoolSetAttribute");
  }
  /// REQUIRES: all blocks are freed.
  ~AsyncBackend() override {
    cudaStreamSynchronize(stream_);
    cudaMemPoolDestroy(pool_);
  }

  void FreeDevice(std::byte* memory) noexcept override { cudaFreeAsync(memory, stream_); }

  /// The most that the pool ever had of the driver.
  Bytes most_reserved_bytes() const {
    std::uint64_t bytes = 0;
    CheckCuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes),
              "cudaMemPoolGetAttribute");
    return static_cast<Bytes>(bytes);
  }

 protected:
  std::byte* Allocate(Bytes size_bytes) override {
    void* memory = nullptr;
    CheckAllocation(
        cudaMallocFromPoolAsync(&memory, static_cast<std::size_t>(size_bytes), pool_, stream_),
        size_bytes, "cudaMallocFromPoolAsync");
    return static_cast<std::byte*>(memory);
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

/// CnMem's lists over an arena.
class ListsBackend final : public OrderedBackend {
 public:
  /// REQUIRES: the size is a multiple of 512.
  ListsBackend(device::Backend* target, Bytes arena_bytes)
      : OrderedBackend(target),
        arena_(target->AllocateDevice(arena_bytes)),
        lists_(reinterpret_cast<std::uintptr_t>(arena_), arena_bytes) {}
  /// Waits for the device.
  ~ListsBackend() override {
    target().Synchronize();
    target().FreeDevice(arena_);
  }

  void FreeDevice(std::byte* memory) noexcept override { lists_.Free(memory); }

  /// The highest end of a block, from the beginning of the arena.
  Bytes high_water_bytes() const { return high_water_bytes_; }

 protected:
  std::byte* Allocate(Bytes size_bytes) override {
    auto* memory = static_cast<std::byte*>(lists_.Malloc(size_bytes));
    const Bytes end = memory - arena_ + static_cast<Bytes>(LinkedLists::Size(size_bytes));
    high_water_bytes_ = std::max(high_water_bytes_, end);
    return memory;
  }

 private:
  std::byte* arena_;
  LinkedLists lists_;
  Bytes high_water_bytes_ = 0;
};

}  // namespace plimsoll

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "plimsoll/device/backend.h"
#include "plimsoll/exec/device.h"

namespace plimsoll::exec {

/// A device without tricks: every block has memory of its own from the backend, from Malloc to
/// Free. What every other device must agree with, bit for bit. With a limit, it is what a program
/// has without Plimsoll: what exceeds the limit fails.
class PlainDevice final : public Device {
 public:
  /// Keeps a reference to the backend, which outlives it. `limit_bytes` bounds the sum of live
  /// blocks; 0 for no limit.
  explicit PlainDevice(device::Backend* backend, Bytes limit_bytes = 0);
  ~PlainDevice() override;

  Block Malloc(Bytes size_bytes) override;
  void Free(Block block) override;
  void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
            Function function) override;
  void EndIteration(std::string_view next) override;
  using Device::EndIteration;
  void Synchronize() override;
  DeviceStats stats() const override { return stats_; }

 protected:
  void CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) override;
  void CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) override;

 private:
  struct Memory {
    std::byte* address = nullptr;
    Bytes size_bytes = 0;
  };
  std::byte* AddressOf(Block block) const;

  device::Backend& backend_;
  std::unordered_map<Block, Memory> blocks_;
  std::int64_t next_ = 0;
  DeviceStats stats_;
};

}  // namespace plimsoll::exec

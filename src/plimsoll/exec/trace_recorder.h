// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "plimsoll/exec/device.h"
#include "plimsoll/exec/recorder.h"

namespace plimsoll::exec {

/// A device that runs nothing and has no memory: it writes down what is asked of it, so that a
/// program's trace is known without running it. Durations are the expected ones.
class TraceRecorder final : public Device {
 public:
  TraceRecorder() = default;

  /// Begins to record. What is alive now has been there before the first event; what was asked
  /// before is forgotten.
  void Start();
  /// Ends the recording and returns it, with the traits of the ops in its header and `metadata`, a
  /// JSON object, beside them. Every call of EndIteration() since Start() is a mark.
  trace::Trace Finish(const std::string& metadata = "{}");

  Block Malloc(Bytes size_bytes) override;
  void Free(Block block) override;
  void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
            Function function) override;
  void EndIteration(std::string_view next) override;
  using Device::EndIteration;
  void Synchronize() override {}
  DeviceStats stats() const override { return stats_; }

 protected:
  void CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) override;
  void CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) override;

 private:
  void CheckLive(Block block) const;

  Recorder recorder_;
  std::map<Block, Bytes> live_;
  bool recording_ = false;
  std::int64_t next_ = 0;
  DeviceStats stats_;
};

}  // namespace plimsoll::exec

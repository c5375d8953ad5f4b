// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

#include "plimsoll/device/forwarding_backend.h"

namespace plimsoll::device {

/// The calls that can be made to fail.
enum class FaultyCall : std::uint8_t {
  kAllocateDevice,
  kAllocateHost,
  kCopyOut,
  kCopyIn,
  kMove,
  kRun,
  kLaunchGraph,
};
inline constexpr int kFaultyCalls = 7;
std::string_view Name(FaultyCall call);

/// What goes wrong, and when.
struct Fault {
  FaultyCall call = FaultyCall::kAllocateDevice;
  std::int64_t nth = 1;   ///< The first such call that fails, counted from 1 since construction.
  bool for_ever = false;  ///< Whether every later one fails too.
  /// What fails late is accepted and not done; the next call that waits throws. Allocations never
  /// do.
  bool late = false;
};

/// Fails chosen calls of another backend, for tests of what becomes of that: allocations throw
/// OutOfMemory, copies, functions and graphs throw DeviceError. It can also hold callers up at
/// random before copies and waits, so that streams meet in other orders; HostOptions::jitter_ns
/// does so on the streams.
class FaultBackend final : public ForwardingBackend {
 public:
  explicit FaultBackend(Backend* target) : ForwardingBackend(target) {}

  /// Replaces the fault that is set, if any.
  void Fail(const Fault& fault) { fault_ = fault; }
  void FailNothing() { fault_.reset(); }
  /// From here on there is no more host memory than this, all allocations together.
  void LimitHost(Bytes most_bytes) { most_host_bytes_ = most_bytes; }
  /// Sleeps up to `longest_ns` before every copy and every wait from now on; 0 for no longer.
  void Delay(Nanoseconds longest_ns, std::uint64_t seed);

  /// How many calls of a kind there were, failed ones included.
  std::int64_t calls(FaultyCall call) const { return calls_[static_cast<std::size_t>(call)]; }
  /// How many calls have failed.
  std::int64_t faults() const { return faults_; }

  std::byte* AllocateDevice(Bytes size_bytes) override;
  std::byte* AllocateHost(Bytes size_bytes) override;
  void FreeHost(std::byte* memory) noexcept override;
  void Run(const std::function<void(void* native_stream)>& function) override;
  void LaunchGraph(GraphId graph) override;
  void CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) override;
  void CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) override;
  void Move(std::byte* to, const std::byte* from, Bytes size_bytes) override;
  void Wait(Stream stream, EventId event) override;
  void Synchronize(EventId event) override;
  void Synchronize() override;

 private:
  // Counts a call and says whether it fails.
  bool Fails(FaultyCall call);
  // Counts what a stream is asked for; throws, or says whether it is to be left out, if it fails.
  bool FailsOnStream(FaultyCall call);
  void ThrowPending();
  void Pause();

  std::optional<Fault> fault_;
  Bytes most_host_bytes_ = kMaxBytes;
  Bytes host_bytes_ = 0;
  std::unordered_map<std::byte*, Bytes> host_;  // From address to size.
  std::array<std::int64_t, kFaultyCalls> calls_{};
  std::int64_t faults_ = 0;
  std::string pending_;  // The call whose late failure has not been thrown yet.
  Nanoseconds longest_delay_ns_ = 0;
  std::mt19937_64 random_;
};

}  // namespace plimsoll::device

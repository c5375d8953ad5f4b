// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/fault_backend.h"

#include <chrono>
#include <thread>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::device {
namespace {

constexpr const char* kReason = "a fault was injected";

}  // namespace

std::string_view Name(FaultyCall call) {
  switch (call) {
    case FaultyCall::kAllocateDevice:
      return "AllocateDevice";
    case FaultyCall::kAllocateHost:
      return "AllocateHost";
    case FaultyCall::kCopyOut:
      return "CopyOut";
    case FaultyCall::kCopyIn:
      return "CopyIn";
    case FaultyCall::kMove:
      return "Move";
    case FaultyCall::kRun:
      return "Run";
    case FaultyCall::kLaunchGraph:
      return "LaunchGraph";
  }
  return "unknown";
}

void FaultBackend::Delay(Nanoseconds longest_ns, std::uint64_t seed) {
  longest_delay_ns_ = longest_ns;
  random_.seed(seed);
}

bool FaultBackend::Fails(FaultyCall call) {
  const std::int64_t number = ++calls_[static_cast<std::size_t>(call)];
  if (!fault_ || fault_->call != call) return false;
  if (number < fault_->nth || (number > fault_->nth && !fault_->for_ever)) return false;
  ++faults_;
  return true;
}

bool FaultBackend::FailsOnStream(FaultyCall call) {
  if (!Fails(call)) return false;
  if (!fault_->late) throw DeviceError(std::string(Name(call)), kReason);
  if (pending_.empty()) pending_ = Name(call);
  return true;
}

void FaultBackend::ThrowPending() {
  if (pending_.empty()) return;
  throw DeviceError(std::exchange(pending_, {}), kReason);
}

void FaultBackend::Pause() {
  if (longest_delay_ns_ <= 0) return;
  // Half of the calls are not held up at all.
  const auto delay_ns =
      std::uniform_int_distribution<Nanoseconds>(-longest_delay_ns_, longest_delay_ns_)(random_);
  if (delay_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(delay_ns));
}

std::byte* FaultBackend::AllocateDevice(Bytes size_bytes) {
  if (Fails(FaultyCall::kAllocateDevice)) throw OutOfMemory(size_bytes, 0, kReason);
  return target().AllocateDevice(size_bytes);
}

std::byte* FaultBackend::AllocateHost(Bytes size_bytes) {
  if (Fails(FaultyCall::kAllocateHost)) throw OutOfMemory(size_bytes, 0, kReason);
  if (size_bytes > most_host_bytes_ - host_bytes_) {
    ++faults_;
    throw OutOfMemory(size_bytes, most_host_bytes_ - host_bytes_, kReason);
  }
  std::byte* const memory = target().AllocateHost(size_bytes);
  host_.emplace(memory, size_bytes);
  host_bytes_ += size_bytes;
  return memory;
}

void FaultBackend::FreeHost(std::byte* memory) noexcept {
  const auto found = host_.find(memory);
  if (found != host_.end()) {
    host_bytes_ -= found->second;
    host_.erase(found);
  }
  target().FreeHost(memory);
}

void FaultBackend::Run(const std::function<void(void* native_stream)>& function) {
  if (!FailsOnStream(FaultyCall::kRun)) target().Run(function);
}

void FaultBackend::LaunchGraph(GraphId graph) {
  if (!FailsOnStream(FaultyCall::kLaunchGraph)) target().LaunchGraph(graph);
}

void FaultBackend::CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) {
  Pause();
  if (!FailsOnStream(FaultyCall::kCopyOut)) target().CopyOut(host, device, size_bytes);
}

void FaultBackend::CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) {
  Pause();
  if (!FailsOnStream(FaultyCall::kCopyIn)) target().CopyIn(device, host, size_bytes);
}

void FaultBackend::Move(std::byte* to, const std::byte* from, Bytes size_bytes) {
  Pause();
  if (!FailsOnStream(FaultyCall::kMove)) target().Move(to, from, size_bytes);
}

void FaultBackend::Wait(Stream stream, EventId event) {
  Pause();
  target().Wait(stream, event);
  // Only the compute stream may run on the calling thread.
  if (stream == Stream::kCompute) ThrowPending();
}

void FaultBackend::Synchronize(EventId event) {
  target().Synchronize(event);
  ThrowPending();
}

void FaultBackend::Synchronize() {
  target().Synchronize();
  ThrowPending();
}

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/null_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"

namespace plimsoll::device {

std::byte* NullBackend::Allocate(Bytes size_bytes, Live* live) {
  if (size_bytes < 0 || size_bytes >= kMaxBytes) {
    throw OutOfMemory(size_bytes, kMaxBytes, "no device has that much; check the size");
  }
  auto* const address = reinterpret_cast<std::byte*>(next_address_);
  next_address_ +=
      static_cast<std::uintptr_t>(AlignUp(std::max<Bytes>(size_bytes, 1), kDefaultAlignment));
  live->emplace(address, size_bytes);
  return address;
}

Bytes NullBackend::Free(std::byte* memory, Live* live) noexcept {
  if (memory == nullptr) return 0;
  const auto found = live->find(memory);
  PLIMSOLL_CHECK(found != live->end(), fmt::format("{} is not among {} live allocations",
                                                   fmt::ptr(memory), live->size()));
  const Bytes size_bytes = found->second;
  live->erase(found);
  return size_bytes;
}

std::byte* NullBackend::AllocateDevice(Bytes size_bytes) {
  std::byte* const memory = Allocate(size_bytes, &device_);
  ++counts_.device_allocations;
  counts_.device_bytes += size_bytes;
  counts_.peak_device_bytes = std::max(counts_.peak_device_bytes, counts_.device_bytes);
  return memory;
}

void NullBackend::FreeDevice(std::byte* memory) noexcept {
  counts_.device_bytes -= Free(memory, &device_);
}

std::byte* NullBackend::AllocateHost(Bytes size_bytes) {
  std::byte* const memory = Allocate(size_bytes, &host_);
  ++counts_.host_allocations;
  counts_.host_bytes += size_bytes;
  counts_.peak_host_bytes = std::max(counts_.peak_host_bytes, counts_.host_bytes);
  return memory;
}

void NullBackend::FreeHost(std::byte* memory) noexcept {
  counts_.host_bytes -= Free(memory, &host_);
}

void NullBackend::Run(const std::function<void(void* native_stream)>& /*function*/) {
  ++counts_.runs;
}

void NullBackend::CopyOut(std::byte* /*host*/, const std::byte* /*device*/, Bytes size_bytes) {
  ++counts_.copies_out;
  counts_.copied_out_bytes += size_bytes;
}

void NullBackend::CopyIn(std::byte* /*device*/, const std::byte* /*host*/, Bytes size_bytes) {
  ++counts_.copies_in;
  counts_.copied_in_bytes += size_bytes;
}

void NullBackend::Move(std::byte* /*to*/, const std::byte* /*from*/, Bytes size_bytes) {
  ++counts_.moves;
  counts_.moved_bytes += size_bytes;
}

void NullBackend::Upload(std::byte* /*device*/, const void* /*data*/, Bytes /*size_bytes*/) {
  ++counts_.uploads;
}

void NullBackend::Download(void* data, const std::byte* /*device*/, Bytes size_bytes) {
  ++counts_.downloads;
  if (size_bytes > 0) std::memset(data, 0, static_cast<std::size_t>(size_bytes));
}

EventId NullBackend::CreateEvent() {
  ++counts_.live_events;
  if (free_events_.empty()) return next_event_++;
  const EventId event = free_events_.back();
  free_events_.pop_back();
  return event;
}

void NullBackend::DestroyEvent(EventId event) noexcept {
  --counts_.live_events;
  free_events_.push_back(event);
}

void NullBackend::Record(EventId /*event*/, Stream /*stream*/) { ++counts_.records; }

void NullBackend::Wait(Stream /*stream*/, EventId /*event*/) { ++counts_.waits; }

bool NullBackend::HasHappened(EventId /*event*/) { return true; }

void NullBackend::Synchronize(EventId /*event*/) { ++counts_.synchronizations; }

void NullBackend::Synchronize() { ++counts_.synchronizations; }

Nanoseconds NullBackend::TimeOf(EventId /*event*/) { return 0; }

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/copy_thread_internal.h"
#include "plimsoll/device/host_share.h"

namespace plimsoll::device {
namespace {

using internal::CopyThread;
using internal::Moment;
using internal::Shared;
using Clock = std::chrono::steady_clock;
using Allocations = std::map<const std::byte*, Bytes, std::less<>>;

Bytes PagesToBytes(int what) {
  const Bytes pages = sysconf(what);
  const Bytes page_bytes = sysconf(_SC_PAGESIZE);
  return std::max<Bytes>(pages, 0) * std::max<Bytes>(page_bytes, 0);
}

std::byte* Allocate(Bytes size_bytes, const char* kind) {
  void* memory = nullptr;
  const Bytes machine_bytes = PagesToBytes(_SC_PHYS_PAGES);
  if (size_bytes >= 0 && (machine_bytes == 0 || size_bytes <= machine_bytes)) {
    const Bytes rounded = AlignUp(std::max<Bytes>(size_bytes, 1), kDefaultAlignment);
    memory = std::aligned_alloc(static_cast<std::size_t>(kDefaultAlignment),
                                static_cast<std::size_t>(rounded));
  }
  if (memory == nullptr) {
    throw OutOfMemory(size_bytes, PagesToBytes(_SC_AVPHYS_PAGES),
                      fmt::format("the machine does not have it as {} memory: set a lower limit or "
                                  "a smaller batch",
                                  kind));
  }
  return static_cast<std::byte*>(memory);
}

Bytes SumOf(const Allocations& allocations) {
  Bytes sum = 0;
  for (const auto& [memory, size_bytes] : allocations) sum += size_bytes;
  return sum;
}

// Takes memory off the list and returns its size.
Bytes Forget(std::byte* memory, Allocations* allocations) {
  const auto found = allocations->find(memory);
  PLIMSOLL_CHECK(found != allocations->end(), fmt::format("{} is not among {} live allocations",
                                                          fmt::ptr(memory), allocations->size()));
  const Bytes size_bytes = found->second;
  allocations->erase(found);
  return size_bytes;
}

void Fill(std::byte* memory, Bytes size_bytes) {
  std::memset(memory, std::to_integer<int>(kPoison), static_cast<std::size_t>(size_bytes));
  // Keeps the compiler from leaving out what it thinks nobody reads.
  asm volatile("" : : "r"(memory) : "memory");
}

}  // namespace

HostBackend::HostBackend(const HostOptions& options)
    : options_(options),
      most_bytes_(std::min(options.most_bytes, HostShare().left_bytes())),
      shared_(std::make_unique<Shared>()) {
  threads_[0] = std::make_unique<CopyThread>(shared_.get(), Stream::kCopyOut,
                                             Pace(options.out_bytes_per_s, options.latency_ns),
                                             options.jitter_ns, 2 * options.seed);
  threads_[1] = std::make_unique<CopyThread>(shared_.get(), Stream::kCopyIn,
                                             Pace(options.in_bytes_per_s, options.latency_ns),
                                             options.jitter_ns, 2 * options.seed + 1);
}

HostBackend::~HostBackend() = default;

Bytes HostBackend::device_bytes() const {
  const std::lock_guard lock(shared_->mutex);
  return SumOf(shared_->device);
}

Bytes HostBackend::host_bytes() const {
  const std::lock_guard lock(shared_->mutex);
  return SumOf(shared_->host);
}

std::byte* HostBackend::AllocateDevice(Bytes size_bytes) {
  std::byte* const memory = Allocate(size_bytes, "device");
  if (options_.poison_on_free) Fill(memory, size_bytes);
  const std::lock_guard lock(shared_->mutex);
  shared_->device.emplace(memory, size_bytes);
  return memory;
}

void HostBackend::FreeDevice(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  {
    const std::lock_guard lock(shared_->mutex);
    const Bytes size_bytes = Forget(memory, &shared_->device);
    if (options_.poison_on_free) Fill(memory, size_bytes);
  }
  std::free(memory);
}

std::byte* HostBackend::AllocateHost(Bytes size_bytes) {
  CheckHostShare(size_bytes, most_bytes_ - device_bytes() - host_bytes());
  std::byte* const memory = Allocate(size_bytes, "host");
  const std::lock_guard lock(shared_->mutex);
  shared_->host.emplace(memory, size_bytes);
  return memory;
}

void HostBackend::FreeHost(std::byte* memory) noexcept {
  if (memory == nullptr) return;
  {
    const std::lock_guard lock(shared_->mutex);
    Forget(memory, &shared_->host);
  }
  std::free(memory);
}

void HostBackend::Run(const std::function<void(void* native_stream)>& function) {
  function(nullptr);
}

void HostBackend::CopyOut(std::byte* host, const std::byte* device, Bytes size_bytes) {
  ThreadOf(Stream::kCopyOut).Copy(host, device, size_bytes);
}

void HostBackend::CopyIn(std::byte* device, const std::byte* host, Bytes size_bytes) {
  ThreadOf(Stream::kCopyIn).Copy(device, host, size_bytes);
}

void HostBackend::Move(std::byte* to, const std::byte* from, Bytes size_bytes) {
  if (size_bytes > 0) std::memmove(to, from, static_cast<std::size_t>(size_bytes));
}

void HostBackend::Discard(std::byte* device, Bytes size_bytes) noexcept {
  if (options_.poison_on_free && size_bytes > 0) Fill(device, size_bytes);
}

void HostBackend::Upload(std::byte* device, const void* data, Bytes size_bytes) {
  if (size_bytes > 0) std::memcpy(device, data, static_cast<std::size_t>(size_bytes));
}

void HostBackend::Download(void* data, const std::byte* device, Bytes size_bytes) {
  if (size_bytes > 0) std::memcpy(data, device, static_cast<std::size_t>(size_bytes));
}

CopyThread& HostBackend::ThreadOf(Stream stream) {
  return *threads_[stream == Stream::kCopyOut ? 0 : 1];
}

std::shared_ptr<Moment>& HostBackend::LatestOf(EventId event) {
  PLIMSOLL_CHECK(event >= 0 && event < std::ssize(events_),
                 fmt::format("event {} of {}", event, events_.size()));
  return events_[static_cast<std::size_t>(event)];
}

EventId HostBackend::CreateEvent() {
  if (!free_events_.empty()) {
    const EventId event = free_events_.back();
    free_events_.pop_back();
    return event;
  }
  events_.emplace_back();
  // So that DestroyEvent() never has to allocate.
  free_events_.reserve(events_.capacity());
  return static_cast<EventId>(events_.size() - 1);
}

void HostBackend::DestroyEvent(EventId event) noexcept {
  LatestOf(event).reset();
  free_events_.push_back(event);
}

void HostBackend::Record(EventId event, Stream stream) {
  auto moment = std::make_shared<Moment>();
  if (stream == Stream::kCompute) {
    // Everything that was issued to this thread has run.
    *moment = {.happened = true, .time = Clock::now()};
  } else {
    ThreadOf(stream).Record(moment);
  }
  LatestOf(event) = std::move(moment);
}

void HostBackend::Wait(Stream stream, EventId event) {
  const auto& moment = LatestOf(event);
  if (moment == nullptr) return;
  if (stream == Stream::kCompute) {
    Await({moment});
  } else {
    ThreadOf(stream).Wait(moment);
  }
}

bool HostBackend::HasHappened(EventId event) {
  const auto& moment = LatestOf(event);
  const std::lock_guard lock(shared_->mutex);
  return moment == nullptr || moment->happened;
}

void HostBackend::Synchronize(EventId event) {
  if (const auto& moment = LatestOf(event)) Await({moment});
}

void HostBackend::Synchronize() {
  std::vector<std::shared_ptr<Moment>> moments;
  for (const auto& thread : threads_) {
    moments.push_back(std::make_shared<Moment>());
    thread->Record(moments.back());
  }
  Await(moments);
}

void HostBackend::Await(const std::vector<std::shared_ptr<Moment>>& moments) {
  std::unique_lock lock(shared_->mutex);
  for (const auto& moment : moments) {
    shared_->happened.wait(lock, [&moment] { return moment->happened; });
  }
  if (shared_->error.empty()) return;
  const std::string error = std::exchange(shared_->error, {});
  throw DeviceError(shared_->failed_call, error);
}

Nanoseconds HostBackend::TimeOf(EventId event) {
  const auto& moment = LatestOf(event);
  const std::lock_guard lock(shared_->mutex);
  PLIMSOLL_CHECK(moment != nullptr && moment->happened,
                 fmt::format("event {} has not happened", event));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(moment->time.time_since_epoch())
      .count();
}

}  // namespace plimsoll::device

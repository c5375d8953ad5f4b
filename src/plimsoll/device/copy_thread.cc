// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/device/copy_thread_internal.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace plimsoll::device::internal {
namespace {

using Clock = std::chrono::steady_clock;

// A throttled copy is spread over its time in pieces of this size.
constexpr Bytes kChunkBytes = Bytes{256} * 1024;
// A thread that is less than this ahead of its schedule goes on; the schedule evens it out.
constexpr auto kShortestSleep = std::chrono::microseconds(50);

void CopyBytes(std::byte* to, const std::byte* from, Bytes size_bytes) {
  if (size_bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
}

void SleepPrecisely() {
#ifdef __linux__
  // By default the kernel may let a sleeping thread lie for another 50 us.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
#endif
}

}  // namespace

CopyThread::CopyThread(Shared* shared, Stream stream, Pace pace, Nanoseconds jitter_ns,
                       std::uint64_t seed)
    : shared_(*shared),
      stream_(stream),
      pace_(pace),
      jitter_ns_(jitter_ns),
      random_(seed),
      thread_([this] { Loop(); }) {}

CopyThread::~CopyThread() {
  {
    const std::lock_guard lock(shared_.mutex);
    stopping_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void CopyThread::Copy(std::byte* to, const std::byte* from, Bytes size_bytes) {
  Push({.kind = Kind::kCopy,
        .to = to,
        .from = from,
        .size_bytes = size_bytes,
        .issued = Clock::now(),
        .moment = {}});
}

void CopyThread::Wait(std::shared_ptr<Moment> moment) {
  Push({.kind = Kind::kWait, .moment = std::move(moment)});
}

void CopyThread::Record(std::shared_ptr<Moment> moment) {
  Push({.kind = Kind::kRecord, .moment = std::move(moment)});
}

void CopyThread::Push(Command command) {
  {
    const std::lock_guard lock(shared_.mutex);
    queue_.push_back(std::move(command));
  }
  work_.notify_one();
}

void CopyThread::Loop() {
  SleepPrecisely();
  std::unique_lock lock(shared_.mutex);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Command command = std::move(queue_.front());
    queue_.pop_front();
    switch (command.kind) {
      case Kind::kWait:
        shared_.happened.wait(lock, [&command] { return command.moment->happened; });
        ready_ = std::max(ready_, command.moment->time);
        break;
      case Kind::kRecord:
        command.moment->happened = true;
        command.moment->time = Clock::now();
        shared_.happened.notify_all();
        break;
      case Kind::kCopy:
        try {
          CheckRange(command);
          lock.unlock();
          Copy(command);
          lock.lock();
        } catch (const std::exception& error) {
          if (!lock.owns_lock()) lock.lock();
          if (shared_.error.empty()) {
            shared_.error = error.what();
            shared_.failed_call = fmt::format("a copy on the {} stream", Name(stream_));
          }
        }
        break;
    }
  }
}

void CopyThread::CheckRange(const Command& command) const {
  const std::byte* const begin = stream_ == Stream::kCopyIn ? command.to : command.from;
  const auto after = shared_.device.upper_bound(begin);
  if (command.size_bytes >= 0 && after != shared_.device.begin()) {
    const auto& [memory, size_bytes] = *std::prev(after);
    const Bytes offset = begin - memory;
    if (offset <= size_bytes && command.size_bytes <= size_bytes - offset) return;
  }
  throw Error(fmt::format("{} bytes at {} are not in live device memory", command.size_bytes,
                          fmt::ptr(begin)));
}

void CopyThread::Copy(const Command& command) {
  if (jitter_ns_ > 0) {
    const auto jitter = std::uniform_int_distribution<Nanoseconds>(0, jitter_ns_)(random_);
    std::this_thread::sleep_for(std::chrono::nanoseconds(jitter));
  }
  if (pace_.limited()) {
    CopyPaced(command);
  } else {
    CopyBytes(command.to, command.from, command.size_bytes);
  }
}

void CopyThread::CopyPaced(const Command& command) {
  pace_.Begin(std::max(ready_, command.issued), command.size_bytes);
  for (Bytes done = 0; done < command.size_bytes;) {
    const Bytes chunk = std::min(kChunkBytes, command.size_bytes - done);
    CopyBytes(command.to + done, command.from + done, chunk);
    done += chunk;
    const auto when = pace_.When(done);
    if (done < command.size_bytes && when - Clock::now() >= kShortestSleep) {
      std::this_thread::sleep_until(when);
    }
  }
  std::this_thread::sleep_until(pace_.When(command.size_bytes));
}

}  // namespace plimsoll::device::internal

// SPDX-License-Identifier: Apache-2.0
//
// A copy stream of the host backend. For host_backend.cc only.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "plimsoll/device/backend.h"
#include "plimsoll/device/pace.h"

namespace plimsoll::device::internal {

/// A place in a stream: what one Record() makes and what later waits refer to, so that recording
/// the event again changes nothing for them.
struct Moment {
  bool happened = false;
  Pace::TimePoint time{};
};

/// What the threads of one host backend share; `mutex` guards all of it, and every Moment.
struct Shared {
  std::mutex mutex;
  std::condition_variable happened;  // Some moment has.
  std::string error;                 // What went wrong first and was not thrown yet.
  std::string failed_call;
  std::map<const std::byte*, Bytes, std::less<>> device;  // Live device memory.
  std::map<const std::byte*, Bytes, std::less<>> host;    // Live host memory.
};

/// A thread that runs commands in the order in which they were given. A copy that fails leaves its
/// error in Shared, and the thread goes on, so that nobody waits for ever.
class CopyThread {
 public:
  CopyThread(Shared* shared, Stream stream, Pace pace, Nanoseconds jitter_ns, std::uint64_t seed);
  /// Runs everything that was given, then ends the thread.
  ~CopyThread();
  CopyThread(const CopyThread&) = delete;
  CopyThread& operator=(const CopyThread&) = delete;

  void Copy(std::byte* to, const std::byte* from, Bytes size_bytes);
  void Wait(std::shared_ptr<Moment> moment);
  void Record(std::shared_ptr<Moment> moment);

 private:
  enum class Kind : std::uint8_t { kCopy, kWait, kRecord };
  struct Command {
    Kind kind = Kind::kCopy;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    Bytes size_bytes = 0;
    Pace::TimePoint issued{};
    std::shared_ptr<Moment> moment;
  };

  void Push(Command command);
  void Loop();
  // Throws DeviceError unless the device side of a copy is live memory. Wants the lock.
  void CheckRange(const Command& command) const;
  void Copy(const Command& command);
  void CopyPaced(const Command& command);

  Shared& shared_;
  Stream stream_;
  Pace pace_;
  Nanoseconds jitter_ns_;
  std::mt19937_64 random_;
  Pace::TimePoint ready_{};  // When the latest wait was over.

  std::condition_variable work_;
  std::deque<Command> queue_;  // Guarded by the shared mutex, as is stopping_.
  bool stopping_ = false;
  std::thread thread_;  // Last, as it uses all of the above.
};

}  // namespace plimsoll::device::internal

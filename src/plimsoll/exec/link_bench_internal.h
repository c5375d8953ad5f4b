// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/device/backend.h"

namespace plimsoll::exec {

/// Memory on both sides, and events around copies: what times of a link are measured with. All of
/// them are medians; the first run of each, which touches all pages, does not count, unless it took
/// long. Where other programs make runs take long, there are fewer.
class LinkBench {
 public:
  static constexpr Bytes kLarge = Bytes{16} << 20;
  static constexpr Bytes kSmall = 4096;

  explicit LinkBench(device::Backend* backend)
      : backend_(*backend),
        device_(Take(backend->AllocateDevice(2 * kLarge), &device::Backend::FreeDevice)),
        host_(Take(backend->AllocateHost(2 * kLarge), &device::Backend::FreeHost)) {
    for (device::EventId& event : events_) event = backend_.CreateEvent();
    std::memset(host_.get(), 1, 2 * kLarge);
  }
  ~LinkBench() {
    for (const device::EventId event : events_) backend_.DestroyEvent(event);
  }
  LinkBench(const LinkBench&) = delete;
  LinkBench& operator=(const LinkBench&) = delete;

  struct Times {
    double out_s = 0;
    double in_s = 0;
  };
  /// The median time of copies of this size; of both directions at once if both are asked for.
  Times Measure(bool out, bool in, Bytes size_bytes) {
    std::vector<double> out_times;
    std::vector<double> in_times;
    for (Runs runs; runs.Next();) {
      if (out) {
        backend_.Record(events_[0], device::Stream::kCopyOut);
        backend_.CopyOut(host_.get(), device_.get(), size_bytes);
        backend_.Record(events_[1], device::Stream::kCopyOut);
      }
      if (in) {
        backend_.Record(events_[2], device::Stream::kCopyIn);
        backend_.CopyIn(device_.get() + kLarge, host_.get() + kLarge, size_bytes);
        backend_.Record(events_[3], device::Stream::kCopyIn);
      }
      backend_.Synchronize();
      if (!runs.NoteOne()) continue;
      if (out) out_times.push_back(Between(0, 1));
      if (in) in_times.push_back(Between(2, 3));
    }
    return {Median(out_times), Median(in_times)};
  }

  /// Device memory that no copy touches.
  std::byte* AllocateSpare(Bytes size_bytes) {
    spare_ = Take(backend_.AllocateDevice(size_bytes), &device::Backend::FreeDevice);
    return spare_.get();
  }

  /// Copies of one size, one after the other.
  struct Copies {
    int count = 0;
    Bytes size_bytes = kLarge;
  };
  struct Together {
    double compute_s = 0;
    double out_s = 0;
    double in_s = 0;
  };
  /// The median times of a function, if there is one, and of copies out and in, all at once.
  Together MeasureTogether(const std::function<void(void*)>& function, Copies outs, Copies ins) {
    std::array<std::vector<double>, 3> times;
    for (Runs runs; runs.Next();) {
      backend_.Record(events_[0], device::Stream::kCopyOut);
      backend_.Record(events_[2], device::Stream::kCopyIn);
      for (int k = 0; k < std::max(outs.count, ins.count); ++k) {
        if (k < outs.count) backend_.CopyOut(host_.get(), device_.get(), outs.size_bytes);
        if (k < ins.count) {
          backend_.CopyIn(device_.get() + kLarge, host_.get() + kLarge, ins.size_bytes);
        }
      }
      backend_.Record(events_[1], device::Stream::kCopyOut);
      backend_.Record(events_[3], device::Stream::kCopyIn);
      backend_.Record(events_[4], device::Stream::kCompute);
      if (function) backend_.Run(function);
      backend_.Record(events_[5], device::Stream::kCompute);
      backend_.Synchronize();
      if (!runs.NoteOne()) continue;
      times[0].push_back(Between(4, 5));
      times[1].push_back(Between(0, 1));
      times[2].push_back(Between(2, 3));
    }
    return {Median(times[0]), Median(times[1]), Median(times[2])};
  }

  /// What each of many brief functions takes longer, behind a long one, if it waits for a small
  /// copy that waited for the one before, in seconds.
  double MeasureHandover(const std::function<void(void*)>& first,
                         const std::function<void(void*)>& brief) {
    return (MeasureBrief(first, brief, true) - MeasureBrief(first, brief, false)) / kHandovers;
  }

 private:
  static constexpr int kHandovers = 64;

  /// Of one measurement: how often, and which count.
  class Runs {
   public:
    bool Next() { return run_++ < kRuns && (counted_ == 0 || !is_late()); }
    /// Of what has just run: whether it counts.
    bool NoteOne() {
      const bool counts = run_ > 1 || is_late();
      counted_ += counts ? 1 : 0;
      return counts;
    }

   private:
    static constexpr int kRuns = 6;
    static constexpr double kMostSeconds = 0.25;
    bool is_late() const { return watch_.seconds() > kMostSeconds; }

    int run_ = 0;
    int counted_ = 0;
    Stopwatch watch_;
  };
  using Memory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

  template <typename Free>
  Memory Take(std::byte* memory, Free free) {
    return {memory, [this, free](std::byte* taken) { (backend_.*free)(taken); }};
  }
  /// The median time of many brief functions behind a long one; each waits for a small copy that
  /// waited for the one before, or none does.
  double MeasureBrief(const std::function<void(void*)>& first,
                      const std::function<void(void*)>& brief, bool waits) {
    std::vector<double> times;
    for (Runs runs; runs.Next();) {
      backend_.Run(first);  // While it runs, the rest is asked for.
      backend_.Record(events_[4], device::Stream::kCompute);
      for (int k = 0; k < kHandovers; ++k) {
        if (waits) {
          backend_.Record(events_[2], device::Stream::kCompute);
          backend_.Wait(device::Stream::kCopyIn, events_[2]);
          backend_.CopyIn(device_.get(), host_.get(), kSmall);
          backend_.Record(events_[3], device::Stream::kCopyIn);
          backend_.Wait(device::Stream::kCompute, events_[3]);
        }
        backend_.Run(brief);
      }
      backend_.Record(events_[5], device::Stream::kCompute);
      backend_.Synchronize();
      if (runs.NoteOne()) times.push_back(Between(4, 5));
    }
    return Median(times);
  }

  double Between(int begin, int end) {
    return static_cast<double>(backend_.TimeOf(events_[end]) - backend_.TimeOf(events_[begin])) /
           1e9;
  }
  static double Median(std::vector<double> times) {
    if (times.empty()) return 0;
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return times[times.size() / 2];
  }

  device::Backend& backend_;
  Memory device_;
  Memory host_;
  Memory spare_;
  device::EventId events_[6] = {};
};

}  // namespace plimsoll::exec

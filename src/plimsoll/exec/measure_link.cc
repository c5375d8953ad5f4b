// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/measure_link.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace plimsoll::exec {
namespace {

constexpr Bytes kLarge = Bytes{16} << 20;
constexpr Bytes kSmall = 4096;
constexpr int kRuns = 5;
/// More than any cache holds.
constexpr Bytes kTraffic = Bytes{256} << 20;
/// What a cache holds, and what takes a moment.
constexpr Bytes kCached = Bytes{24} << 20;
constexpr Bytes kBrief = Bytes{1} << 20;
/// So many copies each way outlast the traffic that they are measured with, or nearly so.
constexpr int kCopies = 8;
constexpr int kHandovers = 64;

/// Memory on both sides, and events around copies.
class Bench {
 public:
  explicit Bench(device::Backend* backend)
      : backend_(*backend),
        device_(Take(backend->AllocateDevice(2 * kLarge), &device::Backend::FreeDevice)),
        host_(Take(backend->AllocateHost(2 * kLarge), &device::Backend::FreeHost)) {
    for (device::EventId& event : events_) event = backend_.CreateEvent();
    std::memset(host_.get(), 1, 2 * kLarge);
  }
  ~Bench() {
    for (const device::EventId event : events_) backend_.DestroyEvent(event);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  struct Times {
    double out_s = 0;
    double in_s = 0;
  };
  /// The median time of copies of this size; of both directions at once if both are asked for.
  Times Measure(bool out, bool in, Bytes size_bytes) {
    std::vector<double> out_times;
    std::vector<double> in_times;
    for (int run = 0; run <= kRuns; ++run) {
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
      // The first run is to touch all pages.
      if (run == 0) continue;
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

  struct Together {
    double compute_s = 0;
    double out_s = 0;
    double in_s = 0;
  };
  /// The median times of a function, if there is one, and of so many copies out and in, all at
  /// once.
  Together MeasureTogether(const std::function<void(void*)>& function, int outs, int ins) {
    std::array<std::vector<double>, 3> times;
    for (int run = 0; run <= kRuns; ++run) {
      backend_.Record(events_[0], device::Stream::kCopyOut);
      backend_.Record(events_[2], device::Stream::kCopyIn);
      for (int k = 0; k < std::max(outs, ins); ++k) {
        if (k < outs) backend_.CopyOut(host_.get(), device_.get(), kLarge);
        if (k < ins) backend_.CopyIn(device_.get() + kLarge, host_.get() + kLarge, kLarge);
      }
      backend_.Record(events_[1], device::Stream::kCopyOut);
      backend_.Record(events_[3], device::Stream::kCopyIn);
      backend_.Record(events_[4], device::Stream::kCompute);
      if (function) backend_.Run(function);
      backend_.Record(events_[5], device::Stream::kCompute);
      backend_.Synchronize();
      if (run == 0) continue;
      times[0].push_back(Between(4, 5));
      times[1].push_back(Between(0, 1));
      times[2].push_back(Between(2, 3));
    }
    return {Median(times[0]), Median(times[1]), Median(times[2])};
  }

  /// The median time of many brief functions behind a long one; each waits for a small copy that
  /// waited for the one before, or none does.
  double MeasureBrief(const std::function<void(void*)>& first,
                      const std::function<void(void*)>& brief, bool waits) {
    std::vector<double> times;
    for (int run = 0; run <= kRuns; ++run) {
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
      if (run > 0) times.push_back(Between(4, 5));
    }
    return Median(times);
  }

 private:
  using Memory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

  template <typename Free>
  Memory Take(std::byte* memory, Free free) {
    return {memory, [this, free](std::byte* taken) { (backend_.*free)(taken); }};
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

}  // namespace

plan::Machine MeasureLink(device::Backend* backend) {
  Bench bench(backend);
  const Bench::Times small_out = bench.Measure(true, false, kSmall);
  const Bench::Times small_in = bench.Measure(false, true, kSmall);
  const Bench::Times out = bench.Measure(true, false, kLarge);
  const Bench::Times in = bench.Measure(false, true, kLarge);
  const Bench::Times both = bench.Measure(true, true, kLarge);
  const auto rate = [](double seconds, double latency) {
    const double bytes_per_s = static_cast<double>(kLarge) / std::max(seconds - latency, 1e-9);
    return std::clamp(bytes_per_s, plan::kSlowestBytesPerS, plan::kFastestBytesPerS);
  };
  plan::Machine machine;
  machine.name = std::string(backend->name());
  machine.out_latency_ns = static_cast<Nanoseconds>(small_out.out_s * 1e9);
  machine.in_latency_ns = static_cast<Nanoseconds>(small_in.in_s * 1e9);
  machine.out_bytes_per_s = rate(out.out_s, small_out.out_s);
  machine.in_bytes_per_s = rate(in.in_s, small_in.in_s);
  machine.both_out_bytes_per_s =
      std::min(rate(both.out_s, small_out.out_s), machine.out_bytes_per_s);
  machine.both_in_bytes_per_s = std::min(rate(both.in_s, small_in.in_s), machine.in_bytes_per_s);
  return machine;
}

void MeasureCosts(device::Backend* backend, const MakeTraffic& make_traffic,
                  plan::Machine* machine) {
  Bench bench(backend);
  std::byte* const memory = bench.AllocateSpare(kTraffic);
  for (const Bytes size_bytes : {kTraffic, kCached}) {
    const auto once = make_traffic(memory, size_bytes);
    const auto traffic = [&](void* native_stream) {
      for (Bytes done = 0; done < kTraffic; done += size_bytes) once(native_stream);
    };
    const double alone = bench.MeasureTogether(traffic, 0, 0).compute_s;
    const auto slowdown = [&](int outs, int ins) {
      const double beside = bench.MeasureTogether(traffic, outs, ins).compute_s;
      return alone > 0 ? std::clamp(beside / alone, 1.0, plan::kWorstSlowdown) : 1;
    };
    machine->slowdown_by_out = std::max(machine->slowdown_by_out, slowdown(kCopies, 0));
    machine->slowdown_by_in = std::max(machine->slowdown_by_in, slowdown(0, kCopies));
  }
  const auto first = make_traffic(memory, kTraffic);
  const auto brief = make_traffic(memory, kBrief);
  const double lost =
      bench.MeasureBrief(first, brief, true) - bench.MeasureBrief(first, brief, false);
  // From compute to the copy, the copy, and from the copy to compute.
  const double handovers_ns = lost * 1e9 / kHandovers - static_cast<double>(machine->in_latency_ns);
  machine->handover_ns = static_cast<Nanoseconds>(std::max(handovers_ns, 0.0) / 2);
}

Interference MeasureInterference(device::Backend* backend, const MakeTraffic& make_traffic) {
  Bench bench(backend);
  const auto traffic = make_traffic(bench.AllocateSpare(kTraffic), kTraffic);
  const Bench::Together alone = bench.MeasureTogether(traffic, 0, 0);
  const Bench::Together copies = bench.MeasureTogether({}, kCopies, kCopies);
  const Bench::Together both = bench.MeasureTogether(traffic, kCopies, kCopies);
  const auto ratio = [](double slow, double fast) {
    return fast > 0 ? std::max(1.0, slow / fast) : 1;
  };
  return {ratio(both.compute_s, alone.compute_s), ratio(both.out_s, copies.out_s),
          ratio(both.in_s, copies.in_s)};
}

}  // namespace plimsoll::exec

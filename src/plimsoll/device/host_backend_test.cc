// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_backend.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/device/backend_contract_for_test.h"
#include "plimsoll/device/graph_backend_for_test.h"

namespace plimsoll::device {
namespace {

constexpr Bytes kMebibyte = Bytes{1} << 20;
// 5 ms for a mebibyte.
constexpr HostOptions kSlow{.out_bytes_per_s = 200.0 * kMebibyte,
                            .in_bytes_per_s = 200.0 * kMebibyte,
                            .latency_ns = 10'000};

struct HostBackendHolder {
  HostBackend host{{.poison_on_free = true}};
};

BackendCase CaseOf(const char* name, const HostOptions& options, bool slow_copies) {
  return {name, [options] { return std::make_unique<HostBackend>(options); }, slow_copies};
}

/// The graphs of tests keep the contract, too.
class OwningGraphBackend final : private HostBackendHolder, public GraphBackend {
 public:
  OwningGraphBackend() : GraphBackend(&host) {}
};

INSTANTIATE_TEST_SUITE_P(
    Host, BackendContractTest,
    testing::Values(CaseOf("host", {}, false), CaseOf("poisoned", {.poison_on_free = true}, false),
                    CaseOf("throttled", kSlow, true),
                    CaseOf("jittered", {.jitter_ns = 200'000}, false),
                    BackendCase{"graphs", [] { return std::make_unique<OwningGraphBackend>(); }}),
    [](const auto& tested) { return tested.param.name; });

TEST(HostBackendTest, ThrottledCopiesTakeTheirTimeBackToBack) {
  // 40 copies of 0.5 ms and 0.1 ms of latency each: 24 ms, and sleeping must not add up.
  HostBackend backend({.out_bytes_per_s = 100.0 * kMebibyte, .latency_ns = 100'000});
  constexpr Bytes kSize = kMebibyte / 20;
  constexpr int kCopies = 40;
  std::byte* const device = backend.AllocateDevice(kSize);
  std::byte* const host = backend.AllocateHost(kSize);
  const EventId begin = backend.CreateEvent();
  const EventId end = backend.CreateEvent();
  // The best of many, as others may want the processor too.
  double best_ms = 1e9;
  for (int attempt = 0; attempt < 100 && best_ms > 24.2; ++attempt) {
    backend.Record(begin, Stream::kCompute);
    for (int i = 0; i < kCopies; ++i) backend.CopyOut(host, device, kSize);
    backend.Record(end, Stream::kCopyOut);
    backend.Synchronize(end);
    const double ms = static_cast<double>(backend.TimeOf(end) - backend.TimeOf(begin)) / 1e6;
    EXPECT_GE(ms, 23.999);
    best_ms = std::min(best_ms, ms);
  }
  EXPECT_LE(best_ms, 24.2);
  backend.FreeDevice(device);
  backend.FreeHost(host);
}

TEST(HostBackendTest, IdleTimeIsNotSavedUp) {
  HostBackend backend(kSlow);
  std::byte* const device = backend.AllocateDevice(kMebibyte);
  std::byte* const host = backend.AllocateHost(kMebibyte);
  for (int i = 0; i < 2; ++i) {
    const Stopwatch watch;
    backend.CopyIn(device, host, kMebibyte);
    backend.Synchronize();
    EXPECT_GE(watch.seconds(), 0.005);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  backend.FreeDevice(device);
  backend.FreeHost(host);
}

TEST(HostBackendTest, ACopyOutsideOfDeviceMemoryIsThrownOnceByTheNextCallThatWaits) {
  HostBackend backend;
  std::byte* const device = backend.AllocateDevice(1000);
  std::byte* const host = backend.AllocateHost(2000);
  const EventId event = backend.CreateEvent();
  for (const auto& copy : std::vector<std::function<void()>>{
           [&] { backend.CopyOut(host, device, 1001); },
           [&] { backend.CopyIn(device + 500, host, 501); },
           [&] { backend.CopyIn(host, host, 1); },
           [&] { backend.CopyOut(host, device, -1); },
       }) {
    copy();
    backend.Record(event, Stream::kCopyIn);
    EXPECT_THROW(backend.Synchronize(), DeviceError);
    backend.Synchronize();
    copy();
    backend.Record(event, Stream::kCopyOut);
    backend.Wait(Stream::kCopyIn, event);
    backend.Record(event, Stream::kCopyIn);
    EXPECT_THROW(
        {
          backend.Wait(Stream::kCompute, event);
          backend.Synchronize();
        },
        DeviceError);
    backend.Wait(Stream::kCompute, event);
  }
  // The streams still work.
  backend.CopyOut(host, device, 1000);
  backend.Synchronize();
  backend.FreeDevice(device);
  backend.FreeHost(host);
}

TEST(HostBackendTest, PoisonsDeviceMemory) {
  HostBackend backend({.poison_on_free = true});
  std::byte* const memory = backend.AllocateDevice(1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(memory[i], kPoison);
  backend.FreeDevice(memory);
}

TEST(HostBackendTest, CountsWhatIsLive) {
  HostBackend backend;
  std::byte* const device = backend.AllocateDevice(1000);
  std::byte* const host = backend.AllocateHost(2000);
  EXPECT_EQ(backend.device_bytes(), 1000);
  EXPECT_EQ(backend.host_bytes(), 2000);
  backend.FreeDevice(device);
  backend.FreeHost(host);
  EXPECT_EQ(backend.device_bytes(), 0);
  EXPECT_EQ(backend.host_bytes(), 0);
}

TEST(HostBackendTest, RefusesMoreHostMemoryThanThereIsForIt) {
  HostBackend backend({.most_bytes = 10'000});
  std::byte* const device = backend.AllocateDevice(4000);
  std::byte* const host = backend.AllocateHost(5000);
  try {
    backend.AllocateHost(2000);
    FAIL() << "it was not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), 2000);
    EXPECT_EQ(error.free(), 1000);
  }
  backend.FreeHost(host);
  std::byte* const more = backend.AllocateHost(6000);
  backend.FreeHost(more);
  backend.FreeDevice(device);
}

TEST(HostBackendTest, TheDestructorFinishesWhatWasIssued) {
  std::vector<std::byte> host(kMebibyte);
  std::byte* device = nullptr;
  {
    HostBackend backend(kSlow);
    device = backend.AllocateDevice(kMebibyte);
    const std::vector<std::byte> data(kMebibyte, std::byte{3});
    backend.Upload(device, data.data(), kMebibyte);
    backend.CopyOut(host.data(), device, kMebibyte);
  }
  EXPECT_EQ(host, std::vector<std::byte>(kMebibyte, std::byte{3}));
  std::free(device);
}

}  // namespace
}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/null_backend.h"

#include <gtest/gtest.h>

#include <memory>

#include "plimsoll/device/backend_contract_for_test.h"

namespace plimsoll::device {
namespace {

INSTANTIATE_TEST_SUITE_P(Null, BackendContractTest,
                         testing::Values(BackendCase{
                             "null", [] { return std::make_unique<NullBackend>(); }}));

TEST(NullBackendTest, CountsMemory) {
  NullBackend backend;
  std::byte* const a = backend.AllocateDevice(Bytes{1} << 50);
  std::byte* const b = backend.AllocateDevice(10);
  std::byte* const c = backend.AllocateHost(20);
  EXPECT_GE(b - a, Bytes{1} << 50);
  backend.FreeDevice(a);
  EXPECT_EQ(backend.counts().device_allocations, 2);
  EXPECT_EQ(backend.counts().device_bytes, 10);
  EXPECT_EQ(backend.counts().peak_device_bytes, (Bytes{1} << 50) + 10);
  EXPECT_EQ(backend.counts().host_bytes, 20);
  backend.FreeDevice(b);
  backend.FreeHost(c);
  EXPECT_EQ(backend.counts().device_bytes, 0);
  EXPECT_EQ(backend.counts().host_bytes, 0);
  EXPECT_EQ(backend.counts().peak_host_bytes, 20);
}

TEST(NullBackendTest, CountsCommandsAndRunsNone) {
  NullBackend backend;
  std::byte* const device = backend.AllocateDevice(1000);
  std::byte* const host = backend.AllocateHost(1000);
  const EventId event = backend.CreateEvent();
  backend.Run([](void*) { FAIL() << "ran"; });
  backend.CopyOut(host, device, 1000);
  backend.CopyIn(device, host, 600);
  backend.CopyIn(device, host, 400);
  backend.Move(device, device + 500, 500);
  backend.Upload(device, nullptr, 1000);
  std::byte data{7};
  backend.Download(&data, device, 1);
  EXPECT_EQ(data, std::byte{0});
  backend.Record(event, Stream::kCompute);
  backend.Wait(Stream::kCopyIn, event);
  backend.Synchronize(event);
  backend.Synchronize();
  EXPECT_TRUE(backend.HasHappened(event));
  EXPECT_EQ(backend.TimeOf(event), 0);
  const NullCounts& counts = backend.counts();
  EXPECT_EQ(counts.runs, 1);
  EXPECT_EQ(counts.copies_out, 1);
  EXPECT_EQ(counts.copied_out_bytes, 1000);
  EXPECT_EQ(counts.copies_in, 2);
  EXPECT_EQ(counts.copied_in_bytes, 1000);
  EXPECT_EQ(counts.moves, 1);
  EXPECT_EQ(counts.moved_bytes, 500);
  EXPECT_EQ(counts.uploads, 1);
  EXPECT_EQ(counts.downloads, 1);
  EXPECT_EQ(counts.records, 1);
  EXPECT_EQ(counts.waits, 1);
  EXPECT_EQ(counts.synchronizations, 2);
  EXPECT_EQ(counts.live_events, 1);
  backend.DestroyEvent(event);
  EXPECT_EQ(counts.live_events, 0);
  backend.FreeDevice(device);
  backend.FreeHost(host);
}

TEST(NullBackendDeathTest, NoticesAFreeOfWhatIsNotLive) {
  NullBackend backend;
  std::byte* const device = backend.AllocateDevice(1);
  backend.FreeDevice(device);
  EXPECT_DEATH(backend.FreeDevice(device), "not among 0 live");
}

}  // namespace
}  // namespace plimsoll::device

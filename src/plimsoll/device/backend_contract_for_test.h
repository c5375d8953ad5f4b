// SPDX-License-Identifier: Apache-2.0
//
// What every backend promises, as tests. Instantiate for one with
//
//     INSTANTIATE_TEST_SUITE_P(Host, BackendContractTest, testing::Values(BackendCase{...}), ...)
//
// Device memory is only touched through the backend, so that it may be out of the program's reach,
// and is written before it is read, so that checkers of memory find nothing here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/random_for_test.h"
#include "plimsoll/device/backend.h"

namespace plimsoll::device {

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  /// Whether a copy of 1 MiB takes so long, some milliseconds, that a test can look at it.
  bool slow_copies = false;
};
inline void PrintTo(const BackendCase& backend_case, std::ostream* out) {
  *out << backend_case.name;
}

class BackendContractTest : public testing::TestWithParam<BackendCase> {
 protected:
  using Data = std::vector<std::byte>;
  static constexpr Bytes kMebibyte = Bytes{1} << 20;

  BackendContractTest() : backend_(GetParam().make()) {}
  ~BackendContractTest() override {
    for (std::byte* memory : device_) backend_->FreeDevice(memory);
    for (std::byte* memory : host_) backend_->FreeHost(memory);
    for (const EventId event : events_) backend_->DestroyEvent(event);
  }

  Backend& backend() { return *backend_; }
  bool runs() const { return backend_->capabilities().runs; }

  // These are given back when the test ends.
  std::byte* Device(Bytes size_bytes) {
    return device_.emplace_back(backend_->AllocateDevice(size_bytes));
  }
  std::byte* Host(Bytes size_bytes) {
    return host_.emplace_back(backend_->AllocateHost(size_bytes));
  }
  EventId Event() { return events_.emplace_back(backend_->CreateEvent()); }

  // Bytes that differ from place to place and from seed to seed.
  static Data Pattern(Bytes size_bytes, std::uint64_t seed) {
    Data data(static_cast<std::size_t>(size_bytes));
    TestRandom random(seed + 1);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random.Between(0, 255));
    return data;
  }
  std::byte* DeviceWith(const Data& data) {
    std::byte* const memory = Device(std::ssize(data));
    backend_->Upload(memory, data.data(), std::ssize(data));
    return memory;
  }
  std::byte* ZeroedDevice(Bytes size_bytes) {
    return DeviceWith(Data(static_cast<std::size_t>(size_bytes)));
  }
  Data Read(const std::byte* device, Bytes size_bytes) {
    Data data(static_cast<std::size_t>(size_bytes));
    backend_->Download(data.data(), device, size_bytes);
    return data;
  }
  // Makes what is issued to `later` wait for what was issued to `earlier` until now.
  void Order(Stream earlier, Stream later, EventId event) {
    backend_->Record(event, earlier);
    backend_->Wait(later, event);
  }

 private:
  std::unique_ptr<Backend> backend_;
  std::vector<std::byte*> device_;
  std::vector<std::byte*> host_;
  std::vector<EventId> events_;
};

#define PLIMSOLL_SKIP_UNLESS_RUNS() \
  if (!runs()) GTEST_SKIP() << backend().name() << " runs nothing; its test checks its counts"

TEST_P(BackendContractTest, AllocatesAlignedDistinctMemory) {
  const std::byte* const a = Device(1000);
  const std::byte* const b = Device(1);
  const std::byte* const c = Host(1000);
  for (const std::byte* memory : {a, b}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kDefaultAlignment, 0U);
  }
  EXPECT_TRUE(a + 1000 <= b || b + 1 <= a);
  EXPECT_NE(c, nullptr);
}

TEST_P(BackendContractTest, ZeroSizesAreAllowedEverywhere) {
  std::byte* const device = Device(0);
  std::byte* const host = Host(0);
  EXPECT_NE(device, nullptr);
  EXPECT_NE(host, nullptr);
  EXPECT_NE(device, Device(0));
  backend().CopyOut(host, device, 0);
  backend().CopyIn(device, host, 0);
  backend().Move(device, device, 0);
  backend().Upload(device, nullptr, 0);
  backend().Download(nullptr, device, 0);
  backend().Synchronize();
}

TEST_P(BackendContractTest, RefusesWhatNoMachineHas) {
  EXPECT_THROW(Device(kMaxBytes), OutOfMemory);
  EXPECT_THROW(Host(kMaxBytes), OutOfMemory);
  EXPECT_THROW(Device(-1), OutOfMemory);
  EXPECT_NE(Device(100), nullptr);
}

TEST_P(BackendContractTest, FreeingNothingIsAllowed) {
  backend().FreeDevice(nullptr);
  backend().FreeHost(nullptr);
}

TEST_P(BackendContractTest, RunsFunctionsInOrder) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  std::vector<int> order;
  for (int i = 0; i < 10; ++i) backend().Run([&order, i](void*) { order.push_back(i); });
  backend().Synchronize();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(BackendContractTest, FunctionsMayUploadAndDownload) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const Data data = Pattern(1000, 1);
  std::byte* const memory = Device(1000);
  Data found(1000);
  backend().Run([&](void*) { backend().Upload(memory, data.data(), 1000); });
  backend().Run([&](void*) { backend().Download(found.data(), memory, 1000); });
  backend().Synchronize();
  EXPECT_EQ(found, data);
}

TEST_P(BackendContractTest, CopiesOutAndBackInTheOrderOfEvents) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  std::byte* const host = Host(kMebibyte);
  std::byte* const to = Device(kMebibyte);
  const Data data = Pattern(kMebibyte, 1);
  const std::byte* const from = DeviceWith(data);
  Order(Stream::kCompute, Stream::kCopyOut, Event());
  backend().CopyOut(host, from, kMebibyte);
  Order(Stream::kCopyOut, Stream::kCopyIn, Event());
  backend().CopyIn(to, host, kMebibyte);
  Order(Stream::kCopyIn, Stream::kCompute, Event());
  EXPECT_EQ(Read(to, kMebibyte), data);
}

TEST_P(BackendContractTest, CommandsOfAStreamRunInOrder) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  // The last copy into the same place wins, however large the ones before it are.
  std::byte* const to = Device(kMebibyte);
  std::vector<Data> versions;
  for (std::uint64_t i = 0; i < 5; ++i) {
    const Bytes size_bytes = kMebibyte >> i;
    versions.push_back(Pattern(size_bytes, i));
    std::byte* const host = Host(size_bytes);
    std::copy(versions.back().begin(), versions.back().end(), host);
    backend().CopyIn(to, host, size_bytes);
  }
  backend().Synchronize();
  Data expected = versions[0];
  for (const Data& version : versions) std::copy(version.begin(), version.end(), expected.begin());
  EXPECT_EQ(Read(to, kMebibyte), expected);
}

TEST_P(BackendContractTest, IssuingACopyDoesNotWaitForIt) {
  if (!GetParam().slow_copies) GTEST_SKIP() << "copies are too fast to be seen";
  // So long that this thread may well be held up in between.
  constexpr Bytes kSize = 20 * kMebibyte;
  const EventId event = Event();
  const std::byte* const device = ZeroedDevice(kSize);
  backend().CopyOut(Host(kSize), device, kSize);
  backend().Record(event, Stream::kCopyOut);
  EXPECT_FALSE(backend().HasHappened(event));
  backend().Synchronize(event);
  EXPECT_TRUE(backend().HasHappened(event));
}

TEST_P(BackendContractTest, StreamsRunConcurrently) {
  if (!GetParam().slow_copies) GTEST_SKIP() << "copies are too fast to be seen";
  const EventId out = Event();
  const EventId in = Event();
  const EventId compute = Event();
  // So long that the other stream may well be held up.
  constexpr Bytes kSize = 20 * kMebibyte;
  const std::byte* const from = ZeroedDevice(kSize);
  std::byte* const to = ZeroedDevice(kMebibyte);
  std::byte* const host = Host(kSize);
  std::byte* const other = Host(kMebibyte);
  std::fill(other, other + kMebibyte, std::byte{1});
  backend().CopyOut(host, from, kSize);
  backend().Record(out, Stream::kCopyOut);
  backend().CopyIn(to, other, kMebibyte);
  backend().Record(in, Stream::kCopyIn);
  backend().Run([](void*) {});
  backend().Record(compute, Stream::kCompute);
  backend().Synchronize();
  EXPECT_LT(backend().TimeOf(compute), backend().TimeOf(in));
  EXPECT_LT(backend().TimeOf(in), backend().TimeOf(out));
}

TEST_P(BackendContractTest, AWaitRefersToTheLatestRecordAtTheCall) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const EventId event = Event();
  const EventId done = Event();
  std::byte* const host = Host(kMebibyte);
  std::byte* const to = Device(kMebibyte);
  const Data data = Pattern(kMebibyte, 1);
  const std::byte* const from = DeviceWith(data);
  std::byte* const large = Host(8 * kMebibyte);
  const std::byte* const large_from = ZeroedDevice(8 * kMebibyte);
  Order(Stream::kCompute, Stream::kCopyOut, event);
  backend().Record(event, Stream::kCopyOut);
  backend().CopyOut(host, from, kMebibyte);
  backend().Record(event, Stream::kCopyOut);
  backend().Wait(Stream::kCopyIn, event);
  backend().CopyIn(to, host, kMebibyte);
  backend().Record(done, Stream::kCopyIn);
  // Recording the event again does not hold back who waits already.
  backend().CopyOut(large, large_from, 8 * kMebibyte);
  backend().Record(event, Stream::kCopyOut);
  backend().Synchronize(done);
  EXPECT_EQ(Read(to, kMebibyte), data);
  backend().Synchronize(event);
  EXPECT_TRUE(backend().HasHappened(event));
  if (GetParam().slow_copies) {
    EXPECT_LT(backend().TimeOf(done), backend().TimeOf(event));
  }
}

TEST_P(BackendContractTest, AnEventThatWasNeverRecordedHasHappened) {
  const EventId event = Event();
  EXPECT_TRUE(backend().HasHappened(event));
  backend().Wait(Stream::kCompute, event);
  backend().Wait(Stream::kCopyIn, event);
  backend().Synchronize(event);
  backend().Synchronize();
}

TEST_P(BackendContractTest, AnEventThatIsMadeAnewIsNotTheOldOne) {
  const EventId event = backend().CreateEvent();
  const std::byte* const device = ZeroedDevice(kMebibyte);
  Order(Stream::kCompute, Stream::kCopyOut, Event());
  backend().CopyOut(Host(kMebibyte), device, kMebibyte);
  backend().Record(event, Stream::kCopyOut);
  backend().DestroyEvent(event);
  EXPECT_TRUE(backend().HasHappened(Event()));
  backend().Synchronize();
}

TEST_P(BackendContractTest, EventsAreReusedManyTimes) {
  // A ring: out, in and compute take turns with one event each, a thousand times.
  constexpr Bytes kSize = 256;
  constexpr int kTurns = 1000;
  const EventId computed = Event();
  const EventId out = Event();
  const EventId in = Event();
  std::byte* const device = Device(kSize);
  std::byte* const host = Host(kSize);
  for (int turn = 0; turn < kTurns; ++turn) {
    const Data data = Pattern(kSize, static_cast<std::uint64_t>(turn));
    backend().Upload(device, data.data(), kSize);
    Order(Stream::kCompute, Stream::kCopyOut, computed);
    backend().CopyOut(host, device, kSize);
    Order(Stream::kCopyOut, Stream::kCompute, out);
    const Data zeros(kSize);
    backend().Upload(device, zeros.data(), kSize);
    Order(Stream::kCompute, Stream::kCopyIn, computed);
    backend().CopyIn(device, host, kSize);
    Order(Stream::kCopyIn, Stream::kCompute, in);
    if (runs()) {
      ASSERT_EQ(Read(device, kSize), data);
    }
  }
}

TEST_P(BackendContractTest, StreamsShareMemoryWithoutHarm) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  // While one half goes out, the other comes in.
  const Data first = Pattern(kMebibyte, 1);
  const Data second = Pattern(kMebibyte, 2);
  std::byte* const device = Device(2 * kMebibyte);
  std::byte* const out = Host(kMebibyte);
  std::byte* const in = Host(kMebibyte);
  std::copy(second.begin(), second.end(), in);
  backend().Upload(device, first.data(), kMebibyte);
  Order(Stream::kCompute, Stream::kCopyOut, Event());
  for (int i = 0; i < 4; ++i) {
    backend().CopyOut(out, device, kMebibyte);
    backend().CopyIn(device + kMebibyte, in, kMebibyte);
  }
  backend().Synchronize();
  EXPECT_EQ(Data(out, out + kMebibyte), first);
  EXPECT_EQ(Read(device, kMebibyte), first);
  EXPECT_EQ(Read(device + kMebibyte, kMebibyte), second);
}

TEST_P(BackendContractTest, MovesOverlappingRanges) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const Data data = Pattern(3000, 1);
  std::byte* const down = Device(4000);
  std::byte* const up = Device(4000);
  backend().Upload(down + 512, data.data(), 3000);
  backend().Move(down, down + 512, 3000);
  backend().Upload(up, data.data(), 3000);
  backend().Move(up + 512, up, 3000);
  EXPECT_EQ(Read(down, 3000), data);
  EXPECT_EQ(Read(up + 512, 3000), data);
}

TEST_P(BackendContractTest, WhatIsDiscardedIsPoisonedInTheOrderOfCompute) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const Data data = Pattern(3000, 1);
  std::byte* const memory = DeviceWith(data);
  backend().Discard(memory + 500, 2000);
  backend().Discard(memory, 0);
  Data expected = data;
  if (backend().capabilities().poisons) {
    std::fill(expected.begin() + 500, expected.begin() + 2500, kPoison);
  }
  EXPECT_EQ(Read(memory, 3000), expected);
  backend().Upload(memory, data.data(), 3000);
  EXPECT_EQ(Read(memory, 3000), data);
}

TEST_P(BackendContractTest, SynchronizeWaitsForAllStreams) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const Data data = Pattern(kMebibyte, 1);
  const std::byte* const from = DeviceWith(data);
  std::byte* const out = Host(kMebibyte);
  std::byte* const in = Host(kMebibyte);
  std::byte* const to = Device(kMebibyte);
  std::copy(data.begin(), data.end(), in);
  backend().Synchronize();
  backend().CopyOut(out, from, kMebibyte);
  backend().CopyIn(to, in, kMebibyte);
  backend().Synchronize();
  EXPECT_EQ(Data(out, out + kMebibyte), data);
  EXPECT_EQ(Read(to, kMebibyte), data);
}

TEST_P(BackendContractTest, WhatAFunctionThrowsArrives) {
  PLIMSOLL_SKIP_UNLESS_RUNS();
  const auto run = [this] {
    backend().Run([](void*) { throw DeviceError("kernel", "broken"); });
    backend().Synchronize();
  };
  EXPECT_THROW(run(), DeviceError);
  backend().Synchronize();
}

TEST_P(BackendContractTest, TimesGoForward) {
  const EventId before = Event();
  const EventId after = Event();
  const std::byte* const device = ZeroedDevice(kMebibyte);
  Order(Stream::kCompute, Stream::kCopyOut, before);
  backend().CopyOut(Host(kMebibyte), device, kMebibyte);
  backend().Record(after, Stream::kCopyOut);
  backend().Synchronize(after);
  EXPECT_LE(backend().TimeOf(before), backend().TimeOf(after));
}

TEST_P(BackendContractTest, AGraphDoesAgainWhatWasIssued) {
  if (!backend().capabilities().graphs) GTEST_SKIP() << backend().name() << " keeps no graphs";
  // Around the house: out, into another place, and back into the first.
  std::byte* const host = Host(kMebibyte);
  std::byte* const from = Device(kMebibyte);
  std::byte* const to = Device(kMebibyte);
  const EventId out = Event();
  const EventId in = Event();
  backend().BeginGraph();
  backend().CopyOut(host, from, kMebibyte);
  Order(Stream::kCopyOut, Stream::kCopyIn, out);
  backend().CopyIn(to, host, kMebibyte);
  Order(Stream::kCopyIn, Stream::kCompute, in);
  backend().Move(from, to, kMebibyte / 2);
  const GraphId graph = backend().EndGraph();
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    const Data data = Pattern(kMebibyte, turn);
    // On the compute stream, before and behind it.
    backend().Upload(from, data.data(), kMebibyte);
    backend().LaunchGraph(graph);
    EXPECT_EQ(Read(to, kMebibyte), data);
    EXPECT_EQ(Read(from, kMebibyte), data);
  }
  // What goes to a copy stream afterwards comes behind it.
  const Data data = Pattern(kMebibyte, 9);
  std::byte* const other = Host(kMebibyte);
  backend().Upload(from, data.data(), kMebibyte);
  backend().LaunchGraph(graph);
  backend().CopyOut(other, to, kMebibyte);
  backend().Synchronize();
  EXPECT_EQ(Data(other, other + kMebibyte), data);
  backend().DestroyGraph(graph);
}

TEST_P(BackendContractTest, AGraphDiscardsEachTime) {
  if (!backend().capabilities().graphs) GTEST_SKIP() << backend().name() << " keeps no graphs";
  constexpr Bytes kHalf = kMebibyte / 2;
  std::byte* const memory = Device(kMebibyte);
  backend().BeginGraph();
  // The second half is moved down, and no longer needed where it was.
  backend().Move(memory, memory + kHalf, kHalf);
  backend().Discard(memory + kHalf, kHalf);
  const GraphId graph = backend().EndGraph();
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    const Data data = Pattern(kMebibyte, turn);
    backend().Upload(memory, data.data(), kMebibyte);
    backend().LaunchGraph(graph);
    Data expected = data;
    std::copy(data.begin() + kHalf, data.end(), expected.begin());
    if (backend().capabilities().poisons) {
      std::fill(expected.begin() + kHalf, expected.end(), kPoison);
    }
    EXPECT_EQ(Read(memory, kMebibyte), expected);
  }
  backend().DestroyGraph(graph);
}

TEST_P(BackendContractTest, AGraphThatIsDroppedLeavesNothing) {
  if (!backend().capabilities().graphs) GTEST_SKIP() << backend().name() << " keeps no graphs";
  const Data data = Pattern(kMebibyte, 1);
  std::byte* const host = Host(kMebibyte);
  std::byte* const memory = DeviceWith(data);
  backend().BeginGraph();
  backend().CopyIn(memory, host, kMebibyte);
  backend().DropGraph();
  EXPECT_EQ(Read(memory, kMebibyte), data);
  backend().CopyOut(host, memory, kMebibyte);
  backend().Synchronize();
  EXPECT_EQ(Data(host, host + kMebibyte), data);
}

}  // namespace plimsoll::device

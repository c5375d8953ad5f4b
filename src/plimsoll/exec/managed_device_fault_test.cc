// SPDX-License-Identifier: Apache-2.0
//
// Whatever fails, once or for ever: a typed error or the right numbers, nothing left behind.
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/fault_backend.h"
#include "plimsoll/device/graph_backend_for_test.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/exec/toy_network_for_test.h"

namespace plimsoll::exec {
namespace {

using device::Fault;
using device::FaultyCall;

constexpr int kSteps = 9;
/// Of one run; the issue is a hang, not a slow machine.
constexpr double kMostSeconds = 5;

ToyOptions Network() { return {.seed = 11, .layers = 9}; }

/// Train, drift in the middle of an iteration, evaluate, and train on.
std::vector<std::uint64_t> Train(Device* device) {
  std::vector<std::uint64_t> results;
  ToyNetwork network(device, Network());
  device->EndIteration("train");
  for (int k = 0; k < kSteps; ++k) {
    ToyStep step;
    step.skips = k == 5 ? 6 : -1;
    step.evaluates = k == 7;
    step.next = k == 6 ? "evaluate" : "train";
    results.push_back(network.Step(step));
  }
  network.Finish();
  return results;
}

struct Reference {
  std::vector<std::uint64_t> results;
  Bytes peak_bytes = 0;
};

Reference TrainPlainly() {
  device::HostBackend backend;
  PlainDevice device(&backend);
  Reference reference;
  reference.results = Train(&device);
  reference.peak_bytes = device.stats().peak_live_bytes;
  return reference;
}

ManagedOptions Options(Bytes limit_bytes) {
  ManagedOptions options;
  options.watch.planning.limit_bytes = limit_bytes;
  options.watch.planning.machine = {.name = "test",
                                    .out_bytes_per_s = 2e9,
                                    .in_bytes_per_s = 2e9,
                                    .both_out_bytes_per_s = 2e9,
                                    .both_in_bytes_per_s = 2e9};
  options.watch.planning.evaluations = 5;
  options.watch.plan_at_once = true;
  options.ledger = true;
  return options;
}

/// Without copies, iterations are graphs as soon as that can be.
Bytes LimitFor(FaultyCall call, const Reference& reference) {
  return call == FaultyCall::kLaunchGraph ? reference.peak_bytes : reference.peak_bytes * 6 / 10;
}

/// Trains, with or without the fault, and returns how many calls of its kind that made.
std::int64_t CountCalls(const Reference& reference, const Fault& fault, bool fails, int* errors) {
  device::HostBackend host;
  device::GraphBackend graphs(&host);
  device::FaultBackend backend(&graphs);
  if (fails) backend.Fail(fault);
  const Stopwatch watch;
  try {
    ManagedDevice device(&backend, Options(LimitFor(fault.call, reference)));
    EXPECT_EQ(Train(&device), reference.results);
    EXPECT_EQ(device.stats().live_bytes, 0);
  } catch (const Error& error) {
    ++*errors;
    EXPECT_STRNE(error.what(), "");
  }
  EXPECT_LT(watch.seconds(), kMostSeconds);
  EXPECT_EQ(host.device_bytes(), 0);
  EXPECT_EQ(host.host_bytes(), 0);
  return backend.calls(fault.call);
}

/// A program that takes an error for a passing one, and asks again.
class RetryingDevice final : public Device {
 public:
  RetryingDevice(Device* target, device::Backend* backend) : target_(*target), backend_(*backend) {}

  Block Malloc(Bytes size_bytes) override {
    return Twice([&] { return target_.Malloc(size_bytes); });
  }
  void Free(Block block) override { target_.Free(block); }
  void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
            Function function) override {
    Twice([&] { target_.Exec(info, reads, writes, function); });
  }
  void EndIteration(std::string_view next) override {
    Twice([&] { target_.EndIteration(next); });
  }
  void Synchronize() override { target_.Synchronize(); }
  DeviceStats stats() const override { return target_.stats(); }

 protected:
  void CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) override {
    backend_.Upload(device, data, size_bytes);
  }
  void CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) override {
    backend_.Download(data, device, size_bytes);
  }

 private:
  template <typename Call>
  static std::invoke_result_t<Call> Twice(const Call& call) {
    try {
      return call();
    } catch (const DeviceError&) {
      return call();
    }
  }

  Device& target_;
  device::Backend& backend_;
};

class ManagedDeviceFaultTest : public testing::TestWithParam<FaultyCall> {};

TEST_P(ManagedDeviceFaultTest, GivesATypedErrorOrTheRightNumbers) {
  const Reference reference = TrainPlainly();
  int errors = 0;
  const std::int64_t calls = CountCalls(reference, {.call = GetParam()}, false, &errors);
  ASSERT_EQ(errors, 0);
  // Each call where there are few of them, else some from all over the run.
  const std::int64_t stride = std::max<std::int64_t>(1, calls / 25);
  for (const bool for_ever : {false, true}) {
    for (const bool late : {false, true}) {
      for (std::int64_t nth = 1; nth <= calls; nth += stride) {
        SCOPED_TRACE(testing::Message() << "call " << nth << " of " << calls << ", for ever "
                                        << for_ever << ", late " << late);
        CountCalls(reference, {GetParam(), nth, for_ever, late}, true, &errors);
      }
    }
  }
  if (GetParam() == FaultyCall::kLaunchGraph) {
    EXPECT_GT(calls, 0);
  }
  if (calls > 0) {
    EXPECT_GT(errors, 0);
  }
}

TEST_P(ManagedDeviceFaultTest, NoNumberIsWrongForOneWhoAsksAgain) {
  const Reference reference = TrainPlainly();
  int errors = 0;
  const std::int64_t calls = CountCalls(reference, {.call = GetParam()}, false, &errors);
  const std::int64_t stride = std::max<std::int64_t>(1, calls / 25);
  for (const bool late : {false, true}) {
    for (std::int64_t nth = 1; nth <= calls; nth += stride) {
      SCOPED_TRACE(testing::Message() << "call " << nth << " of " << calls << ", late " << late);
      device::HostBackend host;
      device::GraphBackend graphs(&host);
      device::FaultBackend backend(&graphs);
      backend.Fail({GetParam(), nth, false, late});
      try {
        ManagedDevice device(&backend, Options(LimitFor(GetParam(), reference)));
        RetryingDevice retrying(&device, &backend);
        EXPECT_EQ(Train(&retrying), reference.results);
      } catch (const Error& error) {
        EXPECT_STRNE(error.what(), "");
      }
    }
  }
}

/// Trains without drift but at the end.
std::vector<std::uint64_t> TrainSteadily(Device* device, const ToyOptions& toy) {
  std::vector<std::uint64_t> results;
  ToyNetwork network(device, toy);
  if (toy.marks) device->EndIteration("train");
  for (int k = 0; k < 12; ++k) results.push_back(network.Step(ToyStep{}));
  network.Finish();
  return results;
}

TEST(HostShortageTest, TrainingGoesOnWithTheHostMemoryThatThereIs) {
  int planned_again = 0;
  int planned_for_less = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const ToyOptions toy{.seed = seed, .layers = 12, .marks = seed % 2 == 0};
    device::HostBackend plain_backend;
    PlainDevice plain(&plain_backend);
    const std::vector<std::uint64_t> reference = TrainSteadily(&plain, toy);
    const Bytes peak = plain.stats().peak_live_bytes;
    for (const int percent : {90, 80, 70, 60, 30}) {
      SCOPED_TRACE(testing::Message() << percent << " %, seed " << seed);
      device::HostBackend host({.poison_on_free = true});
      device::FaultBackend backend(&host);
      backend.LimitHost(peak * percent / 100);
      try {
        ManagedDevice device(&backend, Options(peak / 2));
        EXPECT_EQ(TrainSteadily(&device, toy), reference);
        const std::optional<HostShortage> shortage = device.host_shortage();
        // Recording asks for a whole chunk.
        ASSERT_TRUE(shortage.has_value());
        EXPECT_GT(shortage->asked_bytes, shortage->got_bytes);
        EXPECT_LE(shortage->got_bytes, peak * percent / 100);
        if (shortage->replans == 0) continue;
        ++planned_again;
        EXPECT_GT(shortage->lost_plan_ns, 0);
        EXPECT_EQ(device.stats().plans_made, 1 + shortage->replans);
        const bool planned = device.stats().planned_iterations > 0;
        EXPECT_EQ(planned, shortage->present_plan_ns > 0);
        planned_for_less += planned ? 1 : 0;
      } catch (const OutOfMemory&) {
        // Not even what does not fit on the device at a time has room.
        EXPECT_LT(percent, 70);
      }
      EXPECT_EQ(host.device_bytes(), 0);
      EXPECT_EQ(host.host_bytes(), 0);
    }
  }
  // How many depends on how long ops take.
  EXPECT_GT(planned_again, 1);
  EXPECT_GT(planned_for_less, 0);
}

TEST(HostShortageTest, RecordingGoesOnInASmallerSlab) {
  device::HostBackend host;
  device::FaultBackend backend(&host);
  backend.LimitHost(Bytes{1} << 20);
  ManagedDevice device(&backend, Options(Bytes{5} << 16));
  EXPECT_EQ(device.host_shortage(), std::nullopt);
  // Two of three fit.
  std::vector<Block> blocks;
  for (int k = 0; k < 3; ++k) blocks.push_back(device.Malloc(Bytes{1} << 17));
  for (int turn = 0; turn < 4; ++turn) {
    for (int k = 0; k < 3; ++k) {
      const int content = 3 * turn + k;
      device.Write(blocks[static_cast<std::size_t>(k)], &content, sizeof content);
    }
    for (int k = 0; k < 3; ++k) {
      int found = 0;
      device.Read(blocks[static_cast<std::size_t>(k)], &found, sizeof found);
      EXPECT_EQ(found, 3 * turn + k);
    }
  }
  for (const Block block : blocks) device.Free(block);
  const std::optional<HostShortage> shortage = device.host_shortage();
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->asked_bytes, Bytes{64} << 20);
  EXPECT_GT(shortage->got_bytes, Bytes{3} << 18);
  EXPECT_EQ(shortage->replans, 0);
}

TEST(HostShortageTest, SaysWhatItCosts) {
  EXPECT_EQ(Describe({.asked_bytes = Bytes{64} << 20, .got_bytes = Bytes{16} << 20}),
            "of 64.00 MiB of host memory 16.00 MiB could be had; what leaves the device goes there "
            "in smaller pieces");
  HostShortage shortage{.asked_bytes = Bytes{4} << 30,
                        .got_bytes = Bytes{3} << 30,
                        .replans = 1,
                        .lost_plan_ns = 10'000'000};
  EXPECT_EQ(Describe(shortage),
            "of 4.00 GiB of host memory 3.00 GiB could be had; planned again for that, on demand "
            "until a plan fits");
  shortage.present_plan_ns = 12'500'000;
  EXPECT_EQ(Describe(shortage),
            "of 4.00 GiB of host memory 3.00 GiB could be had; planned again for that: 12.5 ms an "
            "iteration instead of 10.0 ms");
}

INSTANTIATE_TEST_SUITE_P(Calls, ManagedDeviceFaultTest,
                         testing::Values(FaultyCall::kAllocateDevice, FaultyCall::kAllocateHost,
                                         FaultyCall::kCopyOut, FaultyCall::kCopyIn,
                                         FaultyCall::kMove, FaultyCall::kRun,
                                         FaultyCall::kLaunchGraph),
                         [](const auto& instance) {
                           std::string name(device::Name(instance.param));
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace plimsoll::exec

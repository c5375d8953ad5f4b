// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/managed_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/graph_backend_for_test.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/toy_training_for_test.h"

namespace plimsoll::exec {
namespace {

/// Trains under a limit and compares with the reference; returns what the device did.
DeviceStats TrainUnder(int percent, const ToyOptions& options, const std::vector<ToyStep>& steps,
                       const Reference& reference) {
  device::HostBackend backend({.poison_on_free = true, .jitter_ns = 30'000, .seed = options.seed});
  DeviceStats stats;
  {
    const double link = options.seed % 2 == 0 ? kSomeLink : kSlowLink;
    ManagedDevice device(&backend, At(reference.peak_bytes * percent / 100, link));
    const Numbers numbers = Train(&device, options, steps);
    EXPECT_EQ(numbers.steps, reference.numbers.steps) << percent << " %, seed " << options.seed;
    EXPECT_TRUE(numbers == reference.numbers) << percent << " %, seed " << options.seed;
    stats = device.stats();
    EXPECT_LE(stats.peak_footprint_bytes, stats.limit_bytes);
    EXPECT_EQ(stats.live_bytes, 0);
  }
  EXPECT_EQ(backend.device_bytes(), 0);
  EXPECT_EQ(backend.host_bytes(), 0);
  return stats;
}

TEST(ManagedDeviceTest, NumbersAreThoseOfTheReferenceAtEveryLimit) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const bool marks : {true, false}) {
      ToyOptions options{.seed = seed, .layers = 12, .marks = marks};
      const std::vector<ToyStep> steps(12);
      const Reference reference = TrainPlainly(options, steps);
      for (const int percent : {100, 80, 65, 50}) {
        const DeviceStats stats = TrainUnder(percent, options, steps, reference);
        EXPECT_EQ(stats.drifts, 1) << "when the program ends";
        EXPECT_GT(stats.planned_iterations, 5) << percent << " %, marks " << marks;
      }
    }
  }
}

TEST(ManagedDeviceTest, DriftChangesNoNumber) {
  std::int64_t drifts = 0;
  std::int64_t replays = 0;
  const auto cases = static_cast<std::uint64_t>(CaseCount(6));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const ToyOptions options{.seed = seed,
                             .layers = 14,
                             .marks = seed % 3 != 0,
                             .names = seed % 2 == 0,
                             .carries = seed % 4 == 3};
    const std::vector<ToyStep> steps = EventfulSteps(seed, 30, options.layers);
    const Reference reference = TrainPlainly(options, steps);
    for (const int percent : {70, 45}) {
      const DeviceStats stats = TrainUnder(percent, options, steps, reference);
      drifts += stats.drifts;
      replays += stats.replays;
    }
  }
  EXPECT_GT(drifts, 50);
  // How many depends on how long ops take.
  EXPECT_GT(replays, 5);
}

/// Looks at where a block was once it is freed, in both services.
void ExpectPoisonOnceFreed(device::Backend* backend, bool steady) {
  ManagedDevice device(backend, At(Bytes{1} << 16));
  std::set<Service> services;
  constexpr Bytes kSize = 1000;
  const auto address = std::make_shared<std::byte*>();
  const auto found = std::make_shared<std::vector<std::byte>>();
  device.EndIteration("train");
  for (int k = 0; k < 20; ++k) {
    found->clear();
    const Block a = device.Malloc(kSize);
    const Block b = device.Malloc(kSize);
    const auto exec = [&](const char* name, std::vector<Block> reads, std::vector<Block> writes,
                          Function function) {
      device.Exec({.name = name, .steady = steady}, reads, writes, std::move(function));
    };
    exec("make", {}, {a}, [address](const Launch& launch) {
      *address = launch.writes[0];
      std::memset(launch.writes[0], 7, kSize);
    });
    exec("use", {a}, {b},
         [](const Launch& launch) { std::memcpy(launch.writes[0], launch.reads[0], kSize); });
    device.Free(a);
    exec("look", {b}, {}, [address, found](const Launch& launch) {
      EXPECT_EQ(*launch.reads[0], std::byte{7});
      found->assign(*address, *address + kSize);
    });
    exec("last", {b}, {}, [](const Launch&) {});
    device.Free(b);
    device.EndIteration("train");
    services.insert(device.stats().service);
    EXPECT_EQ(*found, std::vector<std::byte>(kSize, device::kPoison));
  }
  EXPECT_EQ(services, (std::set<Service>{Service::kRecording, Service::kPlanned}));
  EXPECT_EQ(device.stats().graph_launches > 0, steady && backend->capabilities().graphs);
}

TEST(ManagedDeviceTest, WhatIsFreedIsPoisonedInTheArena) {
  device::HostBackend host({.poison_on_free = true});
  ExpectPoisonOnceFreed(&host, /*steady=*/false);
  device::GraphBackend graphs(&host);
  ExpectPoisonOnceFreed(&graphs, /*steady=*/true);
}

TEST(ManagedDeviceTest, BothServicesTogetherHoldTheLimitOfTheHost) {
  std::int64_t drifts = 0;
  std::int64_t planned = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const ToyOptions toy{.seed = seed, .layers = 14, .marks = seed % 3 != 0};
    const std::vector<ToyStep> steps = EventfulSteps(seed, 24, toy.layers);
    const Reference reference = TrainPlainly(toy, steps);
    ManagedOptions options = At(reference.peak_bytes / 2);
    options.watch.planning.host_limit_bytes = reference.peak_bytes * 3 / 4;
    device::HostBackend backend({.poison_on_free = true});
    ManagedDevice device(&backend, options);
    ToyNetwork network(&device, toy);
    if (toy.marks) device.EndIteration("train");
    for (std::size_t k = 0; k < steps.size(); ++k) {
      ASSERT_EQ(network.Step(steps[k]), reference.numbers.steps[k]) << "seed " << seed;
      EXPECT_LE(backend.host_bytes(), options.watch.planning.host_limit_bytes);
    }
    network.Finish();
    drifts += device.stats().drifts;
    planned += device.stats().planned_iterations;
  }
  EXPECT_GT(drifts, 6);
  EXPECT_GT(planned, 12);
}

TEST(ManagedDeviceTest, WhatRecordingHadOnTheHostIsGivenBack) {
  constexpr Bytes kSize = Bytes{24} << 20;
  device::HostBackend backend;
  ManagedDevice device(&backend, At(2 * kSize, 1e12));
  device.EndIteration("train");
  const auto touch = [&](Block block) {
    device.Exec({.name = "touch"}, {}, std::vector{block}, [](const Launch&) {});
  };
  Bytes recording_bytes = 0;
  for (int k = 0; k < 5; ++k) {
    std::vector<Block> blocks;
    for (int b = 0; b < 6; ++b) touch(blocks.emplace_back(device.Malloc(kSize)));
    if (k == 0) recording_bytes = backend.host_bytes();
    for (const Block block : blocks) {
      device.Exec({.name = "read"}, std::vector{block}, {}, [](const Launch&) {});
      device.Free(block);
    }
    device.EndIteration("train");
  }
  ASSERT_EQ(device.stats().service, Service::kPlanned);
  EXPECT_GE(recording_bytes, 4 * kSize);
  EXPECT_EQ(backend.host_bytes(), device.served()->plan().host_bytes);
}

TEST(ManagedDeviceTest, WhatOutlivesAnIterationIsPlannedWithoutMarks) {
  const ToyOptions options{.seed = 5, .layers = 10, .marks = false, .carries = true};
  const std::vector<ToyStep> steps(14);
  const Reference reference = TrainPlainly(options, steps);
  const DeviceStats stats = TrainUnder(60, options, steps, reference);
  EXPECT_GT(stats.planned_iterations, 5);
}

TEST(ManagedDeviceTest, APatternSeenBeforeIsNotPlannedAgain) {
  const ToyOptions options{.seed = 2, .layers = 10};
  std::vector<ToyStep> steps(40);
  for (std::size_t k = 0; k < steps.size(); ++k) {
    steps[k].evaluates = k % 4 == 3;
    steps[k].next = k % 4 == 2 ? "evaluate" : "train";
  }
  const Reference reference = TrainPlainly(options, steps);
  const DeviceStats stats = TrainUnder(85, options, steps, reference);
  EXPECT_EQ(stats.plans_made, 2);
  EXPECT_EQ(stats.drifts, 1);
  EXPECT_GT(stats.planned_iterations, 28);
}

TEST(ManagedDeviceTest, AlternatingIterationsWithoutNamesAreForeseen) {
  const ToyOptions options{.seed = 2, .layers = 10, .names = false};
  std::vector<ToyStep> steps(40);
  for (std::size_t k = 0; k < steps.size(); ++k) steps[k].scale = 1 + k % 2;
  const Reference reference = TrainPlainly(options, steps);
  const DeviceStats stats = TrainUnder(60, options, steps, reference);
  EXPECT_EQ(stats.plans_made, 2);
  EXPECT_LE(stats.drifts, 3);
  EXPECT_GT(stats.planned_iterations, 28);
}

TEST(ManagedDeviceTest, PlansAreMadeWhileTheProgramGoesOn) {
  const ToyOptions options{.seed = 4, .layers = 10};
  const std::vector<ToyStep> steps(20);
  const Reference reference = TrainPlainly(options, steps);
  device::HostBackend backend;
  ManagedOptions managed = At(reference.peak_bytes * 3 / 4);
  managed.watch.plan_at_once = false;
  ManagedDevice device(&backend, managed);
  ToyNetwork network(&device, options);
  device.EndIteration("train");
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (k == 10) device.AwaitPlans();
    EXPECT_EQ(network.Step(steps[k]), reference.numbers.steps[k]);
  }
  EXPECT_GE(device.stats().planned_iterations, 8);
  EXPECT_EQ(device.served()->plan().planner, "joint");
}

TEST(ManagedDeviceTest, WhatHasBeenMeasuredIsNotMeasuredAgain) {
  device::HostBackend backend;
  ManagedDevice device(&backend, At(1 << 20));
  const Block block = device.Malloc(4096);
  constexpr Nanoseconds kKnown = 123'456'789'000;  // No op here takes two minutes.
  const std::vector<Block> written = {block};
  for (int k = 0; k < 6; ++k) {
    const auto touch = [](const Launch& launch) { *launch.writes[0] = std::byte{1}; };
    device.Exec({.name = "known", .expected_ns = kKnown, .is_measured = true}, {}, written, touch);
    device.Exec({.name = "expected", .expected_ns = kKnown}, {}, written, touch);
    device.EndIteration();
  }
  ASSERT_NE(device.served(), nullptr);
  const std::vector<plan::Op>& ops = device.served()->plan().problem.ops;
  ASSERT_EQ(ops.size(), 2U);
  EXPECT_EQ(ops[0].duration_ns, kKnown);
  EXPECT_LT(ops[1].duration_ns, kKnown / 2);
  device.Free(block);
}

TEST(ManagedDeviceTest, RefusesWhatCanNeverBe) {
  device::HostBackend backend;
  EXPECT_THROW(ManagedDevice(&backend, At(0)), Error);
  ManagedOptions unknown = At(1 << 20);
  unknown.watch.planning.planner = "nobody";
  EXPECT_THROW(ManagedDevice(&backend, unknown), Error);

  ManagedDevice device(&backend, At(1 << 20));
  EXPECT_THROW((void)device.Malloc(-1), Error);
  EXPECT_THROW((void)device.Malloc((1 << 20) + 1), OutOfMemory);
  EXPECT_THROW(device.Free(Block{7}), Error);
  const Block a = device.Malloc(700'000);
  const Block b = device.Malloc(700'000);
  const std::vector<Block> both = {a, b};
  try {
    device.Exec({.name = "large_op"}, both, {}, [](const Launch&) {});
    FAIL() << "both cannot be there at a time";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("large_op"), std::string::npos) << error.what();
  }
  device.Free(a);
  EXPECT_THROW(device.Free(a), Error);
  EXPECT_THROW(device.Exec({.name = "late"}, both, {}, nullptr), Error);
  device.Free(b);
  EXPECT_EQ(device.stats().live_bytes, 0);
}

TEST(ManagedDeviceTest, AFunctionThatThrowsMayBeRunAgain) {
  device::HostBackend backend;
  ManagedDevice device(&backend, At(1 << 20));
  const Block block = device.Malloc(4096);
  const std::vector<Block> blocks = {block};
  for (int k = 0; k < 8; ++k) {
    device.EndIteration();
    int runs = 0;
    const auto run = [&] {
      device.Exec({.name = "shaky"}, blocks, blocks, [&, first = runs == 0](const Launch&) {
        ++runs;
        if (first) throw Error("not this time");
      });
    };
    EXPECT_THROW(run(), Error);
    run();
    EXPECT_EQ(runs, 2);
  }
  device.Free(block);
}

}  // namespace
}  // namespace plimsoll::exec

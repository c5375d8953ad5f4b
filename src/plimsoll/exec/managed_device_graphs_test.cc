// SPDX-License-Identifier: Apache-2.0
//
// A managed device whose backend keeps graphs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/graph_backend_for_test.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/toy_training_for_test.h"

namespace plimsoll::exec {
namespace {

/// Like TrainUnder(), on a device that keeps graphs.
DeviceStats TrainInGraphs(int percent, const ToyOptions& options, const std::vector<ToyStep>& steps,
                          const Reference& reference, bool refuses = false) {
  device::HostBackend host({.poison_on_free = true, .jitter_ns = 30'000, .seed = options.seed});
  device::GraphBackend backend(&host);
  if (refuses) backend.RefuseGraphs();
  DeviceStats stats;
  {
    ManagedDevice device(&backend, At(reference.peak_bytes * percent / 100));
    const Numbers numbers = Train(&device, options, steps);
    EXPECT_EQ(numbers.steps, reference.numbers.steps) << percent << " %, seed " << options.seed;
    EXPECT_TRUE(numbers == reference.numbers) << percent << " %, seed " << options.seed;
    stats = device.stats();
  }
  EXPECT_EQ(backend.graphs_made(), backend.graphs_destroyed());
  EXPECT_EQ(host.device_bytes(), 0);
  return stats;
}

TEST(ManagedDeviceGraphsTest, GraphsGiveTheSameNumbers) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const ToyOptions options{.seed = seed, .layers = 16, .marks = seed % 3 != 0};
    const std::vector<ToyStep> steps(14);
    const Reference reference = TrainPlainly(options, steps);
    for (const int percent : {100, 80, 65, 50}) {
      const DeviceStats stats = TrainInGraphs(percent, options, steps, reference);
      EXPECT_GT(stats.planned_iterations, 5);
      EXPECT_GE(stats.graph_launches, 5) << percent << " %, seed " << seed;
    }
  }
}

TEST(ManagedDeviceGraphsTest, AProgramDriftsOutOfAGraph) {
  std::int64_t drifts = 0;
  std::int64_t launches = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const ToyOptions options{.seed = seed, .layers = 16};
    const std::vector<ToyStep> steps = EventfulSteps(seed, 40, options.layers);
    const Reference reference = TrainPlainly(options, steps);
    for (const int percent : {80, 50}) {
      const DeviceStats stats = TrainInGraphs(percent, options, steps, reference);
      drifts += stats.drifts;
      launches += stats.graph_launches;
    }
  }
  EXPECT_GT(drifts, 25);
  EXPECT_GT(launches, 25);
}

TEST(ManagedDeviceGraphsTest, WhatCannotBeAGraphRunsOneByOne) {
  const ToyOptions options{.seed = 2, .layers = 16};
  const std::vector<ToyStep> steps(14);
  const Reference reference = TrainPlainly(options, steps);
  const DeviceStats stats = TrainInGraphs(65, options, steps, reference, /*refuses=*/true);
  EXPECT_GT(stats.planned_iterations, 5);
  EXPECT_EQ(stats.graph_launches, 0);
}

TEST(ManagedDeviceGraphsTest, WhatCannotBeAGraphKeepsItsOrder) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const ToyOptions options{.seed = seed, .layers = 20};
    const std::vector<ToyStep> steps(12);
    const Reference reference = TrainPlainly(options, steps);
    TrainInGraphs(50, options, steps, reference, /*refuses=*/true);
  }
}

/// Of the steps that a plan served from their beginning: whether the device was settled. Every so
/// many, there is an op that was never there before.
std::vector<bool> SettledIn(int steps, int drift_every, std::uint64_t seed, bool* copies) {
  const ToyOptions options{.seed = seed, .layers = 16};
  const Bytes peak_bytes = TrainPlainly(options, {ToyStep{}}).peak_bytes;
  device::HostBackend host;
  device::GraphBackend backend(&host);
  ManagedDevice device(&backend, At(peak_bytes / 2));
  ToyNetwork network(&device, options);
  device.EndIteration("train");
  std::vector<bool> settled;
  bool was_planned = false;
  for (int k = 0; k < steps; ++k) {
    if (k % drift_every == drift_every - 1) {
      device.Exec({.name = "look at step " + std::to_string(k)}, {}, {}, [](const Launch&) {});
    }
    network.Step({});
    const DeviceStats stats = device.stats();
    const bool is_planned = stats.service == Service::kPlanned;
    if (is_planned && was_planned) settled.push_back(stats.settled);
    was_planned = is_planned;
  }
  *copies = !device.served()->plan().queues[1].empty();
  network.Finish();
  return settled;
}

TEST(ManagedDeviceGraphsTest, PlansWithCopiesAreSettledOnceGraphsWereTried) {
  int with_copies = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    bool copies = false;
    const std::vector<bool> settled = SettledIn(30, 1000, seed, &copies);
    with_copies += copies ? 1 : 0;
    ASSERT_GT(settled.size(), 20U);
    for (std::size_t k = 0; k < settled.size(); ++k) {
      EXPECT_EQ(settled[k], !copies || k >= 14) << "planned step " << k << ", seed " << seed;
    }
  }
  EXPECT_GE(with_copies, 2);
}

TEST(ManagedDeviceGraphsTest, DriftDoesNotKeepGraphsOnTrial) {
  // Contents and the slab change places again and again.
  int with_copies = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    bool copies = false;
    const std::vector<bool> settled = SettledIn(200, 8, seed, &copies);
    with_copies += copies ? 1 : 0;
    ASSERT_GT(settled.size(), 60U);
    for (std::size_t k = 45; k < settled.size(); ++k) EXPECT_TRUE(settled[k]) << k << ", " << seed;
  }
  EXPECT_GE(with_copies, 2);
}

TEST(ManagedDeviceGraphsTest, AHeldFunctionThatThrowsBreaksTheDevice) {
  // When the ops are issued one by one, when the graph is made, or when it is launched.
  for (const int good : {4, 5, 6}) {
    device::HostBackend host;
    device::GraphBackend backend(&host);
    ManagedDevice device(&backend, At(Bytes{1} << 20));
    device.EndIteration("train");
    bool throws = false;
    const auto op = [&](int k, std::vector<Block> writes) {
      device.Exec({.name = "op", .steady = true}, {}, writes, [&throws, k](const Launch&) {
        if (throws && k == 4) throw Error("a kernel that cannot be launched");
      });
    };
    const auto iterate = [&] {
      const Block block = device.Malloc(4096);
      for (int k = 0; k < 8; ++k) op(k, {block});
      device.Free(block);
      device.EndIteration("train");
    };
    for (int k = 0; k < good; ++k) iterate();
    ASSERT_EQ(device.stats().service, Service::kPlanned);
    throws = true;
    EXPECT_THROW(for (int k = 0; k < 3; ++k) iterate(), Error) << good;
    throws = false;
    EXPECT_THROW(op(7, {}), DeviceError) << good;
    EXPECT_THROW(device.Synchronize(), DeviceError) << good;
  }
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/measure_link.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/device/host_backend.h"

namespace plimsoll::exec {
namespace {

std::function<void(void*)> FillMemory(std::byte* memory, Bytes size_bytes) {
  return [=](void*) { std::memset(memory, 1, static_cast<std::size_t>(size_bytes)); };
}

TEST(MeasureLinkTest, FindsTheSpeedOfAThrottledLink) {
  device::HostBackend backend({.out_bytes_per_s = 1e9, .in_bytes_per_s = 5e8});
  const plan::Machine machine = MeasureLink(&backend);
  // A copy may be held up, but never goes faster.
  EXPECT_LT(machine.out_bytes_per_s, 1.1e9);
  EXPECT_LT(machine.in_bytes_per_s, 5.5e8);
  EXPECT_GT(machine.in_bytes_per_s, 1e7);
  EXPECT_LE(machine.both_out_bytes_per_s, machine.out_bytes_per_s);
  EXPECT_NO_THROW(plan::CheckMachine(machine, "what was measured"));
  EXPECT_EQ(backend.device_bytes(), 0);
  EXPECT_EQ(backend.host_bytes(), 0);
}

TEST(MeasureLinkTest, SaysWhatCopiesCostOps) {
  device::HostBackend backend;
  plan::Machine machine = MeasureLink(&backend);
  const Costs costs = MeasureCosts(&backend, FillMemory, machine);
  CountCosts(costs, &machine);
  SlowCopies(costs, &machine);
  // How much depends on the processor; it is a machine that planners take.
  EXPECT_NO_THROW(plan::CheckMachine(machine, "what was measured"));
  EXPECT_EQ(backend.device_bytes(), 0);
  EXPECT_EQ(backend.host_bytes(), 0);
}

TEST(MeasureLinkTest, CopiesOverASlowLinkCostNothing) {
  // A kilobyte a second, and a second before each copy: to measure with copies would take for ever.
  plan::Machine machine = {.out_latency_ns = 1'000'000'000,
                           .in_latency_ns = 1'000'000'000,
                           .out_bytes_per_s = 1e3,
                           .in_bytes_per_s = 1e3,
                           .both_out_bytes_per_s = 1e3,
                           .both_in_bytes_per_s = 1e3};
  device::HostBackend backend(
      {.out_bytes_per_s = 1e3, .in_bytes_per_s = 1e3, .latency_ns = 1'000'000'000});
  const plan::Machine before = machine;
  const Costs costs = MeasureCosts(&backend, FillMemory, machine);
  CountCosts(costs, &machine);
  SlowCopies(costs, &machine);
  EXPECT_EQ(machine, before);
}

TEST(MeasureLinkTest, CopiesAreAsSlowAsBesideOps) {
  plan::Machine machine = {.out_bytes_per_s = 6e9,
                           .in_bytes_per_s = 4e9,
                           .both_out_bytes_per_s = 5e9,
                           .both_in_bytes_per_s = 3e9};
  const Costs costs = {
      .op_by_out = 1.5, .op_by_in = 1.25, .out_by_ops = 2, .in_by_ops = 4, .handover_ns = 7};
  CountCosts(costs, &machine);
  SlowCopies(costs, &machine);
  EXPECT_EQ(machine.slowdown_by_out, 1.5);
  EXPECT_EQ(machine.slowdown_by_in, 1.25);
  EXPECT_EQ(machine.handover_ns, 7);
  EXPECT_EQ(machine.out_bytes_per_s, 3e9);
  EXPECT_EQ(machine.both_out_bytes_per_s, 2.5e9);
  EXPECT_EQ(machine.in_bytes_per_s, 1e9);
  EXPECT_EQ(machine.both_in_bytes_per_s, 0.75e9);
}

}  // namespace
}  // namespace plimsoll::exec

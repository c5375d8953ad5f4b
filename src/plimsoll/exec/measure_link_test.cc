// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/measure_link.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/device/host_backend.h"

namespace plimsoll::exec {
namespace {

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
  MeasureCosts(
      &backend,
      [](std::byte* memory, Bytes size_bytes) {
        return [=](void*) { std::memset(memory, 1, static_cast<std::size_t>(size_bytes)); };
      },
      &machine);
  // How much depends on the processor; it is a machine that planners take.
  EXPECT_NO_THROW(plan::CheckMachine(machine, "what was measured"));
  EXPECT_EQ(backend.device_bytes(), 0);
  EXPECT_EQ(backend.host_bytes(), 0);
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/plain_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"

namespace plimsoll::exec {
namespace {

TEST(PlainDeviceTest, RunsFunctionsOnWhatBlocksHold) {
  device::HostBackend backend;
  PlainDevice device(&backend);
  const std::vector<Block> x = {device.Malloc(4)};
  const std::vector<Block> y = {device.Malloc(4)};
  const std::int32_t seven = 7;
  device.Write(x[0], &seven, sizeof seven);
  device.Exec({.name = "double"}, x, y, [](const Launch& launch) {
    std::int32_t value = 0;
    std::memcpy(&value, launch.reads[0], sizeof value);
    value *= 2;
    std::memcpy(launch.writes[0], &value, sizeof value);
  });
  std::int32_t result = 0;
  device.Read(y[0], &result, sizeof result);
  EXPECT_EQ(result, 14);
  EXPECT_EQ(device.stats().execs, 3);
  device.Free(x[0]);
  device.Free(y[0]);
  EXPECT_THROW(device.Free(x[0]), Error);
  EXPECT_EQ(backend.device_bytes(), 0);
}

TEST(PlainDeviceTest, FailsWhereTheLimitIsExceeded) {
  device::HostBackend backend;
  PlainDevice device(&backend, 1000);
  const Block block = device.Malloc(600);
  EXPECT_THROW((void)device.Malloc(401), OutOfMemory);
  EXPECT_THROW((void)device.Malloc(-1), Error);
  device.Free(device.Malloc(400));
  device.Free(block);
  EXPECT_EQ(device.stats().peak_live_bytes, 1000);
}

}  // namespace
}  // namespace plimsoll::exec

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_share.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"

namespace plimsoll::device {
namespace {

TEST(HostShareTest, TheReserveStaysAsMemoryIsTaken) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / "host_share_reserve";
  std::filesystem::create_directories(root / "proc");
  const auto say = [&](int kibibytes) {
    std::ofstream(root / "proc/meminfo") << "MemAvailable: " << kibibytes << " kB\n";
  };
  say(1600);
  const HostShare share(root.string());
  EXPECT_EQ(share.left_bytes(), 1500 * 1024);
  say(400);
  EXPECT_EQ(share.left_bytes(), 300 * 1024);
  say(50);
  EXPECT_EQ(share.left_bytes(), 0);
  std::filesystem::remove_all(root);
}

TEST(HostShareTest, SaysWhatWasAskedAndWhatIsLeft) {
  CheckHostShare(100, 100);
  try {
    CheckHostShare(101, 100);
    FAIL() << "it is more than there is";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked(), 101);
    EXPECT_EQ(error.free(), 100);
  }
}

}  // namespace
}  // namespace plimsoll::device

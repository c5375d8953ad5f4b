// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace plimsoll {
namespace {

/// A folder that looks like the root of a system.
class System {
 public:
  explicit System(const std::string& name)
      : root_(std::filesystem::path(testing::TempDir()) / ("host_memory_" + name)) {
    std::filesystem::remove_all(root_);
  }
  ~System() { std::filesystem::remove_all(root_); }

  System& Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
    return *this;
  }
  Bytes Available() const { return AvailableHostMemory(root_.string()); }

 private:
  std::filesystem::path root_;
};

constexpr const char* kMeminfo =
    "MemTotal:       24684084 kB\nMemFree:        1000 kB\nMemAvailable:   2000 kB\n";

TEST(HostMemoryTest, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(System("kernel").Write("proc/meminfo", kMeminfo).Available(), 2000 * 1024);
}

TEST(HostMemoryTest, AGroupMayHaveLess) {
  System system("group");
  system.Write("proc/meminfo", kMeminfo)
      .Write("sys/fs/cgroup/memory.max", "1000000\n")
      .Write("sys/fs/cgroup/memory.current", "900000\n");
  EXPECT_EQ(system.Available(), 100'000);
  // Files that are kept in memory give way.
  system.Write("sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 300000\nactive_file 7\n");
  EXPECT_EQ(system.Available(), 400'000);
  system.Write("sys/fs/cgroup/memory.current", "2000000\n");
  EXPECT_EQ(system.Available(), 0);
}

TEST(HostMemoryTest, AGroupWithoutALimitIsNone) {
  System system("endless");
  system.Write("proc/meminfo", kMeminfo)
      .Write("sys/fs/cgroup/memory.max", "max\n")
      .Write("sys/fs/cgroup/memory.current", "900000\n");
  EXPECT_EQ(system.Available(), 2000 * 1024);
}

TEST(HostMemoryTest, OlderGroupsCountToo) {
  System system("older");
  system.Write("proc/meminfo", kMeminfo)
      .Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n")
      .Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "400000\n")
      .Write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 1000\n");
  EXPECT_EQ(system.Available(), 101'000);
}

TEST(HostMemoryTest, GroupsAroundTheProcessCount) {
  System system("nested");
  system.Write("proc/meminfo", kMeminfo)
      .Write("proc/self/cgroup", "9:memory:/jobs/old\n0::/jobs/one/step\n")
      .Write("sys/fs/cgroup/jobs/memory.max", "700000\n")
      .Write("sys/fs/cgroup/jobs/memory.current", "100000\n")
      .Write("sys/fs/cgroup/jobs/one/step/memory.max", "max\n")
      .Write("sys/fs/cgroup/jobs/one/step/memory.current", "1000\n");
  EXPECT_EQ(system.Available(), 600'000);
  system.Write("sys/fs/cgroup/jobs/one/memory.max", "50000\n")
      .Write("sys/fs/cgroup/jobs/one/memory.current", "1000\n");
  EXPECT_EQ(system.Available(), 49'000);
  system.Write("sys/fs/cgroup/memory/jobs/old/memory.limit_in_bytes", "40000\n")
      .Write("sys/fs/cgroup/memory/jobs/old/memory.usage_in_bytes", "30000\n");
  EXPECT_EQ(system.Available(), 10'000);
}

TEST(HostMemoryTest, WithoutAWordThereIsNoBound) {
  EXPECT_EQ(System("silent").Available(), kMaxBytes);
  EXPECT_EQ(System("broken").Write("proc/meminfo", "MemAvailable: much\n").Available(), kMaxBytes);
}

TEST(HostMemoryTest, ThisSystemSaysSomething) { EXPECT_GT(AvailableHostMemory(), 0); }

}  // namespace
}  // namespace plimsoll

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/host_memory.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <optional>

namespace plimsoll {
namespace {

constexpr Bytes kKibibyte = 1024;

/// The first number in a file.
std::optional<Bytes> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  Bytes number = 0;
  if (!(file >> number) || number < 0) return std::nullopt;
  return number;
}

/// The number behind a name, in a file with a name and a number a line.
std::optional<Bytes> ReadField(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    Bytes number = 0;
    if (word == name && file >> number && number >= 0) return number;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

/// Where control groups of one version say what they may take, have taken, and would give up.
struct GroupFiles {
  const char* limit;
  const char* taken;
  const char* statistics;
  const char* cache;  ///< In the statistics.
};
constexpr std::array<GroupFiles, 2> kGroups = {{
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
     "inactive_file"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"},
}};

}  // namespace

Bytes AvailableHostMemory(const std::string& root) {
  Bytes available = kMaxBytes;
  if (const auto kibibytes = ReadField(root + "/proc/meminfo", "MemAvailable:")) {
    available = *kibibytes * kKibibyte;
  }
  for (const GroupFiles& files : kGroups) {
    const std::optional<Bytes> limit = ReadNumber(root + files.limit);
    const std::optional<Bytes> taken = ReadNumber(root + files.taken);
    if (!limit || !taken) continue;
    const Bytes cache = ReadField(root + files.statistics, files.cache).value_or(0);
    const Bytes held = std::max<Bytes>(*taken - cache, 0);
    available = std::min(available, std::max<Bytes>(*limit - held, 0));
  }
  return available;
}

}  // namespace plimsoll

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

/// How control groups of one version say what they may take, have taken, and would give up.
struct GroupVersion {
  const char* mount;
  const char* controller;  ///< In lines of /proc/self/cgroup.
  const char* limit;
  const char* taken;
  const char* cache;  ///< In memory.stat.
};
constexpr std::array<GroupVersion, 2> kVersions = {{
    {"/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"},
    {"/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"},
}};

/// The group of this process, as a path below the mount; empty if that is not known. Lines are
/// NUMBER:CONTROLLERS:PATH.
std::string ReadGroup(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (line.compare(first + 1, second - first - 1, controller) == 0)
      return line.substr(second + 1);
  }
  return {};
}

/// What a group may still take; kMaxBytes if it has no limit.
Bytes LeftOfGroup(const std::string& folder, const GroupVersion& version) {
  const std::optional<Bytes> limit = ReadNumber(folder + "/" + version.limit);
  const std::optional<Bytes> taken = ReadNumber(folder + "/" + version.taken);
  if (!limit || !taken) return kMaxBytes;
  const Bytes cache = ReadField(folder + "/memory.stat", version.cache).value_or(0);
  const Bytes held = std::max<Bytes>(*taken - cache, 0);
  return std::max<Bytes>(*limit - held, 0);
}

}  // namespace

Bytes AvailableHostMemory(const std::string& root) {
  Bytes available = kMaxBytes;
  if (const auto kibibytes = ReadField(root + "/proc/meminfo", "MemAvailable:")) {
    available = *kibibytes * kKibibyte;
  }
  for (const GroupVersion& version : kVersions) {
    // Limits of all groups around it hold. In a container, the mount itself is the group's.
    std::string group = ReadGroup(root, version.controller);
    while (true) {
      while (group.ends_with('/')) group.pop_back();
      available = std::min(available, LeftOfGroup(root + version.mount + group, version));
      if (group.empty()) break;
      group.resize(group.find_last_of('/') == std::string::npos ? 0 : group.find_last_of('/'));
    }
  }
  return available;
}

}  // namespace plimsoll

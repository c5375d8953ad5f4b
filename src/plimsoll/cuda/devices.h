// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/bytes.h"

/// What there is of GPUs, and what a process takes of them.
namespace plimsoll::cuda {

struct DeviceInfo {
  int number = 0;
  std::string name;
  Bytes total_bytes = 0;
  Bytes free_bytes = 0;
  int major = 0;  ///< Its compute capability.
  int minor = 0;
  int multiprocessors = 0;
};

/// The GPUs of this machine, without opening them for long; none if there are none. Throws
/// DeviceError if there is a driver that does not work.
std::vector<DeviceInfo> ListDevices();

/// Of what this program was built with and runs on, as "13.0".
struct Versions {
  std::string driver;  ///< "none" if there is none.
  std::string runtime;
  std::string cudnn;
};
Versions ReadVersions();

/// Watches how much of a card's memory this process takes, as its driver sees it: the context,
/// libraries and all, which no allocator knows of.
class CardMemory {
 public:
  /// To be made before the process has opened the card. What others take is not counted, as long as
  /// it does not change.
  explicit CardMemory(int device);

  /// REQUIRES: the card has been opened.
  Bytes taken_bytes() const;

 private:
  const int device_;
  const Bytes before_;  // Taken by others; -1 if the driver does not say.
};

/// A function for Backend::Run() that reads and writes device memory so many times over, as kernels
/// do that are bound by memory.
std::function<void(void* native_stream)> MemoryTraffic(std::byte* memory, Bytes size_bytes,
                                                       int rounds);

}  // namespace plimsoll::cuda

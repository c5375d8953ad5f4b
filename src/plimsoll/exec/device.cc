// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/device.h"

#include <array>
#include <memory>
#include <vector>

namespace plimsoll::exec {

std::string_view Name(Service service) {
  switch (service) {
    case Service::kUnlimited:
      return "unlimited";
    case Service::kRecording:
      return "recording";
    case Service::kPlanned:
      return "planned";
    case Service::kDrifted:
      return "drifted";
  }
  return "unknown";
}

void Device::Write(Block block, const void* data, Bytes size_bytes) {
  const auto* bytes = static_cast<const std::byte*>(data);
  // The function may run after this call, when the program's memory is no longer as it is now.
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes, bytes + size_bytes);
  const std::array<Block, 1> writes = {block};
  Exec({.name = "upload"}, {}, writes, [this, copy](const Launch& launch) {
    CopyToDevice(launch.writes[0], copy->data(), static_cast<Bytes>(copy->size()));
  });
}

void Device::Read(Block block, void* data, Bytes size_bytes) {
  const std::array<Block, 1> reads = {block};
  Exec({.name = "download"}, reads, {}, [this, data, size_bytes](const Launch& launch) {
    CopyToProgram(data, launch.reads[0], size_bytes);
  });
}

}  // namespace plimsoll::exec

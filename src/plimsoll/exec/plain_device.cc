// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/plain_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::exec {

PlainDevice::PlainDevice(device::Backend* backend, Bytes limit_bytes) : backend_(*backend) {
  stats_.limit_bytes = limit_bytes;
}

PlainDevice::~PlainDevice() {
  for (const auto& [block, memory] : blocks_) backend_.FreeDevice(memory.address);
}

Block PlainDevice::Malloc(Bytes size_bytes) {
  if (size_bytes < 0) throw Error(fmt::format("cannot allocate {} bytes", size_bytes));
  const Bytes free_bytes = stats_.limit_bytes - stats_.live_bytes;
  if (stats_.limit_bytes > 0 && size_bytes > free_bytes) {
    throw OutOfMemory(size_bytes, free_bytes,
                      "raise the limit, take a smaller batch, or let Plimsoll manage the device");
  }
  const Memory memory{backend_.AllocateDevice(size_bytes), size_bytes};
  const Block block{next_++};
  blocks_.emplace(block, memory);
  stats_.live_bytes += size_bytes;
  stats_.peak_live_bytes = std::max(stats_.peak_live_bytes, stats_.live_bytes);
  stats_.footprint_bytes = stats_.live_bytes;
  stats_.peak_footprint_bytes = stats_.peak_live_bytes;
  return block;
}

void PlainDevice::Free(Block block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    throw Error(
        fmt::format("block {} is not live: freed twice?", static_cast<std::int64_t>(block)));
  }
  // Functions may still run on it.
  backend_.Synchronize();
  backend_.FreeDevice(found->second.address);
  stats_.live_bytes -= found->second.size_bytes;
  stats_.footprint_bytes = stats_.live_bytes;
  blocks_.erase(found);
}

void PlainDevice::Exec(const OpInfo& /*info*/, std::span<const Block> reads,
                       std::span<const Block> writes, Function function) {
  std::vector<std::byte*> read_addresses;
  std::vector<std::byte*> write_addresses;
  for (const Block block : reads) read_addresses.push_back(AddressOf(block));
  for (const Block block : writes) write_addresses.push_back(AddressOf(block));
  ++stats_.execs;
  if (!function) return;
  backend_.Run([&](void* native_stream) {
    function({read_addresses, write_addresses, native_stream});
  });
}

void PlainDevice::EndIteration(std::string_view /*next*/) { ++stats_.iterations; }

void PlainDevice::Synchronize() { backend_.Synchronize(); }

void PlainDevice::CopyToDevice(std::byte* device, const void* data, Bytes size_bytes) {
  backend_.Upload(device, data, size_bytes);
}

void PlainDevice::CopyToProgram(void* data, const std::byte* device, Bytes size_bytes) {
  backend_.Download(data, device, size_bytes);
}

std::byte* PlainDevice::AddressOf(Block block) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) {
    throw Error(fmt::format("block {} is not live", static_cast<std::int64_t>(block)));
  }
  return found->second.address;
}

}  // namespace plimsoll::exec

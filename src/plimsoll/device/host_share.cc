// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_share.h"

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/host_memory.h"

namespace plimsoll::device {

HostShare::HostShare(std::string root)
    : root_(std::move(root)), reserve_bytes_(AvailableHostMemory(root_) / 16) {}

Bytes HostShare::left_bytes() const {
  return std::max<Bytes>(AvailableHostMemory(root_) - reserve_bytes_, 0);
}

void CheckHostShare(Bytes asked_bytes, Bytes left_bytes) {
  if (asked_bytes <= left_bytes) return;
  throw OutOfMemory(asked_bytes, std::max<Bytes>(left_bytes, 0),
                    "the host has no more memory for what has left the device; end what else runs "
                    "there, raise the device's limit, or use a smaller batch");
}

}  // namespace plimsoll::device

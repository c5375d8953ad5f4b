// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/device/host_share.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/host_memory.h"

namespace plimsoll::device {

Bytes HostShare() {
  const Bytes available = AvailableHostMemory();
  return available - available / 16;
}

void CheckHostShare(Bytes asked_bytes, Bytes left_bytes) {
  if (asked_bytes <= left_bytes) return;
  throw OutOfMemory(asked_bytes, std::max<Bytes>(left_bytes, 0),
                    "the host has no more memory for what has left the device; end what else runs "
                    "there, raise the device's limit, or use a smaller batch");
}

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/base/bytes.h"

namespace plimsoll::device {

/// Returns how much of the host's memory may be taken now for what has left the device: what is
/// available but for a sixteenth, so that the system does not run out of it and end the process.
Bytes HostShare();

/// Throws OutOfMemory if `asked_bytes` is more than `left_bytes` of that share.
void CheckHostShare(Bytes asked_bytes, Bytes left_bytes);

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/base/bytes.h"

namespace plimsoll::device {

/// How much of the host's memory may be taken for what has left the device: what is available but
/// for a reserve, so that the system does not run out of it and end the process. The reserve is a
/// sixteenth of what is available when this is made.
class HostShare {
 public:
  /// `root` as for AvailableHostMemory().
  explicit HostShare(std::string root = {});

  /// What may still be taken now. Of memory that was allocated and never touched, the system knows
  /// nothing.
  Bytes left_bytes() const;

 private:
  std::string root_;
  Bytes reserve_bytes_;
};

/// Throws OutOfMemory if `asked_bytes` is more than `left_bytes` of a share.
void CheckHostShare(Bytes asked_bytes, Bytes left_bytes);

}  // namespace plimsoll::device

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/base/bytes.h"

namespace plimsoll {

/// Returns how much memory of the host this process may still take before the system runs out of
/// it, or ends the process: what the kernel calls available, or what is left of the limit of a
/// control group (a container), whichever is less. kMaxBytes if the system does not say. `root`
/// stands before all paths, for tests.
Bytes AvailableHostMemory(const std::string& root = {});

}  // namespace plimsoll

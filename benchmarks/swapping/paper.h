// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "swapping/workload.h"

namespace plimsoll::swapping {

/// What the paper has for a network, in Tables I and II. It trains on CIFAR-10, batch 100.
struct PaperRow {
  const char* prefix;     ///< Of our trace's name.
  double load_mb;         ///< At the peak.
  double milliseconds;    ///< An iteration with SmartPool: cudaMalloc's time over the speedup.
  const char* reduction;  ///< In percent of the load.
};

/// Returns the paper's row for the network of a trace, or null.
const PaperRow* FindPaperRow(const std::string& name);

/// Returns the workload with as many bytes at the peak per time of an iteration as the paper's: so
/// computing and copying are to each other as they were there.
Workload AtPaperRatio(const Workload& workload, const PaperRow& paper);

}  // namespace plimsoll::swapping

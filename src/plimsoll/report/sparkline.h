// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/memory_view.h"

namespace plimsoll::report {

/// Draws load over an iteration in one line of eight heights, the highest of each column:
/// "▁▃▅▇█▇▅▃▂▁". `most_bytes` is as high as can be. REQUIRES: steps in the order of time.
std::string DrawSparkline(const std::vector<MemoryStep>& steps, Nanoseconds iteration_ns,
                          Bytes most_bytes, std::size_t columns = 60);

/// The small version of a report, for a terminal: what it says, and memory over time.
std::string RenderForTerminal(const Subject& subject);

}  // namespace plimsoll::report

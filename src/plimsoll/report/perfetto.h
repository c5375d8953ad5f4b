// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/report/subject.h"

namespace plimsoll::report {

/// Writes a timeline in the trace event format of Chrome, which Perfetto reads: a process for what
/// was predicted and one for what was measured, a track for each queue, a slice for each command, a
/// track for stalls, arrows for waits between queues, and counters for load and footprint. Names
/// may be any bytes; what is not UTF-8 is replaced.
std::string RenderPerfetto(const Subject& subject);

}  // namespace plimsoll::report

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/trace/trace.h"

namespace plimsoll::trace {

/// Returns the trace in the text format of docs/formats.md, so that ParseTrace gives it back. A
/// duration is written in microseconds with two decimals, or three where the last nanoseconds need
/// them; empty metadata is written as {}.
///
/// REQUIRES: the trace is consistent, as every one that was read or generated is; its metadata is a
/// JSON object on one line; the names of its ops have neither spaces nor control characters.
std::string FormatTrace(const Trace& trace);

/// Writes the same to a file, whole or not at all; as gzip if `path` ends in ".gz". Throws
/// FileError.
void WriteTrace(const Trace& trace, const std::string& path);

}  // namespace plimsoll::trace

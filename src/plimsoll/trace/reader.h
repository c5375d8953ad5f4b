// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/trace/trace.h"

namespace plimsoll::trace {

/// No op may claim to have run longer than this: 1e12 microseconds, about eleven days.
inline constexpr Nanoseconds kMaxOpDuration = 1'000'000'000'000'000;

/// The durations of all ops together stay below this, about 31 years, so that sums of them fit.
inline constexpr Nanoseconds kMaxTotalDuration = 1'000'000'000'000'000'000;

/// Reads a trace in the text format of docs/formats.md, plain or gzip, line by line. The trace that
/// comes back is consistent: every variable is declared once and freed at most once, ops name only
/// variables that are alive, and the live sizes never add up to kMaxBytes. Microseconds become
/// whole nanoseconds by rounding.
///
/// Throws InputError with the line and what to do about it if the file is anything else, ends early
/// included. Takes time and memory linear in the file, whatever numbers it contains.
Trace ReadTrace(const std::string& path);

/// Does the same for a trace in memory, not compressed; errors name `source` as their file.
Trace ParseTrace(std::string_view text, const std::string& source);

}  // namespace plimsoll::trace

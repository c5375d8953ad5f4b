// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/plan/plan.h"

/// Plans as files: text, a line for each thing, a checksum at the end. docs/formats.md has the
/// format.
namespace plimsoll::plan {

/// The ops and copies of an iteration take less than this together, about 15 years: a simulator
/// that runs it a dozen times over has to count nanoseconds in 64 bits.
inline constexpr double kMaxIterationNs = 5e17;

/// Replaces the file at `path` by the plan, whole or not at all; compressed if the path ends in
/// ".gz". Throws FileError. Equal plans make equal files.
/// REQUIRES: the indices of ops' operands and names are in range.
void WritePlan(const Plan& plan, const std::string& path);

/// Returns the same text.
std::string FormatPlan(const Plan& plan);

/// Reads a plan, plain or gzip. The plan that comes back equals the one that was written.
///
/// Throws InputError with the line and the reason if the file is anything else: a bit was changed,
/// it ends early or goes on after its end, its version is unknown, a number is out of range. A file
/// that was made by hand, with a right checksum, may still describe a plan that makes no sense:
/// CheckPlan() takes whatever comes back, and after it has found nothing wrong, so does
/// everything else. Takes time and memory linear in the file, whatever numbers it contains.
Plan ReadPlan(const std::string& path);

/// Whether a reader compares the checksum. Only fuzzers and tests have a reason to ignore it.
enum class ChecksumMode { kVerify, kIgnore };

/// Does the same for a plan in memory, not compressed; errors name `source` as their file.
Plan ParsePlan(std::string_view text, const std::string& source,
               ChecksumMode mode = ChecksumMode::kVerify);

}  // namespace plimsoll::plan

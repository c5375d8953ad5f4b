// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "plimsoll/place/problem.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/trace/trace.h"

namespace plimsoll::cli {

/// For options: a number from `least` to `most`. CLI::Range takes "nan" for one.
std::function<std::string(const std::string&)> CheckNumber(double least, double most);

enum class FileFormat { kTrace, kSingaLog, kCsv };

/// Tells by the first line what a file is. A file of no known format counts as a trace, whose
/// reader then says what is wrong. Throws InputError if it cannot be read or is empty.
FileFormat DetectFormat(const std::string& path);

/// Reads a trace or a SINGA log. Throws InputError for a CSV file.
trace::Trace ReadAnyTrace(const std::string& path);

/// The problem of a trace: its steady iteration or, with `iteration`, the one between two marks,
/// as it is, once. Throws InputError if there is no such mark.
plan::Problem SelectIteration(const trace::Trace& trace, const std::string& path,
                              std::optional<std::int64_t> iteration);

/// Finds out before a long search what can be known about writing its result. Throws a FileError.
void CheckWritable(const std::string& path);

/// Reads a size such as 512MiB from the command line, or throws CLI::ValidationError.
Bytes ParseSizeOption(const std::string& option, const std::string& text);

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include <fmt/format.h>

#include <CLI/Error.hpp>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/singa.h"

namespace plimsoll::cli {

std::function<std::string(const std::string&)> CheckNumber(double least, double most) {
  return [=](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool is_number = !text.empty() && end == text.c_str() + text.size();
    if (is_number && value >= least && value <= most) return std::string();
    return fmt::format("\"{}\" is not a number from {} to {}", text, least, most);
  };
}

FileFormat DetectFormat(const std::string& path) {
  // The file is opened again by its reader, which a pipe does not survive.
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    throw InputError(path, 0, "not a regular file; save it to one first");
  }
  LineReader reader(path);
  if (!reader.Next()) {
    throw InputError(path, 0, "the file is empty; a trace begins with the line \"trace 1\"");
  }
  const std::string_view line = reader.line();
  constexpr std::array<std::string_view, 5> kSingaEvents = {"Malloc ", "Free ", "Read ", "Mutable ",
                                                            "Layer "};
  for (const std::string_view event : kSingaEvents) {
    if (line.starts_with(event)) return FileFormat::kSingaLog;
  }
  if (!line.starts_with("trace") && line.find(',') != std::string_view::npos) {
    return FileFormat::kCsv;
  }
  return FileFormat::kTrace;
}

trace::Trace ReadAnyTrace(const std::string& path) {
  switch (DetectFormat(path)) {
    case FileFormat::kTrace:
      return trace::ReadTrace(path);
    case FileFormat::kSingaLog:
      return trace::ReadSingaLog(path);
    case FileFormat::kCsv:
      break;
  }
  throw InputError(path, 1,
                   "this is a placement problem, not a trace; try \"plimsoll pool\" with it");
}

plan::Problem SelectIteration(const trace::Trace& trace, const std::string& path,
                              std::optional<std::int64_t> iteration) {
  if (!iteration) return plan::MakeProblem(trace);
  const auto marks = static_cast<std::int64_t>(trace.iteration_marks.size());
  if (*iteration < 0 || *iteration >= marks) {
    throw InputError(
        path, 0,
        fmt::format("there is no iteration {}: the file marks {} of them", *iteration, marks));
  }
  const auto k = static_cast<std::size_t>(*iteration);
  const trace::EventIndex end = *iteration + 1 < marks
                                    ? trace.iteration_marks[k + 1]
                                    : static_cast<trace::EventIndex>(trace.events.size());
  return plan::TakeStretch(trace, trace.iteration_marks[k], end);
}

void CheckWritable(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  if (fs::is_directory(path)) throw FileError(path, "write", EISDIR);
  if (!folder.empty() && !fs::is_directory(folder)) throw FileError(path, "write", ENOENT);
}

Bytes ParseSizeOption(const std::string& option, const std::string& text) {
  const std::optional<Bytes> bytes = ParseBytes(text);
  if (!bytes) {
    throw CLI::ValidationError(option,
                               fmt::format("\"{}\" is not a size; write 1048576 or 512MiB", text));
  }
  return *bytes;
}

}  // namespace plimsoll::cli

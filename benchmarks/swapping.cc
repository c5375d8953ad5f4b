// SPDX-License-Identifier: Apache-2.0
//
// What does swapping cost? The evaluation of paper 001, sections VI-B and VI-C, and every planner
// on every trace. Each part is in a file of its own in swapping/.
//
//   swapping [--figure9] [--table2] [--figures] [--grid [--limits LIST]] [--singa LOG]
//            [FOLDER|TRACE...]
//
//   --figure9   the scores of AutoSwap on VGG16 over memory limits; needs --singa
//   --table2    the largest reduction without overhead, of the paper's networks
//   --figures   Figures 10 and 11: footprint over batch sizes; overhead beside the baselines
//   --grid      all traces, limits and planners over the link of an H200; long, if all traces are
//               given; --limits 80,60 asks less
//
// Without any of these, all that there is input for.

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/parse.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

struct Options {
  std::set<std::string> parts;
  std::optional<std::string> singa;
  std::vector<std::string> traces;
  std::vector<int> limits = {80, 60, 50, 40, 30};  ///< In percent of the peak load.

  bool wants(const char* part) const { return parts.empty() || parts.contains(part); }
};

/// Adds a trace, or those in a folder.
void AddTraces(const std::string& path, std::vector<std::string>* traces) {
  if (!std::filesystem::is_directory(path)) {
    traces->push_back(path);
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename().string().find(".trace") == std::string::npos) continue;
    traces->push_back(entry.path().string());
  }
}

/// Reads percentages separated by commas; 0 for what is none.
std::vector<int> ParseLimits(std::string_view text) {
  std::vector<int> limits;
  while (!text.empty()) {
    limits.push_back(static_cast<int>(ParseInteger(TakeField(&text, ',')).value_or(0)));
  }
  return limits;
}

/// Reads the command line; nothing if it is not right.
std::optional<Options> Parse(const std::vector<std::string>& arguments) {
  const std::set<std::string> parts = {"--figure9", "--table2", "--figures", "--grid"};
  Options options;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    if (parts.contains(arguments[k])) {
      options.parts.insert(arguments[k]);
    } else if (arguments[k] == "--singa" && k + 1 < arguments.size()) {
      options.singa = arguments[++k];
    } else if (arguments[k] == "--limits" && k + 1 < arguments.size()) {
      options.limits = ParseLimits(arguments[++k]);
    } else if (arguments[k].starts_with("--")) {
      return std::nullopt;
    } else {
      AddTraces(arguments[k], &options.traces);
    }
  }
  std::sort(options.traces.begin(), options.traces.end());
  if (options.traces.empty() && !options.singa) return std::nullopt;
  if (std::ranges::count(options.limits, 0) > 0) return std::nullopt;
  return options;
}

int Run(const Options& options) {
  if (options.singa && options.wants("--figure9")) PrintFigure9(ReadSingaWorkload(*options.singa));
  std::vector<Workload> workloads;
  for (const std::string& path : options.traces) workloads.push_back(ReadWorkload(path));
  if (workloads.empty()) return 0;
  if (options.wants("--table2")) PrintTable2(workloads);
  if (options.wants("--figures")) PrintFigures(workloads);
  return options.wants("--grid") && PrintGrid(workloads, options.limits) > 0 ? 1 : 0;
}

}  // namespace
}  // namespace plimsoll::swapping

int main(int argc, char** argv) {
  try {
    const auto options = plimsoll::swapping::Parse({argv + 1, argv + argc});
    if (options) return plimsoll::swapping::Run(*options);
    fmt::print(stderr,
               "usage: swapping [--figure9] [--table2] [--figures] [--grid [--limits LIST]] "
               "[--singa LOG] [FOLDER|TRACE...]\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "swapping: {}\n", error.what());
    return 4;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// How good and how fast is `tight` on hard placement instances? Places each minimalloc CSV file; a
// number in its name (A.1048576.csv) is the capacity to fit into. Without a capacity, or with
// --minimise, the height is minimised for as long as the budget lasts.
//
//   placement_instances [--minimise SECONDS] FILE...

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/place/csv.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/report/table.h"

namespace plimsoll {
namespace {

/// The capacity in a name such as "A.1048576.csv", or -1.
Bytes CapacityInName(const std::string& path) {
  std::string_view rest = std::string_view(path).substr(path.rfind('/') + 1);
  TakeField(&rest, '.');
  return ParseInteger(TakeField(&rest, '.')).value_or(-1);
}

int Run(const std::vector<std::string>& paths, std::optional<double> minimise_seconds) {
  report::Table table({"instance", "buffers", "peak load", "capacity", "height", "height / load",
                       "bound / load", "fits", "seconds"});
  double total_seconds = 0;
  int misfits = 0;
  for (const std::string& path : paths) {
    const place::Problem problem = place::ReadCsv(path);
    const Bytes capacity = minimise_seconds ? -1 : CapacityInName(path);
    place::PlannerOptions options;
    options.capacity_bytes = capacity;
    if (minimise_seconds) options.time_budget_seconds = *minimise_seconds;
    const Stopwatch watch;
    const place::Placement placed = place::PlaceTight(problem, options);
    const double seconds = watch.seconds();
    total_seconds += seconds;
    const auto violations = place::FindViolations(problem, placed.offsets);
    if (!violations.empty()) throw Error(path + ": " + violations.front().message);
    const auto peak = static_cast<double>(place::PeakLoad(problem));
    const bool fits = capacity < 0 || placed.footprint_bytes <= capacity;
    misfits += fits ? 0 : 1;
    table.Add({std::filesystem::path(path).filename().string(),
               fmt::format("{}", problem.buffers.size()), fmt::format("{:.0f}", peak),
               capacity < 0 ? "-" : fmt::format("{}", capacity),
               fmt::format("{}", placed.footprint_bytes),
               fmt::format("{:.5f}", static_cast<double>(placed.footprint_bytes) / peak),
               fmt::format("{:.5f}", static_cast<double>(placed.lower_bound_bytes) / peak),
               fits ? "yes" : "NO", fmt::format("{:.3f}", seconds)});
  }
  fmt::print("{}\n{} instances, {} do not fit, {:.2f} s in all, one core\n", table.Render(),
             paths.size(), misfits, total_seconds);
  return misfits == 0 ? 0 : 1;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  std::optional<double> minimise_seconds;
  if (paths.size() > 1 && paths[0] == "--minimise") {
    minimise_seconds = std::atof(paths[1].c_str());
    paths.erase(paths.begin(), paths.begin() + 2);
  }
  if (paths.empty()) {
    fmt::print(stderr, "usage: placement_instances [--minimise SECONDS] FILE...\n");
    return 2;
  }
  try {
    return plimsoll::Run(paths, minimise_seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "placement_instances: {}\n", error.what());
    return 4;
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// How little memory does one iteration of training need? Places the steady iteration of each trace
// with every planner and prints footprint over peak load, as Table I of paper 001 does, whose own
// figures are printed below.
//
//   trace_pools TRACE...

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/report/table.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll {
namespace {

/// The planners of the table, with what they are in the paper where they are in it.
constexpr const char* kColumns[] = {"cnmem", "bfc", "caching", "firstfit", "bestfit", "tight"};

std::string ModelName(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

/// Adds the row of one trace. Throws Error if a placement is not valid.
double AddRow(const std::string& path, report::Table* table) {
  const Stopwatch reading;
  const trace::Trace trace = trace::ReadTrace(path);
  const double read_seconds = reading.seconds();
  const plan::Problem problem = plan::MakeProblem(trace);
  const Bytes peak = plan::ProfileLoad(problem).peak_bytes;
  const place::Problem placement = plan::ToPlacement(problem).problem;
  std::vector<std::string> cells = {ModelName(path), fmt::format("{}", problem.variables.size()),
                                    fmt::format("{:.1f}", static_cast<double>(peak) / 1e6)};
  double tight_ratio = 0;
  double tight_seconds = 0;
  for (const char* name : kColumns) {
    const Stopwatch watch;
    const place::Placement placed = place::FindPlanner(name)->place(placement, {});
    tight_seconds = watch.seconds();
    const auto violations = place::FindViolations(placement, placed.offsets);
    if (!violations.empty()) {
      throw Error(fmt::format("{} on {}: {}", name, path, violations.front().message));
    }
    tight_ratio = static_cast<double>(placed.footprint_bytes) / static_cast<double>(peak);
    cells.push_back(fmt::format("{:.6f}", tight_ratio));
  }
  cells.push_back(fmt::format("{:.3f}", tight_seconds));
  cells.push_back(fmt::format("{:.3f}", read_seconds));
  table->Add(std::move(cells));
  return tight_ratio;
}

constexpr const char* kPaper =
    R"(Table I of paper 001 (SINGA on a GTX 1080 Ti, batch 100), for comparison:
            ResNet18  ResNet34  ResNet50  ResNet101   VGG11   VGG13   VGG16   VGG19
CnMem          1.033     1.028     1.030      1.028   1.169   1.115   1.113   1.072
SmartPool      1.003     1.001     1.003     1.0005   1.013   1.016   1.012   1.011
)";

int Run(const std::vector<std::string>& paths) {
  report::Table table({"trace", "variables", "peak MB", "cnmem", "bfc", "caching", "firstfit",
                       "bestfit", "tight", "tight s", "read s"});
  double worst = 0;
  for (const std::string& path : paths) worst = std::max(worst, AddRow(path, &table));
  fmt::print("footprint / peak load; alignment 512; every placement validated\n\n{}\n",
             table.Render());
  fmt::print("worst ratio of tight: {:.6f}\n\n{}", worst, kPaper);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: trace_pools TRACE...\n");
    return 2;
  }
  try {
    return plimsoll::Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "trace_pools: {}\n", error.what());
    return 4;
  }
}

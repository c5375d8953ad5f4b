// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

/// Prints one registry as a table, or adds it to `rows`.
template <typename Registry>
void List(const char* kind, const Registry& planners, nlohmann::ordered_json* rows) {
  report::Table table({kind, "what it is", "from"});
  table.Left(1).Left(2);
  for (const auto& planner : planners) {
    if (rows != nullptr) {
      rows->push_back({{"planner", planner.name},
                       {"kind", kind},
                       {"summary", planner.summary},
                       {"source", planner.source}});
    }
    table.Add(
        {std::string(planner.name), std::string(planner.summary), std::string(planner.source)});
  }
  if (rows == nullptr) fmt::print("{}\n", table.Render());
}

void PrintPlanners(bool json) {
  auto rows = nlohmann::ordered_json::array();
  List("swapping", planners::Planners(), json ? &rows : nullptr);
  List("placement", place::Planners(), json ? &rows : nullptr);
  if (json) fmt::print("{}\n", rows.dump(2));
}

}  // namespace

void AddPlannersCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("planners", "List the planners");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print an array of objects");
  command->callback([json, &exit_code] {
    PrintPlanners(*json);
    exit_code = ExitCode::kDone;
  });
}

}  // namespace plimsoll::cli

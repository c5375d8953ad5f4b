// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

void PrintPlanners(bool json) {
  if (json) {
    auto rows = nlohmann::ordered_json::array();
    for (const place::Planner& planner : place::Planners()) {
      rows.push_back({{"planner", planner.name},
                      {"kind", "placement"},
                      {"summary", planner.summary},
                      {"source", planner.source},
                      {"online", planner.online}});
    }
    fmt::print("{}\n", rows.dump(2));
    return;
  }
  report::Table table({"planner", "what it is", "from"});
  table.Left(1).Left(2);
  for (const place::Planner& planner : place::Planners()) {
    table.Add(
        {std::string(planner.name), std::string(planner.summary), std::string(planner.source)});
  }
  fmt::print("{}", table.Render());
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

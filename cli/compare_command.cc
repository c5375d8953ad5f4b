// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"

namespace plimsoll::cli {
namespace {

void Print(const ComparisonSettings& options, const std::vector<PlanRow>& rows,
           const std::string& link) {
  if (options.json) {
    auto json = nlohmann::ordered_json::array();
    for (const PlanRow& row : rows) json.push_back(ToJson(row));
    PrintJson(json);
  } else if (options.csv) {
    PrintCsv(rows);
  } else {
    PrintTable(rows, link);
  }
}

ExitCode RunCompare(const ComparisonSettings& options) {
  const Interrupt interrupt;
  const std::vector<const planners::Planner*> chosen =
      ParsePlanners("--planners", options.planners);
  const PlanInput input = ReadPlanInput(options.plan);
  const std::vector<Bytes> limits = ParseLimits("--limits", options.limits, input.peak_load_bytes);
  const std::vector<PlanRow> rows = AskAll(input, limits, chosen, interrupt);
  Print(options, rows, input.machine.name);
  if (AnyFits(rows)) return ExitCode::kDone;
  ExplainNearestMisfit(rows);
  return ExitCode::kNoAnswer;
}

}  // namespace

void AddCompareCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("compare", "Compare planners under memory limits");
  auto options = std::make_shared<ComparisonSettings>();
  options->limits = "80%,60%,50%";
  options->planners = "all";
  AddComparisonSettings(command, "Print an array of rows", options.get());
  command->callback([options, &exit_code] { exit_code = RunCompare(*options); });
}

}  // namespace plimsoll::cli

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

struct Options {
  PlanSettings settings;
  std::string limits = "80%,60%,50%";
  std::string planners = "all";
  bool json = false;
  bool csv = false;
};

void Print(const Options& options, const std::vector<PlanRow>& rows, const std::string& link) {
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

ExitCode Run(const Options& options) {
  const Interrupt interrupt;
  const std::vector<const planners::Planner*> chosen =
      ParsePlanners("--planners", options.planners);
  const PlanInput input = ReadPlanInput(options.settings);
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
  auto options = std::make_shared<Options>();
  AddPlanSettings(command, &options->settings);
  command
      ->add_option("--limits", options->limits,
                   "Sizes, or percentages of the peak load, such as 80%,4GiB")
      ->capture_default_str();
  command->add_option("--planners", options->planners, "Planners by name, or all")
      ->capture_default_str();
  CLI::Option* json = command->add_flag("--json", options->json, "Print an array of rows");
  command->add_flag("--csv", options->csv, "Print rows as CSV")->excludes(json);
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

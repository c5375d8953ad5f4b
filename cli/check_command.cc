// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/plan/check.h"

namespace plimsoll::cli {
namespace {

void Print(const std::vector<plan::PlanViolation>& violations, bool json) {
  if (json) {
    auto list = nlohmann::ordered_json::array();
    for (const plan::PlanViolation& violation : violations) {
      list.push_back({{"law", plan::Name(violation.law)}, {"message", violation.message}});
    }
    PrintJson({{"valid", violations.empty()}, {"violations", list}});
    return;
  }
  fmt::print("valid: {}\n", violations.empty() ? "yes" : "no");
  fmt::print("violations: {}\n", violations.empty() ? "none" : "");
  for (const plan::PlanViolation& violation : violations) {
    fmt::print("  {}: {}\n", plan::Name(violation.law), Printable(violation.message));
  }
}

ExitCode Run(const PlanFileSettings& options) {
  const plan::Plan plan = ReadPlanFor(options.file, options.trace);
  const std::vector<plan::PlanViolation> violations = plan::CheckPlan(plan);
  Print(violations, options.json);
  return violations.empty() ? ExitCode::kDone : ExitCode::kNoAnswer;
}

}  // namespace

void AddCheckCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("check", "Judge whether a plan is safe at any speed");
  auto options = std::make_shared<PlanFileSettings>();
  AddPlanFileSettings(command, options.get());
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

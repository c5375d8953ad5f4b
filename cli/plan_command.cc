// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/base/error.h"
#include "plimsoll/plan/plan_file.h"

namespace plimsoll::cli {
namespace {

struct Options {
  PlanSettings settings;
  std::string limit;
  std::string planner = "autoswap-bo";
  std::optional<std::string> output;
  bool json = false;
};

/// Finds out before a long search what can be known about writing its result.
void CheckWritable(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  if (fs::is_directory(path)) throw FileError(path, "write", EISDIR);
  if (!folder.empty() && !fs::is_directory(folder)) throw FileError(path, "write", ENOENT);
}

ExitCode Run(const Options& options) {
  const Interrupt interrupt;
  const planners::Planner& planner = ParsePlanner("--planner", options.planner);
  if (options.output) CheckWritable(*options.output);
  const PlanInput input = ReadPlanInput(options.settings);
  const Bytes limit_bytes = ParseLimit("--limit", options.limit, input.peak_load_bytes);
  const Answer answer = Asker(input, interrupt).Ask(planner, limit_bytes);
  if (interrupt.requested() && answer.plan) {
    fmt::print(stderr, "plimsoll: interrupted: the best plan so far is kept\n");
  }
  if (answer.plan && options.output) plan::WritePlan(*answer.plan, *options.output);
  if (options.json) {
    PrintJson(ToJson(answer.row));
  } else {
    PrintTable({answer.row}, input.machine.name);
  }
  if (answer.plan) return ExitCode::kDone;
  ExplainMisfit(answer.row);
  return ExitCode::kNoAnswer;
}

}  // namespace

void AddPlanCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("plan", "Plan an iteration under a memory limit");
  auto options = std::make_shared<Options>();
  AddPlanSettings(command, &options->settings);
  command
      ->add_option("--limit", options->limit,
                   "Bytes on the device, such as 4GiB, or 60% of the peak load")
      ->required();
  command->add_option("--planner", options->planner, "See \"plimsoll planners\"")
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "Write the plan here; compressed if the name ends in .gz");
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/base/error.h"
#include "plimsoll/learn/policy.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/planners/reduction.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kAuto = "auto";

struct PlanOptions {
  PlanSettings settings;
  std::string limit;
  std::optional<std::string> max_overhead;
  std::string planner = "joint";
  std::optional<std::string> output;
  std::optional<std::string> weights_in;
  std::optional<std::string> weights_out;
  bool json = false;
};

/// Reads --max-overhead as a fraction; no overhead is the default.
double ParseMaxOverhead(const PlanOptions& options) {
  if (!options.max_overhead) return 0;
  if (options.limit != kAuto) {
    throw CLI::ValidationError("--max-overhead", "is for \"--limit auto\" only");
  }
  return ParsePercentage("--max-overhead", *options.max_overhead);
}

/// Refuses weights where nothing is learned, and files that would be written twice.
void CheckWeights(const PlanOptions& options, const planners::Planner& planner) {
  const char* option = options.weights_in ? "--weights-in" : "--weights-out";
  if ((options.weights_in || options.weights_out) && !planner.learns) {
    std::string known;
    for (const planners::Planner& other : planners::Planners()) {
      if (other.learns) known += fmt::format("{}{}", known.empty() ? "" : ", ", other.name);
    }
    throw CLI::ValidationError(option, fmt::format("is for planners that learn: {}", known));
  }
  if (options.weights_out && options.weights_out == options.output) {
    throw CLI::ValidationError("--weights-out", "is the file of the plan; choose another");
  }
}

/// Asks for a plan at the limit given, or at the smallest one; nothing if there is no such limit.
std::optional<Answer> Ask(const std::string& limit, double max_overhead,
                          const planners::Planner& planner, const PlanInput& input,
                          const Interrupt& interrupt) {
  Asker asker(input, interrupt);
  std::optional<Answer> answer;
  if (limit == kAuto) {
    answer = asker.AskSmallest(planner, max_overhead);
  } else {
    answer = asker.Ask(planner, ParseLimit("--limit", limit, input.peak_load_bytes));
  }
  if (answer) {
    answer->row.load_min_bytes =
        planners::MinimumCandidateLoad({input.problem, input.machine, input.options});
  }
  return answer;
}

ExitCode Run(const PlanOptions& options) {
  const Interrupt interrupt;
  const planners::Planner& planner = ParsePlanner("--planner", options.planner);
  const double max_overhead = ParseMaxOverhead(options);
  CheckWeights(options, planner);
  if (options.output) CheckWritable(*options.output);
  if (options.weights_out) CheckWritable(*options.weights_out);
  std::optional<learn::Policy> weights;
  if (options.weights_in) weights = learn::ReadPolicy(*options.weights_in);
  PlanInput input = ReadPlanInput(options.settings);
  std::optional<learn::Policy> learned;
  if (weights) input.options.policy = &*weights;
  input.options.on_policy = [&](const learn::Policy& policy) { learned = policy; };
  const std::optional<Answer> found = Ask(options.limit, max_overhead, planner, input, interrupt);
  if (learned && options.weights_out) learn::WritePolicy(*learned, *options.weights_out);
  if (!found) {
    fmt::print(stderr, "plimsoll: {} has an overhead above {} at every limit\n", planner.name,
               options.max_overhead.value_or("0%"));
    return ExitCode::kNoAnswer;
  }
  const Answer& answer = *found;
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
  auto options = std::make_shared<PlanOptions>();
  AddPlanSettings(command, &options->settings);
  command
      ->add_option("--limit", options->limit,
                   "Bytes on the device, such as 4GiB, or 60% of the peak load; \"auto\" for the "
                   "smallest limit without overhead")
      ->required();
  command->add_option("--max-overhead", options->max_overhead,
                      "For --limit auto: how much longer an iteration may take; default 0%");
  command->add_option("--planner", options->planner, "See \"plimsoll planners\"")
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "Write the plan here; compressed if the name ends in .gz");
  command->add_option("--weights-in", options->weights_in,
                      "For planners that learn: begin with the weights in this file");
  command->add_option("--weights-out", options->weights_out,
                      "For planners that learn: write the weights here when the search has ended");
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

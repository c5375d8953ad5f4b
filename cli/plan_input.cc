// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "cli/input.h"
#include "cli/model_trace.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/signature.h"

namespace plimsoll::cli {
namespace {

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(TakeField(&text, ','));
  return parts;
}

}  // namespace

plan::Machine SelectMachine(const std::string& link) {
  if (const std::optional<plan::Machine> preset = plan::FindMachine(link)) return *preset;
  if (std::filesystem::exists(link)) return plan::ReadMachine(link);
  std::string known;
  for (const plan::Machine& machine : plan::MachinePresets()) known += machine.name + ", ";
  throw CLI::ValidationError(
      "--link", fmt::format("\"{}\" is neither a link ({}or a file) nor a file", link, known));
}

namespace {

/// Throws InputError if sums over the iteration would not fit 64 bits, whatever is swapped.
void CheckCountable(const PlanInput& input, const std::string& path) {
  const plan::Machine& machine = input.machine;
  double bytes = 0;
  double ns = static_cast<double>(input.problem.iteration_ns());
  for (const plan::Variable& variable : input.problem.variables) {
    bytes += static_cast<double>(variable.size_bytes);
  }
  for (const plan::Operand& operand : input.problem.operands) {
    const auto v = static_cast<std::size_t>(operand.variable);
    const auto size = static_cast<double>(input.problem.variables[v].size_bytes);
    ns += static_cast<double>(machine.out_latency_ns + machine.in_latency_ns) +
          size * 1e9 / machine.both_out_bytes_per_s + size * 1e9 / machine.both_in_bytes_per_s;
  }
  if (ns < plan::kMaxIterationNs && bytes < static_cast<double>(kMaxBytes)) return;
  throw InputError(path, 0,
                   fmt::format("over the link {}, an iteration could take more than 15 years or "
                               "copy 2^62 bytes; check the sizes and the link",
                               machine.name));
}

}  // namespace

void AddPlanSettings(CLI::App* command, PlanSettings* settings) {
  CLI::Option* trace = command->add_option("TRACE", settings->trace, "Trace or SINGA event log");
  const std::vector<CLI::Option*> before = command->get_options();
  CLI::Option* model = AddModelSettings(command, "--model", &settings->model)->required(false);
  AddSpeedOption(command, &settings->speed);
  model->excludes(trace);
  for (CLI::Option* option : command->get_options()) {
    const bool is_new = std::find(before.begin(), before.end(), option) == before.end();
    if (is_new && option != model) option->needs(model);
  }
  AddPlannerSettings(command, settings);
}

void AddPlannerSettings(CLI::App* command, PlanSettings* settings) {
  command->add_option("--link", settings->link, "Link to the host: h200, v100, gtx1080ti or a file")
      ->capture_default_str();
  command->add_option("--host-limit", settings->host_limit,
                      "Bytes of host memory for what is swapped; default no limit");
  command->add_option("--least-bytes", settings->least_bytes,
                      "Most planners swap nothing smaller where they need not; default 1MiB, or a "
                      "thousandth of the peak load if that is less");
  command->add_option("--seed", settings->seed, "For searches")->capture_default_str();
  command->add_option("--budget", settings->budget_seconds, "Seconds that anytime planners search")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--evaluations", settings->evaluations,
                   "How many choices they look at instead, for answers that do not depend on time")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command
      ->add_option("--threads", settings->threads,
                   "Threads of anytime planners; default as many as the machine has")
      ->check(CLI::Range(1, 64));
}

void AddComparisonSettings(CLI::App* command, const std::string& json_help,
                           ComparisonSettings* settings) {
  AddPlanSettings(command, &settings->plan);
  command
      ->add_option("--limits", settings->limits,
                   "Sizes, or percentages of the peak load, such as 80%,4GiB")
      ->capture_default_str();
  command->add_option("--planners", settings->planners, "Planners by name, or all")
      ->capture_default_str();
  CLI::Option* json = command->add_flag("--json", settings->json, json_help);
  command->add_flag("--csv", settings->csv, "Print rows as CSV")->excludes(json);
}

void AddPlanFileSettings(CLI::App* command, PlanFileSettings* settings) {
  command->add_option("PLAN", settings->file, "What \"plimsoll plan -o\" has written")->required();
  command->add_option("--trace", settings->trace, "Refuse a plan that was not made for this trace");
  command->add_flag("--json", settings->json, "Print an object");
}

PlanInput ReadPlanInput(const PlanSettings& settings) {
  if (!settings.model.model.empty()) {
    const ModelInput model = ReadModel(settings.model);
    return MakePlanInput(settings, TraceModel(model, settings.speed), model.name);
  }
  if (settings.trace.empty()) {
    throw CLI::RequiredError("A trace, or a model by --model,");
  }
  return MakePlanInput(settings, ReadAnyTrace(settings.trace), settings.trace);
}

planners::PlannerOptions MakePlannerOptions(const PlanSettings& settings,
                                            const plan::Problem& problem) {
  planners::PlannerOptions options;
  if (settings.host_limit) {
    options.host_limit_bytes = ParseSizeOption("--host-limit", *settings.host_limit);
  }
  options.least_bytes = settings.least_bytes
                            ? ParseSizeOption("--least-bytes", *settings.least_bytes)
                            : planners::LeastBytesFor(problem);
  options.seed = settings.seed;
  options.time_budget_seconds = settings.budget_seconds;
  options.evaluations = settings.evaluations;
  options.threads = settings.threads;
  return options;
}

PlanInput MakePlanInput(const PlanSettings& settings, const trace::Trace& trace,
                        const std::string& source) {
  PlanInput input;
  input.machine = settings.machine ? *settings.machine : SelectMachine(settings.link);
  const plan::Problem problem = plan::MakeProblem(trace);
  input.peak_load_bytes = plan::ProfileLoad(problem).peak_bytes;
  input.signature = plan::Signature(problem);
  input.problem = plan::ProblemToPlan(problem);
  input.options = MakePlannerOptions(settings, input.problem);
  CheckCountable(input, source);
  return input;
}

double ParsePercentage(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  // Not a number is neither below nor above anything.
  if (text.size() < 2 || !text.ends_with('%') || end != text.c_str() + text.size() - 1 ||
      !(percent >= 0 && percent <= 1000)) {
    throw CLI::ValidationError(option, fmt::format("\"{}\" is not a percentage", text));
  }
  return percent / 100;
}

Bytes ParseLimit(const std::string& option, const std::string& text, Bytes peak_load_bytes) {
  if (!text.ends_with('%')) return ParseSizeOption(option, text);
  const double bytes =
      std::floor(ParsePercentage(option, text) * static_cast<double>(peak_load_bytes));
  return static_cast<Bytes>(std::min(bytes, static_cast<double>(kMaxBytes)));
}

std::vector<Bytes> ParseLimits(const std::string& option, const std::string& text,
                               Bytes peak_load_bytes) {
  std::vector<Bytes> limits;
  for (const std::string& part : SplitCommas(text)) {
    limits.push_back(ParseLimit(option, part, peak_load_bytes));
  }
  if (limits.empty()) throw CLI::ValidationError(option, "names no limit");
  return limits;
}

const planners::Planner& ParsePlanner(const std::string& option, const std::string& name) {
  if (const planners::Planner* planner = planners::FindPlanner(name)) return *planner;
  std::string known;
  for (const planners::Planner& planner : planners::Planners()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", planner.name);
  }
  throw CLI::ValidationError(option,
                             fmt::format("there is no planner \"{}\"; there are {}", name, known));
}

std::vector<const planners::Planner*> ParsePlanners(const std::string& option,
                                                    const std::string& text) {
  std::vector<const planners::Planner*> chosen;
  if (text == "all") {
    for (const planners::Planner& planner : planners::Planners()) chosen.push_back(&planner);
    return chosen;
  }
  for (const std::string& name : SplitCommas(text)) chosen.push_back(&ParsePlanner(option, name));
  if (chosen.empty()) throw CLI::ValidationError(option, "names no planner");
  return chosen;
}

plan::Plan ReadPlanFor(const std::string& path, const std::optional<std::string>& trace) {
  plan::Plan plan = plan::ReadPlan(path);
  if (!trace) return plan;
  const plan::Problem problem = plan::MakeProblem(ReadAnyTrace(*trace));
  const std::uint64_t signature = plan::Signature(problem);
  // The signature is what the file claims; what it plans is told from its problem, and if ops run
  // again in that, from the one that it was made of, with what these ops allow.
  const plan::Problem to_plan = plan::ProblemToPlan(problem);
  const plan::Problem& planned = plan.rewriting ? plan.rewriting->original : plan.problem;
  const bool allowed =
      !plan.rewriting ||
      std::equal(planned.ops.begin(), planned.ops.end(), to_plan.ops.begin(), to_plan.ops.end(),
                 [](const plan::Op& a, const plan::Op& b) { return a.traits == b.traits; });
  // The runtime plans lives as they were recorded.
  const std::uint64_t own = plan::Signature(planned);
  const bool same =
      own == plan::Signature(to_plan) || own == plan::Signature(plan::Unroll(problem));
  if (plan.signature != signature || !same || !allowed) {
    throw InputError(path, 0,
                     fmt::format("this plan was made for another trace: its signature is {:016x}, "
                                 "that of {} is {:016x}; plan that trace",
                                 plan.signature, *trace, signature));
  }
  return plan;
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  std::string limits = "80%,60%,50%";
  std::string planners = "all";
  std::string link = "h200";
  bool json = false;
};

/// What is planned: the steady iteration, several of them if variables outlive theirs.
struct Input {
  plan::Problem problem;
  std::int32_t iterations = 1;
  Bytes peak_load_bytes = 0;
  plan::Machine machine;
};

/// The answer of one planner at one limit. Times and copies are of one iteration of the program.
struct Row {
  std::string_view planner;
  Bytes limit_bytes = 0;
  Bytes peak_load_bytes = 0;
  Nanoseconds unlimited_ns = 0;
  double planning_seconds = 0;
  bool fits = false;
  // If it does not fit.
  Bytes needed_bytes = 0;
  // If it does.
  Bytes footprint_bytes = 0;
  Bytes host_bytes = 0;
  Nanoseconds iteration_ns = 0;
  Bytes swapped_bytes = 0;
  bool valid = false;

  double overhead() const {
    if (unlimited_ns == 0) return 0;
    return static_cast<double>(iteration_ns) / static_cast<double>(unlimited_ns) - 1;
  }
};

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(TakeField(&text, ','));
  return parts;
}

/// A list such as "80%,4GiB"; percentages are of the peak load.
std::vector<Bytes> ParseLimits(const std::string& text, Bytes peak_load_bytes) {
  std::vector<Bytes> limits;
  for (const std::string& part : SplitCommas(text)) {
    if (!part.ends_with('%')) {
      limits.push_back(ParseSizeOption("--limits", part));
      continue;
    }
    char* end = nullptr;
    const double percent = std::strtod(part.c_str(), &end);
    // Not a number is neither below nor above anything.
    if (end != part.c_str() + part.size() - 1 || !(percent >= 0 && percent <= 1000)) {
      throw CLI::ValidationError("--limits", fmt::format("\"{}\" is not a percentage", part));
    }
    limits.push_back(
        static_cast<Bytes>(std::floor(percent / 100 * static_cast<double>(peak_load_bytes))));
  }
  if (limits.empty()) throw CLI::ValidationError("--limits", "names no limit");
  return limits;
}

std::vector<const planners::Planner*> ParsePlanners(const std::string& text) {
  std::vector<const planners::Planner*> chosen;
  std::string known = "all";
  for (const planners::Planner& planner : planners::Planners()) {
    if (text == "all") chosen.push_back(&planner);
    known += fmt::format(", {}", planner.name);
  }
  if (text == "all") return chosen;
  for (const std::string& name : SplitCommas(text)) {
    chosen.push_back(planners::FindPlanner(name));
    if (chosen.back() != nullptr) continue;
    throw CLI::ValidationError(
        "--planners", fmt::format("there is no swap planner \"{}\"; there are {}", name, known));
  }
  if (chosen.empty()) throw CLI::ValidationError("--planners", "names no planner");
  return chosen;
}

plan::Machine SelectMachine(const std::string& link) {
  if (const std::optional<plan::Machine> preset = plan::FindMachine(link)) return *preset;
  if (std::filesystem::exists(link)) return plan::ReadMachine(link);
  std::string known;
  for (const plan::Machine& machine : plan::MachinePresets()) known += machine.name + ", ";
  throw CLI::ValidationError(
      "--link", fmt::format("\"{}\" is neither a link ({}or a file) nor a file", link, known));
}

Input ReadInput(const Options& options) {
  Input input;
  input.machine = SelectMachine(options.link);
  const plan::Problem problem = plan::MakeProblem(ReadAnyTrace(options.file));
  input.peak_load_bytes = plan::ProfileLoad(problem).peak_bytes;
  input.problem = plan::Unroll(problem);
  if (problem.period > 0) {
    input.iterations = static_cast<std::int32_t>(input.problem.period / problem.period);
  }
  return input;
}

Bytes CopiedOut(const plan::Plan& plan) {
  Bytes total = 0;
  for (const plan::Residency& residency : plan.residencies) {
    if (residency.copy_out < 0) continue;
    total += plan.problem.variables[static_cast<std::size_t>(residency.variable)].size_bytes;
  }
  return total;
}

Row Ask(const planners::Planner& planner, const Input& input, Bytes limit_bytes) {
  Row row;
  row.planner = planner.name;
  row.limit_bytes = limit_bytes;
  row.peak_load_bytes = input.peak_load_bytes;
  row.unlimited_ns = input.problem.iteration_ns() / input.iterations;
  planners::PlannerOptions planner_options;
  planner_options.limit_bytes = limit_bytes;
  const Stopwatch watch;
  planners::Outcome outcome =
      planners::MakePlan(planner, input.problem, input.machine, planner_options);
  row.planning_seconds = watch.seconds();
  row.fits = outcome.plan.has_value();
  if (!row.fits) {
    row.needed_bytes = outcome.misfit.needed_bytes;
    return row;
  }
  plan::Plan& plan = *outcome.plan;
  plan.iterations = input.iterations;
  row.footprint_bytes = plan.footprint_bytes;
  row.host_bytes = plan.host_bytes;
  row.iteration_ns = outcome.timeline.iteration_ns / plan.iterations;
  row.swapped_bytes = CopiedOut(plan) / plan.iterations;
  row.valid = plan::CheckPlan(plan, 1).empty();
  return row;
}

Json ToJson(const Row& row) {
  Json json = {{"planner", row.planner},
               {"limit_bytes", row.limit_bytes},
               {"peak_load_bytes", row.peak_load_bytes},
               {"iteration_ns_unlimited", row.unlimited_ns},
               {"planning_seconds", row.planning_seconds},
               {"fits", row.fits}};
  if (!row.fits) {
    json["needed_bytes"] = row.needed_bytes;
    return json;
  }
  json["footprint_bytes"] = row.footprint_bytes;
  json["host_bytes"] = row.host_bytes;
  json["iteration_ns"] = row.iteration_ns;
  json["overhead"] = row.overhead();
  json["swapped_bytes"] = row.swapped_bytes;
  json["recomputed_bytes"] = 0;
  json["valid"] = row.valid;
  return json;
}

void PrintTable(const Input& input, const std::vector<Row>& rows) {
  fmt::print("peak load {} ({} bytes), iteration {:.3f} ms without a limit, link {}\n\n",
             FormatBytes(input.peak_load_bytes), input.peak_load_bytes,
             static_cast<double>(rows.front().unlimited_ns) / 1e6, input.machine.name);
  report::Table table({"planner", "limit", "of peak", "footprint", "iteration", "overhead",
                       "swapped", "host", "planning"});
  for (const Row& row : rows) {
    const double share = static_cast<double>(row.limit_bytes) /
                         static_cast<double>(std::max<Bytes>(row.peak_load_bytes, 1));
    std::vector<std::string> cells = {std::string(row.planner), FormatBytes(row.limit_bytes),
                                      fmt::format("{:.1f} %", 100 * share)};
    if (row.fits) {
      cells.insert(cells.end(),
                   {FormatBytes(row.footprint_bytes),
                    fmt::format("{:.3f} ms", static_cast<double>(row.iteration_ns) / 1e6),
                    fmt::format("{:.2f} %", 100 * row.overhead()), FormatBytes(row.swapped_bytes),
                    FormatBytes(row.host_bytes)});
    } else {
      cells.insert(cells.end(), {"needs " + FormatBytes(row.needed_bytes), "-", "-", "-", "-"});
    }
    cells.push_back(fmt::format("{:.3f} s", row.planning_seconds));
    table.Add(cells);
  }
  fmt::print("{}", table.Render());
}

ExitCode Run(const Options& options) {
  const std::vector<const planners::Planner*> chosen = ParsePlanners(options.planners);
  const Input input = ReadInput(options);
  std::vector<Row> rows;
  for (const Bytes limit_bytes : ParseLimits(options.limits, input.peak_load_bytes)) {
    for (const planners::Planner* planner : chosen) {
      rows.push_back(Ask(*planner, input, limit_bytes));
    }
  }
  if (options.json) {
    Json json = Json::array();
    for (const Row& row : rows) json.push_back(ToJson(row));
    fmt::print("{}\n", json.dump(2));
  } else {
    PrintTable(input, rows);
  }
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.fits; })) {
    return ExitCode::kDone;
  }
  fmt::print(stderr, "plimsoll: no planner fits {} into any of these limits\n", options.file);
  return ExitCode::kNoAnswer;
}

}  // namespace

void AddCompareCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("compare", "Compare planners that swap, under memory limits");
  auto options = std::make_shared<Options>();
  command->add_option("TRACE", options->file, "Trace or SINGA event log")->required();
  command
      ->add_option("--limits", options->limits,
                   "Sizes, or percentages of the peak load, such as 80%,4GiB")
      ->capture_default_str();
  command->add_option("--planners", options->planners, "Planners by name, or all")
      ->capture_default_str();
  command->add_option("--link", options->link, "Link to the host: h200, v100, gtx1080ti or a file")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print an array of rows");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

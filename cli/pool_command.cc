// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/place/csv.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/place/validator.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/report/arena_drawing.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLongestBudget = 365.0 * 24 * 3600;

struct PoolOptions {
  std::string file;
  std::string planner = "tight";
  std::optional<std::string> capacity;
  std::optional<std::string> alignment;
  double time_budget_seconds = place::PlannerOptions().time_budget_seconds;
  std::uint64_t seed = 1;
  std::optional<std::string> output;
  std::optional<std::int64_t> iteration;
  bool json = false;
  bool draw = false;
};

/// What is to be placed.
struct PoolInput {
  place::Problem problem;
  std::size_t variables = 0;
  Bytes peak_load_bytes = 0;
};

Bytes Alignment(const PoolOptions& options) {
  if (!options.alignment) return kDefaultAlignment;
  constexpr Bytes kLargest = Bytes{1} << 40;
  const Bytes alignment = ParseSizeOption("--alignment", *options.alignment);
  if (alignment < 1 || alignment > kLargest) {
    throw CLI::ValidationError("--alignment", "must be from 1 byte to 1TiB");
  }
  return alignment;
}

PoolInput ReadInput(const PoolOptions& options) {
  PoolInput input;
  if (DetectFormat(options.file) == FileFormat::kCsv) {
    if (options.iteration) {
      throw CLI::ValidationError("--iteration", "a placement problem has no iterations");
    }
    input.problem = place::ReadCsv(options.file);
    if (options.alignment) {
      for (place::Buffer& buffer : input.problem.buffers) buffer.alignment = Alignment(options);
    }
    input.variables = input.problem.buffers.size();
    input.peak_load_bytes = place::PeakLoad(input.problem);
  } else {
    const plan::Problem problem =
        SelectIteration(ReadAnyTrace(options.file), options.file, options.iteration);
    input.problem = plan::ToPlacement(problem, Alignment(options)).problem;
    input.variables = problem.variables.size();
    input.peak_load_bytes = plan::ProfileLoad(problem).peak_bytes;
  }
  place::CheckWellFormed(input.problem, options.file);
  return input;
}

/// One planner's answer, judged.
struct PoolAnswer {
  const place::Planner* planner = nullptr;
  place::Placement placement;
  double planning_seconds = 0;
  std::vector<place::Violation> violations;
  bool fits = true;  ///< Within the capacity, if there is one.
};

/// Shows the best so far on a terminal, and nothing elsewhere.
class Progress {
 public:
  explicit Progress(std::string_view planner) {
    if (isatty(fileno(stderr)) == 0) return;
    shown_ = [this, planner](Bytes best, Bytes bound) {
      fmt::print(stderr, "\r\x1b[K{}: {:.1f} s, best {}, bound {}", planner, watch_.seconds(),
                 FormatBytes(best), FormatBytes(bound));
      std::fflush(stderr);
      dirty_ = true;
    };
  }
  ~Progress() {
    if (dirty_) fmt::print(stderr, "\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  const std::function<void(Bytes, Bytes)>& callback() const { return shown_; }

 private:
  std::function<void(Bytes, Bytes)> shown_;
  Stopwatch watch_;
  bool dirty_ = false;
};

PoolAnswer Ask(const place::Planner& planner, const PoolInput& input, const PoolOptions& options,
               Bytes capacity) {
  PoolAnswer answer;
  answer.planner = &planner;
  place::PlannerOptions planner_options;
  planner_options.capacity_bytes = capacity;
  planner_options.time_budget_seconds = options.time_budget_seconds;
  planner_options.seed = options.seed;
  const Progress progress(planner.name);
  planner_options.on_progress = progress.callback();
  const Stopwatch watch;
  answer.placement = planner.place(input.problem, planner_options);
  answer.planning_seconds = watch.seconds();
  answer.violations = place::FindViolations(input.problem, answer.placement.offsets);
  answer.fits = capacity < 0 || answer.placement.footprint_bytes <= capacity;
  return answer;
}

double Ratio(const PoolInput& input, Bytes footprint) {
  if (input.peak_load_bytes == 0) return 1;
  return static_cast<double>(footprint) / static_cast<double>(input.peak_load_bytes);
}

Json ToJson(const PoolInput& input, const PoolAnswer& answer, Bytes capacity) {
  const place::Placement& placement = answer.placement;
  Json row = {{"planner", answer.planner->name},
              {"variables", input.variables},
              {"buffers", input.problem.buffers.size()},
              {"peak_load_bytes", input.peak_load_bytes},
              {"lower_bound_bytes", placement.lower_bound_bytes},
              {"footprint_bytes", placement.footprint_bytes},
              {"ratio", Ratio(input, placement.footprint_bytes)},
              {"gap_bytes", placement.footprint_bytes - placement.lower_bound_bytes},
              {"planning_seconds", answer.planning_seconds},
              {"valid", answer.violations.empty()},
              {"fits", answer.fits}};
  if (capacity >= 0) row["capacity_bytes"] = capacity;
  return row;
}

void PrintPlacements(const PoolInput& input, const std::vector<PoolAnswer>& answers) {
  fmt::print("{} variables, peak load {} ({} bytes), lower bound {} bytes\n\n", input.variables,
             FormatBytes(input.peak_load_bytes), input.peak_load_bytes,
             answers.back().placement.lower_bound_bytes);
  report::Table table(
      {"planner", "footprint", "bytes", "ratio", "over the bound", "planning", "valid"});
  for (const PoolAnswer& answer : answers) {
    const place::Placement& placement = answer.placement;
    table.Add({std::string(answer.planner->name), FormatBytes(placement.footprint_bytes),
               fmt::format("{}", placement.footprint_bytes),
               fmt::format("{:.6f}", Ratio(input, placement.footprint_bytes)),
               fmt::format("{} B", placement.footprint_bytes - placement.lower_bound_bytes),
               fmt::format("{:.3f} s", answer.planning_seconds),
               answer.violations.empty() ? "yes" : "NO"});
  }
  fmt::print("{}", table.Render());
}

std::vector<PoolAnswer> AskAll(const PoolInput& input, const PoolOptions& options, Bytes capacity) {
  const bool all = options.planner == "all";
  std::vector<PoolAnswer> answers;
  const bool has_fixed =
      std::any_of(input.problem.buffers.begin(), input.problem.buffers.end(),
                  [](const place::Buffer& buffer) { return buffer.fixed_offset.has_value(); });
  for (const place::Planner& planner : place::Planners()) {
    if (!all && planner.name != options.planner) continue;
    if (planner.online && has_fixed) {
      const std::string reason =
          fmt::format("{} replays an allocator that cannot honour the fixed offsets of {}",
                      planner.name, options.file);
      if (!all) throw CLI::ValidationError("--planner", reason + "; try tight");
      fmt::print(stderr, "plimsoll: {}: left out\n", reason);
      continue;
    }
    answers.push_back(Ask(planner, input, options, capacity));
  }
  // What one planner has proved holds for all.
  Bytes bound = 0;
  for (const PoolAnswer& a : answers) bound = std::max(bound, a.placement.lower_bound_bytes);
  for (PoolAnswer& a : answers) a.placement.lower_bound_bytes = bound;
  return answers;
}

/// Says on stderr why it does not fit.
void ExplainMisfit(const PoolOptions& options, const PoolAnswer& answer, Bytes capacity) {
  const place::Placement& placement = answer.placement;
  if (capacity < placement.lower_bound_bytes) {
    fmt::print(stderr,
               "plimsoll: {} does not fit into {} bytes: no placement is below the lower bound of "
               "{} bytes\n",
               options.file, capacity, placement.lower_bound_bytes);
  } else {
    fmt::print(stderr,
               "plimsoll: {} found no placement of {} within {} bytes; its best is {} bytes, the "
               "lower bound is {}; a longer --time-budget may find one\n",
               answer.planner->name, options.file, capacity, placement.footprint_bytes,
               placement.lower_bound_bytes);
  }
}

ExitCode Run(const PoolOptions& options) {
  if (options.planner != "all" && place::FindPlanner(options.planner) == nullptr) {
    throw CLI::ValidationError(
        "--planner", fmt::format("there is no planner \"{}\"; \"plimsoll planners\" lists them",
                                 options.planner));
  }
  if (options.planner == "all" && options.output) {
    throw CLI::ValidationError("--output", "wants one planner, not all of them");
  }
  // Not a number is neither below nor above anything.
  if (!(options.time_budget_seconds >= 0 && options.time_budget_seconds <= kLongestBudget)) {
    throw CLI::ValidationError("--time-budget", "must be a number of seconds, up to a year");
  }
  const Bytes capacity = options.capacity ? ParseSizeOption("--capacity", *options.capacity) : -1;
  const PoolInput input = ReadInput(options);
  const std::vector<PoolAnswer> answers = AskAll(input, options, capacity);
  for (const PoolAnswer& answer : answers) {
    if (answer.violations.empty()) continue;
    throw Error(fmt::format("the placement of {} is not valid, which is a bug: {}",
                            answer.planner->name, answer.violations.front().message));
  }
  // The output comes first: if it cannot be written, nothing is printed.
  const PoolAnswer& last = answers.back();
  if (options.output && last.fits) {
    WriteFileWhole(*options.output, place::FormatCsv(input.problem, &last.placement.offsets));
  }
  if (options.json) {
    Json rows = Json::array();
    for (const PoolAnswer& answer : answers) rows.push_back(ToJson(input, answer, capacity));
    fmt::print("{}\n", (options.planner == "all" ? rows : rows.front()).dump(2));
  } else {
    PrintPlacements(input, answers);
    if (options.draw) {
      fmt::print("\nthe arena over time, by {}\n{}", last.planner->name,
                 report::DrawArena(input.problem, last.placement.offsets, {}));
    }
  }
  if (std::any_of(answers.begin(), answers.end(), [](const PoolAnswer& a) { return a.fits; })) {
    return ExitCode::kDone;
  }
  ExplainMisfit(options, last, capacity);
  return ExitCode::kNoAnswer;
}

}  // namespace

void AddPoolCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("pool", "Place every variable of an iteration in one arena");
  auto options = std::make_shared<PoolOptions>();
  command->add_option("FILE", options->file, "Trace, SINGA event log or minimalloc CSV")
      ->required();
  command->add_option("--planner", options->planner, "Planner by name, or all")
      ->capture_default_str();
  command->add_option("--capacity", options->capacity,
                      "Stop at the first placement within this size, such as 512MiB");
  command
      ->add_option("--time-budget", options->time_budget_seconds,
                   "Seconds after which the best placement so far is taken")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command->add_option("--alignment", options->alignment,
                      "Of every offset; default 512 for traces, the file's own for CSV");
  command->add_option("--seed", options->seed, "For the restarts of the search")
      ->capture_default_str();
  command->add_option("--iteration", options->iteration,
                      "Take iteration K as the file marks it instead of the steady one");
  command->add_option("-o,--output", options->output,
                      "Write the placement as minimalloc CSV with an offset column");
  command->add_flag("--draw", options->draw, "Draw the arena over time");
  command->add_flag("--json", options->json, "Print one object, or an array for all planners");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

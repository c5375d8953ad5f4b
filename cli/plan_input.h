// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_input.h"
#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/problem.h"
#include "plimsoll/planners/planner.h"

/// What `plan` and `compare` are asked, from the command line to a problem.
namespace plimsoll::cli {

/// Whose times ops take that were not recorded, unless it is said.
inline constexpr const char* kDefaultSpeed = "h200-tf32";

/// Options that they share.
struct PlanSettings {
  std::string trace;                  ///< Either this,
  ModelSettings model;                ///< or a model, of which no trace was recorded,
  std::string speed = kDefaultSpeed;  ///< with times of TraceModel().
  std::string link = "h200";
  std::optional<plan::Machine> machine;  ///< The link, if that was found out otherwise.
  std::optional<std::string> host_limit;
  std::optional<std::string> least_bytes;
  std::uint64_t seed = 1;
  double budget_seconds = 5;
  std::int64_t evaluations = 0;
  int threads = 0;  ///< 0: as many as the machine has.
};
/// Adds all of them, or all but what names the trace or the model.
void AddPlanSettings(CLI::App* command, PlanSettings* settings);
void AddPlannerSettings(CLI::App* command, PlanSettings* settings);

/// Options of commands that ask several planners at several limits. Defaults are the command's.
struct ComparisonSettings {
  PlanSettings plan;
  std::string limits;
  std::string planners;
  bool json = false;
  bool csv = false;
};
void AddComparisonSettings(CLI::App* command, const std::string& json_help,
                           ComparisonSettings* settings);

/// Returns the link of a name or of a file. Throws CLI::ValidationError and InputError.
plan::Machine SelectMachine(const std::string& link);

/// What is planned: the steady iteration, several of them if variables outlive theirs.
struct PlanInput {
  plan::Problem problem;        ///< Unrolled.
  std::uint64_t signature = 0;  ///< Of one of them.
  Bytes peak_load_bytes = 0;
  plan::Machine machine;
  planners::PlannerOptions options;  ///< All but the limit.
};

/// Reads the trace, or makes that of the model, and the link, and checks the options. Throws
/// InputError or CLI::ValidationError.
PlanInput ReadPlanInput(const PlanSettings& settings);
/// Does the same with a trace that is there already; errors name `source` as its file.
PlanInput MakePlanInput(const PlanSettings& settings, const trace::Trace& trace,
                        const std::string& source);
/// What the settings say to planners of this problem, all but the limit. Throws
/// CLI::ValidationError.
planners::PlannerOptions MakePlannerOptions(const PlanSettings& settings,
                                            const plan::Problem& problem);

/// Reads a percentage from 0% to 1000% as a fraction.
double ParsePercentage(const std::string& option, const std::string& text);
/// Reads a limit such as 60% or 4GiB; percentages are of the peak load.
Bytes ParseLimit(const std::string& option, const std::string& text, Bytes peak_load_bytes);
/// Reads a list of them, separated by commas.
std::vector<Bytes> ParseLimits(const std::string& option, const std::string& text,
                               Bytes peak_load_bytes);

const planners::Planner& ParsePlanner(const std::string& option, const std::string& name);
/// Reads a list of names, or `all`.
std::vector<const planners::Planner*> ParsePlanners(const std::string& option,
                                                    const std::string& text);

/// What `check` and `simulate` are asked about.
struct PlanFileSettings {
  std::string file;
  std::optional<std::string> trace;
  bool json = false;
};
void AddPlanFileSettings(CLI::App* command, PlanFileSettings* settings);

/// Reads the plan and, if a trace is given, throws InputError unless the plan was made for it.
plan::Plan ReadPlanFor(const std::string& path, const std::optional<std::string>& trace);

}  // namespace plimsoll::cli

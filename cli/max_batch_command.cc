// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_trace.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "cli/train_steps.h"
#include "plimsoll/base/check.h"
#include "plimsoll/planners/largest_batch.h"
#include "plimsoll/planners/smallest.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct MaxBatchOptions {
  PlanSettings plan;
  std::string limit;
  std::string planner = "joint";
  std::optional<std::string> device;
  std::optional<std::string> link;
  std::int64_t most = std::int64_t{1} << 16;
  std::int64_t steps = 0;
  bool json = false;
};

/// A batch, and what is known of it.
struct Found {
  std::int64_t batch = 0;  ///< 0 if none fits.
  double samples_per_second = 0;
  Bytes footprint_bytes = 0;
};

double PerSecond(std::int64_t batch, Nanoseconds iteration_ns) {
  return iteration_ns > 0 ? static_cast<double>(batch) * 1e9 / static_cast<double>(iteration_ns)
                          : 0;
}

/// Answers for one model under one limit; every batch is planned from its shapes.
class Finder {
 public:
  Finder(const MaxBatchOptions& options, Bytes limit_bytes)
      : options_(options), limit_bytes_(limit_bytes), model_(ReadModel(options.plan.model)) {}

  /// Returns the largest batch that the planner fits under the limit.
  Found Find(const planners::Planner& planner) {
    const auto needs = [&](std::int64_t batch) {
      const PlanInput input = Read(batch);
      if (planner.goes_to_any_length) {
        return planners::SmallestBySwapping(input.problem, input.machine, input.options);
      }
      return FootprintOrNeed(planner, input);
    };
    return Describe(planner, planners::FindLargestBatch(limit_bytes_, options_.most, needs));
  }

  /// What a batch of one needs whatever is swapped.
  Bytes SmallestLimit() {
    const PlanInput input = Read(1);
    return planners::SmallestLimit(input.problem, input.machine, input.options);
  }

  ModelInput ModelAt(std::int64_t batch) const {
    ModelInput model = model_;
    model.batch = batch;
    return model;
  }
  const ModelInput& model() const { return model_; }

 private:
  PlanInput Read(std::int64_t batch) const {
    PlanInput input =
        MakePlanInput(options_.plan, TraceModel(ModelAt(batch), options_.plan.speed), model_.name);
    input.options.limit_bytes = limit_bytes_;
    return input;
  }

  static Bytes FootprintOrNeed(const planners::Planner& planner, const PlanInput& input) {
    const planners::Outcome outcome =
        planners::MakePlan(planner, input.problem, input.machine, input.options);
    if (outcome.plan) return outcome.plan->footprint_bytes;
    // What the host lacks, no limit of the device gives.
    return outcome.misfit.host ? kMaxBytes : outcome.misfit.needed_bytes;
  }

  Found Describe(const planners::Planner& planner, std::int64_t batch) {
    if (batch == 0) return {};
    const PlanInput input = Read(batch);
    const Answer answer = Asker(input, interrupt_).Ask(planner, limit_bytes_);
    PLIMSOLL_CHECK(answer.plan.has_value(), "a batch that fits has no plan");
    return {batch, PerSecond(batch, answer.row.iteration_ns), answer.row.footprint_bytes};
  }

  const MaxBatchOptions& options_;
  const Bytes limit_bytes_;
  const ModelInput model_;
  const Interrupt interrupt_;
};

/// Says that nothing fits, and from where on something does.
ExitCode Refuse(const MaxBatchOptions& options, Bytes limit_bytes, Finder* finder) {
  const Bytes smallest = finder->SmallestLimit();
  if (options.json) {
    PrintJson({{"model", finder->model().name},
               {"limit_bytes", limit_bytes},
               {"planner", options.planner},
               {"fits", false},
               {"smallest_limit_bytes", smallest}});
  }
  fmt::print(stderr,
             "plimsoll: {} finds no plan for {} with a batch of 1 under {} bytes; the smallest "
             "limit that fits is {} bytes ({})\n",
             options.planner, finder->model().name, limit_bytes, smallest, FormatBytes(smallest));
  return ExitCode::kNoAnswer;
}

struct Answers {
  Found limited;
  Found unlimited;
  std::optional<TrainedSteps> trained;
};

void PrintAnswers(const MaxBatchOptions& options, const std::string& model, Bytes limit_bytes,
                  const Answers& answers) {
  if (options.json) {
    Json json = {{"model", model},
                 {"limit_bytes", limit_bytes},
                 {"planner", options.planner},
                 {"fits", true},
                 {"batch", answers.limited.batch},
                 {"batch_unlimited", answers.unlimited.batch},
                 {"samples_per_second", answers.trained ? answers.trained->samples_per_second
                                                        : answers.limited.samples_per_second},
                 {"samples_per_second_predicted", answers.limited.samples_per_second},
                 {"samples_per_second_unlimited", answers.unlimited.samples_per_second},
                 {"peak_footprint_bytes", answers.trained ? answers.trained->peak_footprint_bytes
                                                          : answers.limited.footprint_bytes},
                 {"speed", options.plan.speed}};
    if (answers.trained) json["planned_steps"] = answers.trained->planned_steps;
    PrintJson(json);
    return;
  }
  report::Table table({"", "batch", "samples/s", "footprint"});
  const auto add = [&](const char* what, const Found& found) {
    table.Add({what, std::to_string(found.batch), fmt::format("{:.1f}", found.samples_per_second),
               FormatBytes(found.footprint_bytes)});
  };
  add("without Plimsoll", answers.unlimited);
  add(options.planner.c_str(), answers.limited);
  if (answers.trained) {
    add("measured", {answers.limited.batch, answers.trained->samples_per_second,
                     answers.trained->peak_footprint_bytes});
  }
  fmt::print("{} under {}\n\n{}", model, FormatBytes(limit_bytes), table.Render());
  if (answers.limited.batch == options.most) {
    fmt::print("larger batches were not tried; see --most\n");
  }
}

ExitCode Run(MaxBatchOptions options) {
  const planners::Planner& planner = ParsePlanner("--planner", options.planner);
  const Bytes limit_bytes = ParseSizeOption("--limit", options.limit);
  std::optional<TrainingDevice> host;
  if (options.steps > 0 || options.device) {
    // What is to run on the host is planned for it.
    if (options.plan.speed != "measured") options.plan.speed = "host";
    host = OpenTrainingDevice({.link = options.link, .measures_costs = true});
    options.plan.machine = host->machine;
  } else if (options.link) {
    options.plan.link = *options.link;
  }
  Finder finder(options, limit_bytes);
  Answers answers;
  answers.limited = finder.Find(planner);
  if (answers.limited.batch == 0) return Refuse(options, limit_bytes, &finder);
  answers.unlimited = finder.Find(*planners::FindPlanner("none"));
  if (options.steps > 0) {
    answers.trained = TrainSteps(finder.ModelAt(answers.limited.batch), &*host, limit_bytes,
                                 options.planner, options.steps);
  }
  PrintAnswers(options, finder.model().name, limit_bytes, answers);
  return ExitCode::kDone;
}

}  // namespace

void AddMaxBatchCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("maxbatch", "Find the largest batch that trains under a memory limit");
  auto options = std::make_shared<MaxBatchOptions>();
  AddModelSettings(command, "--model", &options->plan.model);
  command->remove_option(command->get_option("--batch"));
  AddSpeedOption(command, &options->plan.speed);
  AddPlannerSettings(command, &options->plan);
  command->remove_option(command->get_option("--link"));
  command->add_option("--link", options->link,
                      "Link to the host: h200, v100, gtx1080ti or a file; default h200, or as fast "
                      "as the host is");
  command->add_option("--limit", options->limit, "Bytes on the device, such as 4GiB")->required();
  command->add_option("--planner", options->planner, "See \"plimsoll planners\"")
      ->capture_default_str();
  command
      ->add_option("--device", options->device,
                   "host: plan for the host, with its kernels' workspaces; default by --speed")
      ->check(CLI::IsMember({"host"}));
  command->add_option("--most", options->most, "Try no larger batch")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command
      ->add_option("--steps", options->steps,
                   "Train this many steps with that batch on the host, and measure; default none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

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
#include "cli/training_device.h"
#include "plimsoll/device/host_share.h"
#include "plimsoll/nn/record.h"
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
  bool limits_network = false;
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

/// Answers for one model under one limit; every batch is planned from its shapes, with the kernels
/// of a device if one is given.
class Finder {
 public:
  /// Keeps references to the options and the device. On a GPU the limit is for all that the process
  /// takes of the card, unless it is for the network alone.
  Finder(const MaxBatchOptions& options, Bytes limit_bytes, TrainingDevice* device)
      : options_(options), model_(ReadModel(options.plan.model)), device_(device) {
    network_bytes_ = limit_bytes;
    if (!is_on_gpu()) return;
    device_->library->PreferWorkspaces(WorkspaceShare(limit_bytes));
    Read(1);
    TakeOffOverhead(limit_bytes);
  }

  /// Returns the largest batch that the planner fits under the limit.
  Found Find(const planners::Planner& planner) {
    const auto needs = [&](std::int64_t batch) {
      const PlanInput input = Read(batch);
      if (!planner.goes_to_any_length) return FootprintOrNeed(planner, input);
      const Bytes smallest =
          planners::SmallestBySwapping(input.problem, input.machine, input.options);
      const bool fits = smallest <= network_bytes_ && HostHasRoomForAll(input);
      return fits || smallest > network_bytes_ ? smallest : FootprintOrNeed(planner, input);
    };
    for (std::int64_t most = options_.most; most > 0;) {
      const std::int64_t batch = planners::FindLargestBatch(network_bytes_, most, needs);
      if (batch == 0) break;
      if (const std::optional<Found> found = Describe(planner, batch)) return *found;
      most = batch - 1;
    }
    return {};
  }

  /// The same under what is left of the limit once the kernels of that batch are prepared, which
  /// takes some of the card.
  Found FindForTraining(const planners::Planner& planner, Bytes limit_bytes) {
    Found found = Find(planner);
    while (is_on_gpu() && found.batch > 0) {
      const Bytes before = network_bytes_;
      TakeOffOverhead(limit_bytes);
      if (network_bytes_ >= before) break;
      found = Find(planner);
    }
    return found;
  }

  /// Of the limit, for the network.
  Bytes network_bytes() const { return network_bytes_; }

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
  bool is_on_gpu() const { return device_ != nullptr && device_->is_gpu; }

  PlanInput Read(std::int64_t batch) const {
    const std::string& speed = options_.plan.speed;
    const nn::Program program = is_on_gpu()
                                    ? ProgramAtSpeed(ModelAt(batch), speed, device_->library.get())
                                    : ProgramAtSpeed(ModelAt(batch), speed);
    PlanInput input = MakePlanInput(options_.plan, nn::Record(program, model_.name), model_.name);
    input.options.limit_bytes = network_bytes_;
    return input;
  }

  void TakeOffOverhead(Bytes limit_bytes) {
    SettleTrainingDevice(device_);
    if (!options_.limits_network) network_bytes_ = limit_bytes - device_->overhead_bytes;
  }

  static Bytes FootprintOrNeed(const planners::Planner& planner, const PlanInput& input) {
    const planners::Outcome outcome =
        planners::MakePlan(planner, input.problem, input.machine, input.options);
    if (outcome.plan) return outcome.plan->footprint_bytes;
    // What the host lacks, no limit of the device gives.
    return outcome.misfit.host ? kMaxBytes : outcome.misfit.needed_bytes;
  }

  static bool HostHasRoomForAll(const PlanInput& input) {
    Bytes all = 0;
    for (const plan::Variable& variable : input.problem.variables) {
      all += AlignUp(variable.size_bytes, kDefaultAlignment);
    }
    return all <= input.options.host_limit_bytes;
  }

  /// Nothing if there is no plan for the batch after all.
  std::optional<Found> Describe(const planners::Planner& planner, std::int64_t batch) {
    const PlanInput input = Read(batch);
    const Answer answer = Asker(input, interrupt_).Ask(planner, network_bytes_);
    if (!answer.plan) return std::nullopt;
    return Found{batch, PerSecond(batch, answer.row.iteration_ns), answer.row.footprint_bytes};
  }

  const MaxBatchOptions& options_;
  const ModelInput model_;
  TrainingDevice* const device_;  // Null if it is planned for none.
  Bytes network_bytes_ = 0;
  const Interrupt interrupt_;
};

/// Says that nothing fits, and from where on something does.
ExitCode Refuse(const MaxBatchOptions& options, Bytes limit_bytes, Finder* finder) {
  const Bytes smallest = finder->SmallestLimit() + limit_bytes - finder->network_bytes();
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
  std::optional<Bytes> overhead_bytes;  ///< Of a GPU: what CUDA and its libraries take.
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
    if (answers.overhead_bytes) json["overhead_bytes"] = *answers.overhead_bytes;
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
  fmt::print("{} under {}", model, FormatBytes(limit_bytes));
  if (answers.overhead_bytes) {
    fmt::print(", {} {} for CUDA and its libraries", FormatBytes(*answers.overhead_bytes),
               options.limits_network ? "besides" : "of it");
  }
  fmt::print("\n\n{}", table.Render());
  if (answers.limited.batch == options.most) {
    fmt::print("larger batches were not tried; see --most\n");
  }
}

/// What batches are planned for, if not for a machine of which only the speed is known.
std::optional<TrainingDevice> OpenDevice(MaxBatchOptions* options) {
  if (options->steps == 0 && !options->device) {
    if (options->link) options->plan.link = *options->link;
    return std::nullopt;
  }
  const std::string device = options->device.value_or("host");
  if (device == "host") {
    // What is to run on the host is planned for it.
    if (options->plan.speed != "measured") options->plan.speed = "host";
  } else if (options->plan.speed == "measured" || options->plan.speed == "host") {
    throw CLI::ValidationError("--speed", options->plan.speed + " is no speed of a GPU");
  }
  // To time the kernels of every batch would take long.
  std::optional<TrainingDevice> open = OpenTrainingDevice(
      {.device = device, .link = options->link, .tunes = false, .measures_costs = true});
  options->plan.machine = open->machine;
  // What leaves the device has no more room than there is.
  if (!options->plan.host_limit) {
    options->plan.host_limit = std::to_string(device::HostShare().left_bytes());
  }
  return open;
}

ExitCode Run(MaxBatchOptions options) {
  const planners::Planner& planner = ParsePlanner("--planner", options.planner);
  const Bytes limit_bytes = ParseSizeOption("--limit", options.limit);
  std::optional<TrainingDevice> device = OpenDevice(&options);
  Finder finder(options, limit_bytes, device ? &*device : nullptr);
  Answers answers;
  // First: kernels of other batches take memory of a card, too.
  answers.unlimited = finder.Find(*planners::FindPlanner("none"));
  answers.limited = finder.FindForTraining(planner, limit_bytes);
  if (answers.limited.batch == 0) return Refuse(options, limit_bytes, &finder);
  if (options.steps > 0) {
    TrainStepsOptions train{
        .limit_bytes = finder.network_bytes(), .planner = options.planner, .steps = options.steps};
    train.host_limit_bytes = ParseSizeOption("--host-limit", *options.plan.host_limit);
    answers.trained = TrainSteps(finder.ModelAt(answers.limited.batch), train, &*device);
  }
  if (device && device->is_gpu) answers.overhead_bytes = device->overhead_bytes;
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
                   "host, cuda or cuda:N: plan for it, with its kernels' workspaces; default by "
                   "--speed")
      ->check(CheckDevice);
  command->add_flag("--limit-network", options->limits_network,
                    "On a GPU, the limit is for the network alone, and CUDA comes on top");
  command->add_option("--most", options->most, "Try no larger batch")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command
      ->add_option("--steps", options->steps,
                   "Train this many steps with that batch on the device, by default the host, and "
                   "measure; default none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

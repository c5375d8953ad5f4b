// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/live_line.h"
#include "cli/model_input.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "cli/report_subject.h"
#include "cli/run_limits.h"
#include "cli/timeline_file.h"
#include "cli/train_log.h"
#include "cli/trainee.h"
#include "cli/training_device.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/report/page.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TrainOptions {
  ModelSettings model;
  std::optional<std::string> limit;
  bool limits_network = false;
  std::string planner = "joint";
  DeviceSettings device;
  bool plain = false;
  bool waits_for_plan = false;
  bool graphs = true;
  std::optional<std::string> host_limit;
  double budget_seconds = 5;
  std::int64_t evaluations = 0;
  TraineeOptions trainee;
  std::int64_t steps = 20;
  std::int64_t evaluate_every = 0;
  std::int64_t evaluation_batches = 1;
  std::optional<std::string> load;
  std::optional<std::string> save;
  std::optional<std::string> trace_out;
  std::optional<std::string> plan_out;
  std::optional<std::string> timeline_out;
  std::optional<std::string> report;
  bool json = false;
};

/// What the overhead in the line of a step is the median of.
constexpr std::size_t kStepsShown = 101;

/// Blocks come and go at every step: what is freed is kept, and its pages need not be had anew.
void KeepFreedMemory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
}

/// A training run, from its options to its results.
class TrainingRun {
 public:
  explicit TrainingRun(const TrainOptions& options)
      : options_(options),
        planner_(ParsePlanner("--planner", options.planner)),
        open_(OpenTrainingDevice(WhatToOpen())),
        trainee_(OpenTrainee(options.model, HowToTrain(), open_)) {
    CheckOutputs();
    SetLimits();
  }

  ExitCode Train() {
    if (options_.limit && !CanFit()) return ExitCode::kNoAnswer;
    OpenDevice();
    trainee_->Begin(device_.get());
    if (options_.load) trainee_->Load(*options_.load);
    Announce();
    const Interrupt interrupt;
    while (log_.size() < options_.steps && !interrupt.requested()) Step();
    line_.End();
    if (interrupt.requested()) fmt::print(stderr, "plimsoll: interrupted\n");
    if (measures_timeline()) WriteTimeline();
    Report();
    if (options_.save) trainee_->Save(*options_.save);
    WriteFiles();
    return ExitCode::kDone;
  }

 private:
  DeviceSettings WhatToOpen() const {
    DeviceSettings device = options_.device;
    device.measures_costs = options_.limit && !options_.plain;
    return device;
  }

  /// With a limit, ops are measured by themselves on a GPU: beside copies, and with what they need
  /// just arrived, they take longer there.
  TraineeOptions HowToTrain() const {
    TraineeOptions trainee = options_.trainee;
    trainee.profiles = open_.is_gpu && options_.limit && !options_.plain;
    return trainee;
  }

  void SetLimits() {
    SettleTrainingDevice(&open_);
    // Percentages are of this peak, whichever kernels are taken in the end.
    const Bytes peak_bytes = trainee_->peak_bytes();
    const auto read = [&] {
      return ReadRunLimits(options_.limit, options_.limits_network, peak_bytes, open_);
    };
    limits_ = read();
    if (!options_.limit || options_.plain || !WeighWorkspaces(limits_, peak_bytes, &open_)) return;
    trainee_ = OpenTrainee(options_.model, HowToTrain(), open_);
    SettleTrainingDevice(&open_);
    limits_ = read();
  }

  /// Refuses at once what could not be written in the end.
  void CheckOutputs() const {
    const bool wants_plan = options_.trace_out || options_.plan_out || measures_timeline();
    if (options_.trainee.keeps_batch && options_.evaluate_every > 0) {
      throw CLI::ValidationError("--keep-batch", "leaves no batch for --evaluate-every");
    }
    if (wants_plan && ((!options_.limit && !open_.is_gpu) || options_.plain)) {
      throw CLI::ValidationError("--trace-out, --plan-out, --timeline-out, --report",
                                 "need a --limit to plan for, without --plain");
    }
    if (options_.report && !report::HasPage()) {
      throw CLI::ValidationError("--report", "this build has no HTML report: node-d3 is missing");
    }
    if ((options_.save || options_.load) && !trainee_->has_checkpoints()) {
      throw CLI::ValidationError("--save, --load", "this model has no checkpoints");
    }
  }

  /// Says so if an op by itself exceeds the limit.
  bool CanFit() {
    LargestOp largest = trainee_->largest_op();
    if (largest.size_bytes <= limits_.arena_bytes) return true;
    largest.size_bytes += limits_.limit_bytes - limits_.arena_bytes;
    if (options_.json) {
      PrintJson({{"model", trainee_->name()},
                 {"limit_bytes", limits_.limit_bytes},
                 {"fits", false},
                 {"peak_load_bytes", trainee_->peak_bytes()},
                 {"smallest_limit_bytes", largest.size_bytes}});
    }
    fmt::print(
        stderr,
        "plimsoll: a limit of {} is below what op {} needs by itself, {} ({} bytes); give at "
        "least that, or a smaller batch\n",
        FormatBytes(limits_.limit_bytes), largest.name, FormatBytes(largest.size_bytes),
        largest.size_bytes);
    return false;
  }

  void OpenDevice() {
    if (options_.plain || (!options_.limit && !open_.is_gpu)) {
      KeepFreedMemory();
      device_ = std::make_unique<exec::PlainDevice>(open_.backend.get(), limits_.arena_bytes);
      return;
    }
    exec::ManagedOptions managed;
    exec::PlanningOptions& planning = managed.watch.planning;
    planning.planner = planner_.name;
    planning.machine = open_.machine;
    planning.limit_bytes = limits_.arena_bytes;
    if (options_.host_limit) {
      planning.host_limit_bytes = ParseSizeOption("--host-limit", *options_.host_limit);
    }
    planning.seconds = options_.budget_seconds;
    planning.evaluations = options_.evaluations;
    planning.seed = options_.trainee.seed;
    managed.watch.plan_at_once = options_.evaluations > 0 || options_.waits_for_plan;
    managed.graphs = options_.graphs;
    auto device = std::make_unique<exec::ManagedDevice>(open_.backend.get(), managed);
    managed_ = device.get();
    device_ = std::move(device);
  }

  void Announce() const {
    if (options_.json) return;
    const Bytes peak = trainee_->peak_bytes();
    fmt::print("{}, peak load {}", trainee_->Describe(), FormatBytes(peak));
    if (options_.limit) {
      fmt::print(", limit {} ({:.0f} %)", FormatBytes(limits_.limit_bytes),
                 100.0 * static_cast<double>(limits_.arena_bytes) / static_cast<double>(peak));
    }
    if (open_.is_gpu) {
      fmt::print("\n{}: {} for CUDA and its libraries, {} for the network", open_.name,
                 FormatBytes(open_.overhead_bytes), FormatBytes(limits_.arena_bytes));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }

  void Step() {
    // The last one but one, so that all of its copies have been issued when it is looked at.
    const bool measures = measures_timeline() && log_.size() == options_.steps - 2;
    if (measures && managed_ != nullptr) managed_->MeasureNextIteration();
    trainee_->Prepare();
    const Stopwatch watch;
    StepRecord step;
    step.loss = trainee_->Step();
    step.ms = watch.seconds() * 1e3;
    step.NoteService(device_->stats());
    log_.Add(step);
    Show(step);
    SayWhatIsMissing();
    const bool evaluates =
        options_.evaluate_every > 0 && trainee_->steps() % options_.evaluate_every == 0;
    if (evaluates) Evaluate();
  }

  /// Of host memory, once, and again when it is known what that costs.
  void SayWhatIsMissing() {
    const std::optional<exec::HostShortage> shortage = Shortage();
    if (!shortage) return;
    std::string notice = exec::Describe(*shortage);
    if (notice == notice_) return;
    line_.End();
    fmt::print(stderr, "plimsoll: {}\n", notice);
    notice_ = std::move(notice);
  }

  std::optional<exec::HostShortage> Shortage() const {
    if (managed_ == nullptr) return std::nullopt;
    return managed_->host_shortage();
  }

  void Evaluate() {
    const std::optional<nn::Evaluation> result = trainee_->Evaluate(options_.evaluation_batches);
    if (!result) return;
    const auto rows = static_cast<double>(std::max<std::int64_t>(result->rows, 1));
    const double accuracy = static_cast<double>(result->correct) / rows;
    evaluations_.push_back(
        {{"step", trainee_->steps()}, {"loss", result->loss}, {"accuracy", accuracy}});
    if (options_.json) return;
    line_.End();
    fmt::print("held out after {} steps: loss {:.4f}, {:.1f} % right\n", trainee_->steps(),
               result->loss, 100 * accuracy);
  }

  void Show(const StepRecord& step) {
    if (options_.json) return;
    const exec::DeviceStats stats = device_->stats();
    std::string line = fmt::format("step {:>{}}/{}  loss {:.4f}  {:.1f} ms  {}", log_.size(),
                                   std::to_string(options_.steps).size(), options_.steps, step.loss,
                                   step.ms, FormatBytes(stats.footprint_bytes));
    if (managed_ != nullptr) {
      line += fmt::format(" of {}  {}", FormatBytes(limits_.arena_bytes), exec::Name(step.service));
      if (const std::optional<double> overhead = log_.MeasuredOverhead(served(), kStepsShown)) {
        line += fmt::format("  {:+.1f} %", 100 * *overhead);
      }
    }
    line_.Show(line);
  }

  /// The iteration that is, or was last, served by a plan.
  const exec::Pattern* served() const { return managed_ == nullptr ? nullptr : managed_->served(); }

  /// Of an iteration.
  std::optional<double> PredictedMs() const {
    if (served() == nullptr) return std::nullopt;
    return static_cast<double>(served()->predicted().iteration_ns) / 1e6 /
           served()->steps().problem.laps;
  }

  void WriteTimeline() {
    std::optional<sim::Timeline> measured;
    if (managed_ != nullptr) measured = managed_->TakeMeasured();
    if (!measured) {
      fmt::print(stderr,
                 "plimsoll: no iteration was served by a plan from one end to the other: "
                 "{} is not written; take more steps\n",
                 options_.timeline_out ? *options_.timeline_out : *options_.report);
      return;
    }
    if (options_.timeline_out) {
      cli::WriteTimeline(*options_.timeline_out, served()->plan(), served()->predicted(),
                         *measured);
    }
    if (options_.report) WriteReport(*measured);
  }

  void WriteReport(const sim::Timeline& measured) const {
    SubjectFacts facts;
    facts.name = trainee_->name();
    facts.metadata =
        Json({{"model", trainee_->Describe()}, {"device", options_.device.device}}).dump();
    facts.measured = measured;
    const report::Subject subject = MakeSubject(served()->plan(), facts);
    WriteFileWhole(*options_.report, report::RenderPage({&subject}, std::nullopt));
  }
  bool measures_timeline() const { return options_.timeline_out || options_.report; }

  /// A plan that is missing is no reason to lose what was trained.
  void WriteFiles() {
    if (!options_.plan_out && !options_.trace_out) return;
    if (served() == nullptr) {
      fmt::print(stderr, "plimsoll: no plan was made, so none is written; take more steps\n");
      return;
    }
    if (options_.plan_out) plan::WritePlan(served()->plan(), *options_.plan_out);
    if (!options_.trace_out) return;
    if (served()->iteration().events.empty()) {
      fmt::print(stderr,
                 "plimsoll: iterations of {} are not closed, so no trace of one is written\n",
                 trainee_->name());
      return;
    }
    trace::WriteTrace(exec::Repeat(served()->iteration(), 3), *options_.trace_out);
  }

  void Report() const {
    if (options_.json) {
      PrintJson(Results());
      return;
    }
    const double typical = log_.TypicalMs();
    fmt::print("{} steps, {:.1f} ms each ({:.1f} samples/s), peak {}", log_.size(), typical,
               1e3 * static_cast<double>(trainee_->batch()) / typical,
               FormatBytes(device_->stats().peak_footprint_bytes));
    if (const std::optional<double> predicted = PredictedOverhead(served())) {
      fmt::print("; overhead {:.1f} % predicted", 100 * *predicted);
      if (const std::optional<double> measured = log_.MeasuredOverhead(served())) {
        fmt::print(", {:.1f} % measured", 100 * *measured);
      }
    }
    fmt::print("\n");
    if (managed_ == nullptr || served() != nullptr) return;
    for (const auto& pattern : managed_->watch().patterns()) {
      if (!pattern->reason().empty()) fmt::print("not planned: {}\n", pattern->reason());
    }
  }

  Json Results() const {
    const exec::DeviceStats stats = device_->stats();
    Json losses = Json::array();
    Json times = Json::array();
    Json services = Json::array();
    for (const StepRecord& step : log_.steps()) {
      losses.push_back(step.loss);
      times.push_back(step.ms);
      services.push_back(exec::Name(step.service));
    }
    Json json = {{"model", trainee_->name()},
                 {"batch", trainee_->batch()},
                 {"device", options_.device.device},
                 {"planner", options_.planner},
                 {"steps", log_.size()},
                 {"losses", losses},
                 {"iteration_ms", log_.TypicalMs()},
                 {"step_ms", times},
                 {"services", services},
                 {"limit_bytes", options_.limit ? Json(limits_.limit_bytes) : Json(nullptr)},
                 {"peak_load_bytes", trainee_->peak_bytes()},
                 {"peak_footprint_bytes", stats.peak_footprint_bytes},
                 {"host_bytes", stats.host_bytes},
                 {"host_shortage", ToJson(Shortage())},
                 {"predicted_ms", ToJson(PredictedMs())},
                 {"overhead_predicted", ToJson(PredictedOverhead(served()))},
                 {"overhead_measured", ToJson(log_.MeasuredOverhead(served()))},
                 {"planned_iterations", stats.planned_iterations},
                 {"drifts", stats.drifts},
                 {"replans", std::max<std::int64_t>(stats.plans_made - 1, 0)},
                 {"plans", stats.plans_made},
                 {"replays", stats.replays},
                 {"copied_out_bytes", stats.copied_out_bytes},
                 {"copied_in_bytes", stats.copied_in_bytes},
                 {"graph_launches", stats.graph_launches},
                 {"evaluations", evaluations_}};
    if (open_.is_gpu) {
      json["gpu"] = {{"name", open_.name},
                     {"overhead_bytes", open_.overhead_bytes},
                     {"arena_bytes", limits_.arena_bytes},
                     {"taken_bytes", open_.taken_bytes()}};
    }
    return json;
  }

  static Json ToJson(const std::optional<exec::HostShortage>& shortage) {
    if (!shortage) return nullptr;
    const auto ms = [](Nanoseconds ns) {
      return ns == 0 ? Json(nullptr) : Json(static_cast<double>(ns) / 1e6);
    };
    return {{"asked_bytes", shortage->asked_bytes},
            {"got_bytes", shortage->got_bytes},
            {"replans", shortage->replans},
            {"lost_plan_ms", ms(shortage->lost_plan_ns)},
            {"present_plan_ms", ms(shortage->present_plan_ns)}};
  }

  static Json ToJson(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  }

  const TrainOptions& options_;
  const planners::Planner& planner_;
  TrainingDevice open_;
  RunLimits limits_;
  std::unique_ptr<exec::Device> device_;
  exec::ManagedDevice* managed_ = nullptr;
  std::unique_ptr<Trainee> trainee_;  // Goes before its device.
  LiveLine line_;
  std::string notice_;  // The last that was said.
  TrainLog log_;
  Json evaluations_ = Json::array();
};

}  // namespace

void AddTrainCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("train", "Train a network under a memory limit");
  auto options = std::make_shared<TrainOptions>();
  AddModelSettings(command, "--model", &options->model);
  command->add_option("--limit", options->limit,
                      "Bytes on the device, such as 512MiB, or 50% of the peak load; default none");
  command->add_flag("--limit-network", options->limits_network,
                    "On a GPU, the limit is for the network alone, and CUDA comes on top");
  command->add_option("--planner", options->planner, "See \"plimsoll planners\"")
      ->capture_default_str();
  AddDeviceSettings(command, &options->device);
  command->add_flag("!--no-graphs", options->graphs,
                    "On a GPU, issue planned iterations op by op instead of as a graph");
  command->add_flag("--plain", options->plain,
                    "Hold the limit as programs do without Plimsoll: fail when it is exceeded");
  command->add_option("--host-limit", options->host_limit,
                      "Bytes of host memory for what is swapped; default what is available");
  command->add_option("--budget", options->budget_seconds, "Seconds that a plan may take to make")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--evaluations", options->evaluations,
                   "How many choices a planner looks at instead, before training goes on")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  command->add_flag("--wait-for-plan", options->waits_for_plan,
                    "Train on only when the plan is there");
  command->add_flag("--keep-batch", options->trainee.keeps_batch,
                    "Train on one batch that stays on the device, to measure the device alone");
  command->add_option("--data", options->trainee.data,
                      "CIFAR-10 binary files, or a text; default synthetic data");
  command->add_option("--steps", options->steps, "Training steps")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--evaluate-every", options->evaluate_every,
                   "Steps between two passes over held-out data; 0 for none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--evaluation-batches", options->evaluation_batches, "In each such pass")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--learning-rate", options->trainee.learning_rate, "Of every step")
      ->check(CheckNumber(0, 1e6))
      ->capture_default_str();
  command->add_option("--seed", options->trainee.seed, "Of weights, data and random ops")
      ->capture_default_str();
  command->add_option("--load", options->load, "Begin with this checkpoint");
  command->add_option("--save", options->save, "Write a checkpoint here in the end");
  command->add_option("--trace-out", options->trace_out, "Write the recorded iteration here");
  command->add_option("--plan-out", options->plan_out, "Write the plan here");
  command->add_option("--timeline-out", options->timeline_out,
                      "Write when every command ran, predicted and measured, as CSV");
  command->add_option("--report", options->report,
                      "Write an HTML report of the plan and of a measured iteration here");
  command->add_flag("--json", options->json, "Print an object in the end, and nothing else");
  command->callback([options, &exit_code] { exit_code = TrainingRun(*options).Train(); });
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_input.h"
#include "cli/plan_row.h"
#include "cli/training_device.h"
#include "plimsoll/nn/cost.h"
#include "plimsoll/nn/profile.h"
#include "plimsoll/nn/record.h"
#include "plimsoll/report/table.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ProfileOptions {
  ModelSettings model;
  DeviceSettings device;
  int repeats = 3;
  std::optional<std::string> output;
  bool json = false;
};

/// All ops of a kind.
struct KindRow {
  nn::OpKind kind = nn::OpKind::kFill;
  std::int64_t count = 0;
  Nanoseconds time_ns = 0;
  double flops = 0;

  double gflops() const { return time_ns == 0 ? 0 : flops / static_cast<double>(time_ns); }
};

/// What was measured, the kinds that take longest first.
struct Measured {
  std::vector<KindRow> kinds;
  Nanoseconds iteration_ns = 0;
  std::int64_t distinct_ops = 0;
  Bytes peak_bytes = 0;  ///< Of memory while it was measured.
};

Measured SumUp(const nn::Program& program, const nn::Profiler& profiler) {
  std::array<KindRow, nn::kOpKinds> rows{};
  Measured measured;
  for (const nn::ProgramOp& op : program.ops) {
    KindRow& row = rows.at(static_cast<std::size_t>(op.spec.kind));
    row.kind = op.spec.kind;
    ++row.count;
    row.time_ns += op.kernel.expected_ns;
    row.flops += nn::FlopsOf(op.spec);
    measured.iteration_ns += op.kernel.expected_ns;
  }
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(measured.kinds),
               [](const KindRow& row) { return row.count > 0; });
  std::stable_sort(measured.kinds.begin(), measured.kinds.end(),
                   [](const KindRow& a, const KindRow& b) { return a.time_ns > b.time_ns; });
  measured.distinct_ops = profiler.measured();
  measured.peak_bytes = profiler.peak_bytes();
  return measured;
}

double ShareOf(const Measured& measured, Nanoseconds time_ns) {
  return measured.iteration_ns == 0
             ? 0
             : static_cast<double>(time_ns) / static_cast<double>(measured.iteration_ns);
}

Json ToJson(const ModelInput& model, const ProfileOptions& options, const nn::Program& program,
            const Measured& measured) {
  Json kinds = Json::array();
  for (const KindRow& row : measured.kinds) {
    kinds.push_back({{"op", nn::Name(row.kind)},
                     {"count", row.count},
                     {"time_ns", row.time_ns},
                     {"share", ShareOf(measured, row.time_ns)},
                     {"gflops_per_s", row.gflops()}});
  }
  return {{"model", model.name},
          {"batch", model.batch},
          {"device", options.device.device},
          {"ops", program.ops.size()},
          {"measured_ops", measured.distinct_ops},
          {"iteration_ns", measured.iteration_ns},
          {"peak_load_bytes", nn::Measure(program).peak},
          {"profile_bytes", measured.peak_bytes},
          {"kinds", kinds}};
}

void PrintForPeople(const ModelInput& model, const nn::Program& program, const Measured& measured) {
  const double seconds = static_cast<double>(measured.iteration_ns) / 1e9;
  fmt::print(
      "{}, batch {}: {} ops, {} of them different; {:.3f} ms an iteration, {:.1f} samples/s\n"
      "peak load {}; measured in {}\n\n",
      model.name, model.batch, program.ops.size(), measured.distinct_ops, seconds * 1e3,
      seconds > 0 ? static_cast<double>(model.batch) / seconds : 0,
      FormatBytes(nn::Measure(program).peak), FormatBytes(measured.peak_bytes));
  report::Table table({"op", "count", "time", "share", "GFLOP/s"});
  for (const KindRow& row : measured.kinds) {
    table.Add({std::string(nn::Name(row.kind)), std::to_string(row.count),
               fmt::format("{:.3f} ms", static_cast<double>(row.time_ns) / 1e6),
               fmt::format("{:.1f} %", 100 * ShareOf(measured, row.time_ns)),
               fmt::format("{:.1f}", row.gflops())});
  }
  fmt::print("{}", table.Render());
}

ExitCode Run(const ProfileOptions& options) {
  const ModelInput model = ReadModel(options.model);
  TrainingDevice device = OpenTrainingDevice(options.device);
  nn::Program program = LowerModel(model, device.library.get());
  SettleTrainingDevice(&device);
  nn::Profiler profiler(device.backend.get(), {.repeats = options.repeats});
  nn::SetTimes(nn::Profile(program, &profiler), &program);
  if (options.output) trace::WriteTrace(nn::Record(program, model.name), *options.output);
  const Measured measured = SumUp(program, profiler);
  if (options.json) {
    PrintJson(ToJson(model, options, program, measured));
  } else {
    PrintForPeople(model, program, measured);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddProfileCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "profile", "Measure the ops of a network one by one, also if it does not fit");
  auto options = std::make_shared<ProfileOptions>();
  AddModelSettings(command, "--model", &options->model);
  AddDeviceSettings(command, &options->device);
  command->remove_option(command->get_option("--link"));
  command->add_option("--repeats", options->repeats, "Runs of each op; the fastest counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "Write the trace with these times here; compressed if it ends in .gz");
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

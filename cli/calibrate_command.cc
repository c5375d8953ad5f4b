// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/plan_row.h"
#include "cli/training_device.h"
#include "plimsoll/base/file.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CalibrateOptions {
  DeviceSettings device;
  std::optional<std::string> output;
  bool json = false;
};

/// As docs/formats.md has it; what planners do not know is for people.
Json ToJson(const plan::Machine& machine, const exec::Interference& interference) {
  return {{"name", machine.name},
          {"out_bytes_per_s", machine.out_bytes_per_s},
          {"in_bytes_per_s", machine.in_bytes_per_s},
          {"both_out_bytes_per_s", machine.both_out_bytes_per_s},
          {"both_in_bytes_per_s", machine.both_in_bytes_per_s},
          {"out_latency_ns", machine.out_latency_ns},
          {"in_latency_ns", machine.in_latency_ns},
          {"slowdown_by_out", machine.slowdown_by_out},
          {"slowdown_by_in", machine.slowdown_by_in},
          {"handover_ns", machine.handover_ns},
          {"compute_slowdown_by_copies", interference.compute_slowdown},
          {"out_slowdown_by_compute", interference.out_slowdown},
          {"in_slowdown_by_compute", interference.in_slowdown}};
}

void PrintForPeople(const TrainingDevice& device, const exec::Interference& interference) {
  const plan::Machine& machine = device.machine;
  const auto microseconds = [](Nanoseconds ns) { return static_cast<double>(ns) / 1e3; };
  fmt::print(
      "{}: out {:.2f} GB/s, in {:.2f} GB/s; both at once {:.2f} and {:.2f} GB/s\n"
      "latency of a copy: {:.1f} us out, {:.1f} us in\n",
      device.name, machine.out_bytes_per_s / 1e9, machine.in_bytes_per_s / 1e9,
      machine.both_out_bytes_per_s / 1e9, machine.both_in_bytes_per_s / 1e9,
      microseconds(machine.out_latency_ns), microseconds(machine.in_latency_ns));
  if (machine.slows_ops() || machine.handover_ns > 0) {
    fmt::print(
        "ops take {:.3f} times as long beside a copy out, {:.3f} beside a copy in; one that waits "
        "for a copy loses {:.1f} us\n",
        machine.slowdown_by_out, machine.slowdown_by_in, microseconds(machine.handover_ns));
  }
  fmt::print(
      "beside copies both ways, kernels take {:.2f} times as long, and copies "
      "{:.2f} (out) and {:.2f} (in) times\n",
      interference.compute_slowdown, interference.out_slowdown, interference.in_slowdown);
}

ExitCode Run(const CalibrateOptions& options) {
  DeviceSettings settings = options.device;
  settings.measures_costs = true;
  TrainingDevice device = OpenTrainingDevice(settings);  // Measures the link.
  const exec::Interference interference =
      exec::MeasureInterference(device.backend.get(), device.make_traffic);
  device.machine.name = device.name;
  const Json json = ToJson(device.machine, interference);
  if (options.output) {
    FileReplacer file(*options.output);
    file.Write(json.dump(2) + "\n");
    file.Commit();
  }
  if (options.json) {
    PrintJson(json);
  } else {
    PrintForPeople(device, interference);
    if (options.output) {
      fmt::print("written to {}; give it to planners as --link {}\n", *options.output,
                 *options.output);
    }
  }
  return ExitCode::kDone;
}

}  // namespace

void AddCalibrateCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measure the link between a device and the host, for planners");
  auto options = std::make_shared<CalibrateOptions>();
  AddDeviceSettings(command, &options->device);
  for (const char* other : {"--link", "--reproducible", "--no-tf32"}) {
    command->remove_option(command->get_option(other));
  }
  command->add_option("-o,--output", options->output, "Write a machine file here");
  command->add_flag("--json", options->json, "Print an object");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

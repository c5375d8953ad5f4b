// SPDX-License-Identifier: Apache-2.0
//
// Do iterations take the time that plans predict? Trains five networks at three limits over a
// throttled link and compares planned steps with the simulator, and their overhead over the sum of
// the ops' times with the predicted one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/measure_link.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/program.h"
#include "plimsoll/nn/trainer.h"

namespace {

using namespace plimsoll;  // NOLINT(google-build-using-namespace)

constexpr int kSteps = 14;

struct Subject {
  const char* model;
  std::int64_t batch;
  nn::ModelOptions options;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

/// Times of steps in milliseconds, once they are served as they will be.
std::vector<double> TimeSteps(exec::Device* device, nn::KernelLibrary* library,
                              const nn::Network& network, nn::DataKind kind, std::int64_t batch) {
  nn::Trainer trainer(device, library, network, {.batch = batch});
  const auto data = nn::MakeSyntheticData(network, kind, 1);
  std::vector<double> times;
  for (int k = 0; k < kSteps; ++k) {
    const nn::Batch samples = data->TrainBatch(k, batch);
    const Stopwatch watch;
    trainer.Step(samples);
    if (k >= 5) times.push_back(watch.seconds() * 1e3);
  }
  return times;
}

device::HostOptions WithLink(double bytes_per_s) {
  return {.out_bytes_per_s = bytes_per_s, .in_bytes_per_s = bytes_per_s};
}

/// The throttled link, with what copies over it cost the ops beside them, as `train` measures it.
plan::Machine MeasureMachine(double bytes_per_s) {
  plan::Machine machine = {.name = "throttled",
                           .out_bytes_per_s = bytes_per_s,
                           .in_bytes_per_s = bytes_per_s,
                           .both_out_bytes_per_s = bytes_per_s,
                           .both_in_bytes_per_s = bytes_per_s};
  device::HostBackend backend(WithLink(bytes_per_s));
  const exec::Costs costs = exec::MeasureCosts(&backend, nn::MakeHostTraffic, machine);
  exec::CountCosts(costs, &machine);
  exec::SlowCopies(costs, &machine);
  return machine;
}

void Compare(const Subject& subject, const plan::Machine& machine) {
  const nn::Model model = nn::FindModel(subject.model);
  const nn::Network network = model.build(subject.options);
  const auto library = nn::MakeOneDnnLibrary();
  const Bytes peak = nn::Measure(nn::Lower(network, {.batch = subject.batch}, library.get())).peak;
  for (const int percent : {80, 60, 50}) {
    device::HostBackend plain_backend;
    exec::PlainDevice plain(&plain_backend);
    const double unlimited_ms =
        Median(TimeSteps(&plain, library.get(), network, model.data, subject.batch));
    device::HostBackend backend(WithLink(machine.out_bytes_per_s));
    exec::ManagedOptions options;
    options.watch.planning.limit_bytes = peak * percent / 100;
    options.watch.planning.machine = machine;
    options.watch.planning.evaluations = 2000;
    options.watch.plan_at_once = true;
    options.watch.recordings = 3;
    exec::ManagedDevice device(&backend, options);
    const double measured_ms =
        Median(TimeSteps(&device, library.get(), network, model.data, subject.batch));
    if (device.served() == nullptr) {
      fmt::print("{:<14} {:>5} %  no plan\n", subject.model, percent);
      continue;
    }
    const double ops_ms =
        static_cast<double>(device.served()->steps().problem.iteration_ns()) / 1e6;
    const double predicted_ms =
        static_cast<double>(device.served()->predicted().iteration_ns) / 1e6;
    fmt::print(
        "{:<14} {:>5} % {:>13.2f} {:>10.2f} {:>12.2f} {:>11.2f} {:>7.3f} {:>10.1f} {:>9.1f}\n",
        subject.model, percent, unlimited_ms, ops_ms, predicted_ms, measured_ms,
        measured_ms / predicted_ms, 100 * (predicted_ms / ops_ms - 1),
        100 * (measured_ms / ops_ms - 1));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const double bytes_per_s = argc > 1 ? std::atof(argv[1]) * 1e9 : 0.5e9;
  if (bytes_per_s < plan::kSlowestBytesPerS) {
    fmt::print(stderr, "usage: predictions [GB_PER_S]\n");
    return 2;
  }
  const std::vector<Subject> subjects = {
      {"resnet20", 64, {}},
      {"vgg11-cifar", 64, {}},
      {"densenet121", 4, {.image_size = 64}},
      {"unet", 2, {.image_size = 128, .width_divisor = 2}},
      {"gpt2-small",
       4,
       {.classes = 1000, .sequence_length = 64, .width_divisor = 4, .depth_divisor = 2}},
  };
  const plan::Machine machine = MeasureMachine(bytes_per_s);
  fmt::print(
      "link {:.2f} GB/s each way; ops take {:.2f} times as long beside a copy out, {:.2f} times "
      "beside a\ncopy in, and lose {:.0f} us where they wait for one; times in ms, overheads in "
      "percent of the sum of op times\n",
      bytes_per_s / 1e9, machine.slowdown_by_out, machine.slowdown_by_in,
      static_cast<double>(machine.handover_ns) / 1e3);
  fmt::print("{:<14} {:>7} {:>13} {:>10} {:>12} {:>11} {:>7} {:>10} {:>9}\n", "network", "limit",
             "unlimited run", "ops", "predicted", "measured", "ratio", "predicted", "measured");
  for (const Subject& subject : subjects) Compare(subject, machine);
  return 0;
}

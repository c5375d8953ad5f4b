// SPDX-License-Identifier: Apache-2.0
//
// Does anything grow? Trains a small network under a limit for many iterations, and shows at ever
// later times the process's resident memory, host memory for copies, plans, and how iterations were
// served.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/nn/data.h"
#include "plimsoll/nn/models/model.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/program.h"
#include "plimsoll/nn/trainer.h"

namespace {

using namespace plimsoll;  // NOLINT(google-build-using-namespace)

/// Resident bytes of this process.
Bytes ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  Bytes pages = 0;
  Bytes resident = 0;
  file >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t iterations = argc > 1 ? std::atoll(argv[1]) : 100'000;
  if (iterations < 10) {
    fmt::print(stderr, "usage: endurance [ITERATIONS]; at least 10\n");
    return 2;
  }
  const nn::Network network = nn::FindModel("lenet").build({.image_size = 20, .width_divisor = 8});
  const auto library = nn::MakeOneDnnLibrary();
  const nn::Program program = nn::Lower(network, {.batch = 2}, library.get());
  device::HostBackend backend;
  exec::ManagedOptions options;
  options.watch.planning.limit_bytes = nn::Measure(program).peak * 7 / 10;
  options.watch.planning.machine = plan::FindMachine("v100").value();
  options.watch.planning.evaluations = 100;
  options.watch.plan_at_once = true;
  exec::ManagedDevice device(&backend, options);
  nn::Trainer trainer(&device, library.get(), network, {.batch = 2, .learning_rate = 0.001F});
  const auto data = nn::MakeSyntheticData(network, nn::DataKind::kImages, 1);
  fmt::print("{:>10}  {:>14}  {:>12}  {:>10}  {:>10}  {:>7}  {:>6}\n", "iteration",
             "resident bytes", "host bytes", "arena used", "planned", "drifts", "plans");
  for (std::int64_t k = 1; k <= iterations; ++k) {
    trainer.Step(data->TrainBatch(k, 2));
    // Now and then something else, so that service changes too.
    if (k % 97 == 0) trainer.Evaluate(data->TestBatch(k, 2));
    if (k % (iterations / 10) != 0) continue;
    const exec::DeviceStats stats = device.stats();
    fmt::print("{:>10}  {:>14}  {:>12}  {:>10}  {:>10}  {:>7}  {:>6}\n", k, ResidentBytes(),
               stats.host_bytes, stats.footprint_bytes, stats.planned_iterations, stats.drifts,
               stats.plans_made);
  }
  return 0;
}

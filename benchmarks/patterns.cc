// SPDX-License-Identifier: Apache-2.0
//
// What if iterations are not all alike? Trains with stochastic depth, whose patterns hardly recur,
// with an evaluation every few steps, and with a batch that alternates, each under a limit and
// without. Shows for every kind of iteration how it was served and what that took, and whether
// every loss is that of the run without a limit, bit for bit.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
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

struct Workload {
  const char* name;
  const char* model;
  std::int64_t batch;
  std::int64_t other_batch;     ///< Of every second step.
  std::int64_t evaluate_every;  ///< 0 for never.
};

struct Iteration {
  std::string kind;
  exec::Service service;
  double ms;
  float loss;
};

std::vector<Iteration> Train(const Workload& workload, const nn::Model& model,
                             const nn::Network& network, nn::KernelLibrary* library,
                             exec::Device* device, std::int64_t steps) {
  nn::Trainer trainer(device, library, network, {.batch = workload.batch, .learning_rate = 0.01F});
  const auto data = nn::MakeSyntheticData(network, model.data, 1);
  std::vector<Iteration> iterations;
  const auto run = [&](const std::string& kind, const auto& function) {
    const Stopwatch watch;
    const float loss = function();
    iterations.push_back({kind, device->stats().service, watch.seconds() * 1e3, loss});
  };
  for (std::int64_t k = 0; k < steps; ++k) {
    const std::int64_t size = k % 2 == 0 ? workload.batch : workload.other_batch;
    const nn::Batch batch = data->TrainBatch(k, size);
    run(fmt::format("train {}", size), [&] { return trainer.Step(batch); });
    if (workload.evaluate_every == 0 || (k + 1) % workload.evaluate_every != 0) continue;
    const nn::Batch held_out = data->TestBatch(k, workload.batch);
    run("evaluate", [&] { return trainer.Evaluate(held_out).loss; });
  }
  return iterations;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void Print(const Workload& workload, const std::vector<Iteration>& unlimited,
           const std::vector<Iteration>& limited) {
  std::map<std::string, std::vector<double>> plain;
  std::map<std::pair<std::string, exec::Service>, std::vector<double>> served;
  for (const Iteration& one : unlimited) plain[one.kind].push_back(one.ms);
  for (const Iteration& one : limited) served[{one.kind, one.service}].push_back(one.ms);
  for (const auto& [key, times] : served) {
    const double plain_ms = Median(plain[key.first]);
    fmt::print("{:<17} {:<9} {:<10} {:>5} {:>9.2f} {:>13.2f} {:>6.2f}\n", workload.name, key.first,
               exec::Name(key.second), times.size(), Median(times), plain_ms,
               Median(times) / plain_ms);
  }
}

/// Returns whether the losses are the same.
bool Compare(const Workload& workload, int percent, std::int64_t steps) {
  const nn::Model model = nn::FindModel(workload.model);
  const nn::Network network = model.build({});
  const auto library = nn::MakeOneDnnLibrary();
  // What is freed is kept, as `train` does it: its pages need not be had anew.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  device::HostBackend plain_backend;
  exec::PlainDevice plain(&plain_backend);
  const auto unlimited = Train(workload, model, network, library.get(), &plain, steps);

  const Bytes peak = nn::Measure(nn::Lower(network, {.batch = workload.batch}, library.get())).peak;
  device::HostBackend backend;
  exec::ManagedOptions options;
  options.watch.planning.limit_bytes = peak * percent / 100;
  options.watch.planning.machine = exec::MeasureLink(&backend);
  options.watch.planning.evaluations = 500;
  options.watch.plan_at_once = true;
  exec::ManagedDevice device(&backend, options);
  const auto limited = Train(workload, model, network, library.get(), &device, steps);
  Print(workload, unlimited, limited);
  const bool same = std::equal(
      unlimited.begin(), unlimited.end(), limited.begin(), limited.end(),
      [](const Iteration& a, const Iteration& b) { return a.kind == b.kind && a.loss == b.loss; });
  const exec::DeviceStats stats = device.stats();
  fmt::print("{:<17} {} iterations, {} plans, {} drifts; peak {} of {}; losses {}\n", "",
             limited.size(), stats.plans_made, stats.drifts,
             FormatBytes(stats.peak_footprint_bytes), FormatBytes(stats.limit_bytes),
             same ? "those of the run without a limit" : "DIFFER");
  return same;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 40;
  const int percent = argc > 2 ? std::atoi(argv[2]) : 60;
  if (steps < 1 || percent < 1) {
    fmt::print(stderr, "usage: patterns [STEPS [PERCENT]]\n");
    return 2;
  }
  const std::vector<Workload> workloads = {
      {"stochastic depth", "sd-resnet110", 8, 8, 0},
      {"evaluations", "resnet20", 32, 32, 4},
      {"two batches", "resnet20", 32, 24, 0},
  };
  fmt::print("limit {} % of the peak load at the larger batch; times are medians\n", percent);
  fmt::print("{:<17} {:<9} {:<10} {:>5} {:>9} {:>13} {:>6}\n", "", "iteration", "served", "count",
             "ms", "unlimited ms", "ratio");
  bool same = true;
  for (const Workload& workload : workloads) same = Compare(workload, percent, steps) && same;
  return same ? 0 : 1;
}

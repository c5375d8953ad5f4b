// SPDX-License-Identifier: Apache-2.0
//
// Runs of the toy network under a limit, to be compared with one without. For tests only.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/random_for_test.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"
#include "plimsoll/exec/toy_network_for_test.h"

namespace plimsoll::exec {

/// Results of every step, and all that lives on at the end.
struct Numbers {
  std::vector<std::uint64_t> steps;
  std::vector<std::uint64_t> persistent;
  friend bool operator==(const Numbers&, const Numbers&) = default;
};

inline Numbers Train(Device* device, const ToyOptions& options, const std::vector<ToyStep>& steps) {
  Numbers numbers;
  ToyNetwork network(device, options);
  if (options.marks) device->EndIteration("train");
  for (const ToyStep& step : steps) numbers.steps.push_back(network.Step(step));
  numbers.persistent = network.ReadPersistent();
  network.Finish();
  return numbers;
}

struct Reference {
  Numbers numbers;
  Bytes peak_bytes = 0;
};

inline Reference TrainPlainly(const ToyOptions& options, const std::vector<ToyStep>& steps) {
  device::HostBackend backend;
  PlainDevice device(&backend);
  Reference reference;
  reference.numbers = Train(&device, options, steps);
  reference.peak_bytes = device.stats().peak_live_bytes;
  return reference;
}

/// Over the first, some copies are worth their time, and so are some replays; over the second,
/// replays are, however slow the ops of this build.
inline constexpr double kSomeLink = 2e8;
inline constexpr double kSlowLink = 1e4;

inline ManagedOptions At(Bytes limit_bytes, double bytes_per_s = kSomeLink) {
  ManagedOptions options;
  options.watch.planning.limit_bytes = limit_bytes;
  options.watch.planning.machine = {.name = "test",
                                    .out_bytes_per_s = bytes_per_s,
                                    .in_bytes_per_s = bytes_per_s,
                                    .both_out_bytes_per_s = bytes_per_s,
                                    .both_in_bytes_per_s = bytes_per_s};
  options.watch.planning.evaluations = 20;
  options.watch.plan_at_once = true;
  options.ledger = true;
  return options;
}

/// Steps that differ from the usual at random.
inline std::vector<ToyStep> EventfulSteps(std::uint64_t seed, int count, int layers) {
  TestRandom random(seed);
  std::vector<ToyStep> steps(static_cast<std::size_t>(count));
  for (std::size_t k = 6; k < steps.size(); ++k) {
    if (random.OneIn(5)) steps[k].skips = static_cast<int>(random.Between(1, layers - 1));
    if (random.OneIn(6)) steps[k].evaluates = true;
    if (random.OneIn(6)) steps[k].scale = 2;
  }
  for (std::size_t k = 0; k + 1 < steps.size(); ++k) {
    steps[k].next = steps[k + 1].evaluates ? "evaluate" : "train";
  }
  return steps;
}

}  // namespace plimsoll::exec

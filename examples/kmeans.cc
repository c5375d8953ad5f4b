// SPDX-License-Identifier: Apache-2.0
//
// k-means under a memory limit: a program that is no network, and that does not say where its
// iterations end. New centroids are new blocks, so that some outlive their iteration.
#include "plimsoll/nn/kmeans.h"

#include <cstdio>
#include <vector>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"

int main() {
  constexpr int kIterations = 20;
  const plimsoll::nn::KMeansOptions points{.points = 20'000, .features = 8, .clusters = 12};
  plimsoll::device::HostBackend backend;

  plimsoll::exec::PlainDevice plain(&backend);
  std::vector<double> expected;
  plimsoll::nn::KMeans reference(&plain, points);
  for (int k = 0; k < kIterations; ++k) expected.push_back(reference.Iterate());

  plimsoll::exec::ManagedOptions options;
  options.watch.planning.limit_bytes = plain.stats().peak_live_bytes + (1 << 16);
  options.watch.planning.machine = plimsoll::plan::FindMachine("v100").value();
  options.watch.planning.seconds = 0.1;
  options.watch.plan_at_once = true;
  plimsoll::exec::ManagedDevice device(&backend, options);
  std::vector<double> distances;
  {
    plimsoll::nn::KMeans clusters(&device, points);
    for (int k = 0; k < kIterations; ++k) distances.push_back(clusters.Iterate());
  }
  const plimsoll::exec::DeviceStats stats = device.stats();
  std::printf("mean squared distance %g at first, %g in the end; %lld iterations by a plan; %s\n",
              distances.front(), distances.back(), static_cast<long long>(stats.planned_iterations),
              distances == expected ? "bit for bit as without a limit" : "NOT THE SAME");
  return distances == expected && stats.planned_iterations > 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// A training loop of your own under a memory limit.
//
// The program allocates blocks and runs functions on them. It never sees an address but inside a
// function, so that Plimsoll may keep blocks elsewhere, or make them again. The same loop runs
// twice here, without a limit and under one, and ends in the same numbers.
#include <cmath>
#include <cstdio>
#include <vector>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/exec/managed_device.h"
#include "plimsoll/exec/plain_device.h"

namespace {

using plimsoll::Bytes;
using plimsoll::exec::Block;
using plimsoll::exec::Device;
using plimsoll::exec::Launch;

constexpr int kLayers = 24;
constexpr int kWidth = 1 << 16;  // Numbers in an activation.
constexpr int kSteps = 30;
constexpr Bytes kBytes = kWidth * Bytes{sizeof(float)};

const float* In(const Launch& launch, int k) {
  return reinterpret_cast<const float*>(launch.reads[static_cast<std::size_t>(k)]);
}
float* Out(const Launch& launch, int k) {
  return reinterpret_cast<float*>(launch.writes[static_cast<std::size_t>(k)]);
}

/// Runs a function of blocks that may be run again: it gives the same bits each time.
void Run(Device& device, const char* name, std::vector<Block> reads, std::vector<Block> writes,
         plimsoll::exec::Function function) {
  device.Exec({.name = name, .traits = {.replayable = true}}, reads, writes, std::move(function));
}

/// Layers y = tanh(w x), element by element, that learn to turn ones into a target of one half.
std::vector<float> Train(Device& device) {
  std::vector<Block> weights;
  const std::vector<float> start(kWidth, 0.9F);
  for (int k = 0; k < kLayers; ++k) {
    weights.push_back(device.Malloc(kBytes));
    device.Write(weights.back(), start.data(), kBytes);
  }
  std::vector<float> losses;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Block> x = {device.Malloc(kBytes)};
    Run(device, "ones", {}, {x[0]}, [](const Launch& l) {
      for (int i = 0; i < kWidth; ++i) Out(l, 0)[i] = 1;
    });
    for (int k = 0; k < kLayers; ++k) {
      x.push_back(device.Malloc(kBytes));
      Run(device, "forward", {x[x.size() - 2], weights[static_cast<std::size_t>(k)]}, {x.back()},
          [](const Launch& l) {
            for (int i = 0; i < kWidth; ++i) Out(l, 0)[i] = std::tanh(In(l, 1)[i] * In(l, 0)[i]);
          });
    }
    const Block gradient = device.Malloc(kBytes);
    const Block loss = device.Malloc(sizeof(float));
    Run(device, "loss", {x.back()}, {gradient, loss}, [](const Launch& l) {
      float sum = 0;
      for (int i = 0; i < kWidth; ++i) {
        const float error = In(l, 0)[i] - 0.5F;
        Out(l, 0)[i] = error;
        sum += error * error;
      }
      *Out(l, 1) = sum / kWidth;
    });
    losses.push_back(0);
    device.Read(loss, &losses.back(), sizeof(float));
    device.Free(loss);
    for (int k = kLayers - 1; k >= 0; --k) {
      const Block w = weights[static_cast<std::size_t>(k)];
      // y, x, w and the gradient of y make that of x, and the weights move.
      Run(device, "backward",
          {x[static_cast<std::size_t>(k) + 1], x[static_cast<std::size_t>(k)], w, gradient},
          {gradient, w}, [](const Launch& l) {
            for (int i = 0; i < kWidth; ++i) {
              const float slope = In(l, 3)[i] * (1 - In(l, 0)[i] * In(l, 0)[i]);
              const float weight = In(l, 2)[i];
              Out(l, 1)[i] = weight - 0.5F * slope * In(l, 1)[i];
              Out(l, 0)[i] = slope * weight;
            }
          });
      device.Free(x[static_cast<std::size_t>(k) + 1]);
    }
    device.Free(x[0]);
    device.Free(gradient);
    // Optional: iterations are found without it, too.
    device.EndIteration();
  }
  for (const Block w : weights) device.Free(w);
  return losses;
}

}  // namespace

int main() {
  plimsoll::device::HostBackend backend;
  plimsoll::exec::PlainDevice plain(&backend);
  const std::vector<float> expected = Train(plain);
  const Bytes peak = plain.stats().peak_live_bytes;

  plimsoll::exec::ManagedOptions options;
  options.watch.planning.limit_bytes = peak * 6 / 10;
  options.watch.planning.machine = plimsoll::plan::FindMachine("v100").value();
  options.watch.planning.seconds = 0.2;
  plimsoll::exec::ManagedDevice device(&backend, options);
  const std::vector<float> losses = Train(device);
  const plimsoll::exec::DeviceStats stats = device.stats();

  std::printf("%s without a limit, %s under one: %lld of %lld iterations by a plan\n",
              plimsoll::FormatBytes(peak).c_str(),
              plimsoll::FormatBytes(stats.peak_footprint_bytes).c_str(),
              static_cast<long long>(stats.planned_iterations),
              static_cast<long long>(stats.iterations));
  std::printf("loss %g at first, %g in the end; %s\n", static_cast<double>(losses.front()),
              static_cast<double>(losses.back()),
              losses == expected ? "bit for bit the same in both runs" : "NOT THE SAME");
  return losses == expected && stats.peak_footprint_bytes <= options.watch.planning.limit_bytes ? 0
                                                                                                : 1;
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/device/backend.h"
#include "plimsoll/exec/measure_link.h"
#include "plimsoll/nn/op.h"
#include "plimsoll/plan/machine.h"

/// What networks are trained on: the host, or a GPU if this program knows of any.
namespace plimsoll::cli {

struct DeviceSettings {
  std::string device = "host";      ///< Or "cuda", or "cuda:1".
  std::optional<std::string> link;  ///< On the host, the link to model; on a GPU, its calibration.
  bool reproducible = false;        ///< On a GPU: the same bits in every run.
  bool tf32 = true;                 ///< On a GPU: whether products of floats may round to TF32.
  bool tunes = true;                ///< On a GPU: whether kernels are timed and the fastest taken.
  /// On the host, whether to measure what copies and ops cost each other, which takes a second. On
  /// a GPU what copies cost ops is always measured.
  bool measures_costs = false;
};
/// Of "--device": returns what is wrong with it, or nothing.
std::string CheckDevice(const std::string& text);
/// "--device", "--link", and what is about GPUs.
void AddDeviceSettings(CLI::App* command, DeviceSettings* settings);

/// A device that is open.
struct TrainingDevice {
  std::unique_ptr<device::Backend> backend;
  std::unique_ptr<nn::KernelLibrary> library;
  plan::Machine machine;
  bool is_gpu = false;
  std::string name;                    ///< "host", or what the card is called.
  std::function<Bytes()> taken_bytes;  ///< By this process, of the card; on a GPU.
  Bytes overhead_bytes = 0;            ///< That the process takes of the card besides the arena.
  exec::MakeTraffic make_traffic;      ///< For exec::MeasureCosts() and MeasureInterference().
};

/// Throws DeviceError if there is no such device, or none that works.
TrainingDevice OpenTrainingDevice(const DeviceSettings& settings);

/// Of a limit, workspaces are to be no more than this.
constexpr Bytes WorkspaceShare(Bytes limit_bytes) { return std::max<Bytes>(limit_bytes, 0) / 16; }

/// Gives back what preparing kernels has taken of the card, and measures what the process takes.
/// Called when all kernels are prepared, before the arena is there.
void SettleTrainingDevice(TrainingDevice* device);

}  // namespace plimsoll::cli

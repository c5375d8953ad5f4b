// SPDX-License-Identifier: Apache-2.0
#include "cli/training_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plan_input.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/host_backend.h"
#include "plimsoll/nn/onednn/library.h"
#ifdef PLIMSOLL_HAS_CUDA
#include "plimsoll/cuda/cuda_backend.h"
#include "plimsoll/cuda/devices.h"
#include "plimsoll/cuda/library.h"
#endif

namespace plimsoll::cli {
namespace {

/// What CUDA takes later, little by little: code that is loaded when it first runs, graphs. Some 30
/// MiB were seen.
constexpr Bytes kReserve = Bytes{64} << 20;
/// No context takes less.
constexpr Bytes kLeastTaken = Bytes{64} << 20;

/// Nothing where the device is too full to measure: then plans take copies to be free.
exec::Costs MeasureCosts(const TrainingDevice& device) {
  try {
    return exec::MeasureCosts(device.backend.get(), device.make_traffic, device.machine);
  } catch (const OutOfMemory&) {
    return {};
  }
}

/// A link to model is no faster than the host itself.
void HoldTo(const plan::Machine& link, plan::Machine* host) {
  host->name = link.name;
  host->out_latency_ns = std::max(host->out_latency_ns, link.out_latency_ns);
  host->in_latency_ns = std::max(host->in_latency_ns, link.out_latency_ns);
  host->out_bytes_per_s = std::min(host->out_bytes_per_s, link.out_bytes_per_s);
  host->in_bytes_per_s = std::min(host->in_bytes_per_s, link.in_bytes_per_s);
  // The backend has no notion of directions that disturb each other more than the host's do.
  host->both_out_bytes_per_s = std::min(host->both_out_bytes_per_s, link.out_bytes_per_s);
  host->both_in_bytes_per_s = std::min(host->both_in_bytes_per_s, link.in_bytes_per_s);
}

TrainingDevice OpenHostDevice(const DeviceSettings& settings) {
  TrainingDevice host;
  host.name = "host";
  host.library = nn::MakeOneDnnLibrary();
  host.make_traffic = nn::MakeHostTraffic;
  host.backend = std::make_unique<device::HostBackend>();
  host.machine = exec::MeasureLink(host.backend.get());
  if (settings.link) {
    const plan::Machine link = SelectMachine(*settings.link);
    HoldTo(link, &host.machine);
    host.backend = std::make_unique<device::HostBackend>(
        device::HostOptions{.out_bytes_per_s = link.out_bytes_per_s,
                            .in_bytes_per_s = link.in_bytes_per_s,
                            .latency_ns = link.out_latency_ns});
  }
  if (settings.measures_costs) {
    const exec::Costs costs = MeasureCosts(host);
    exec::CountCosts(costs, &host.machine);
    exec::SlowCopies(costs, &host.machine);
  }
  return host;
}

#ifdef PLIMSOLL_HAS_CUDA
TrainingDevice OpenGpu(const DeviceSettings& settings) {
  const int number = settings.device == "cuda" ? 0 : std::stoi(settings.device.substr(5));
  auto card = std::make_shared<cuda::CardMemory>(number);
  TrainingDevice gpu;
  gpu.is_gpu = true;
  gpu.backend = std::make_unique<cuda::CudaBackend>(cuda::CudaOptions{.device = number});
  gpu.name = cuda::ListDevices().at(static_cast<std::size_t>(number)).name;
  gpu.library = cuda::MakeCudaLibrary({.reproducible = settings.reproducible,
                                       .tune = settings.tunes,
                                       .tf32_matmul = settings.tf32,
                                       .tf32_convolutions = settings.tf32});
  gpu.make_traffic = [](std::byte* memory, Bytes size_bytes) {
    return cuda::MemoryTraffic(memory, size_bytes, 16);
  };
  if (settings.link) {
    gpu.machine = SelectMachine(*settings.link);
  } else {
    gpu.machine = exec::MeasureLink(gpu.backend.get());
    exec::CountCosts(MeasureCosts(gpu), &gpu.machine);
  }
  gpu.taken_bytes = [card] { return card->taken_bytes(); };
  return gpu;
}
#else
TrainingDevice OpenGpu(const DeviceSettings&) {
  throw DeviceError("opening the GPU",
                    "this plimsoll was built without CUDA; build it where nvcc and cuDNN are, or "
                    "train with --device host");
}
#endif

}  // namespace

std::string CheckDevice(const std::string& text) {
  if (text == "host" || text == "cuda") return {};
  const bool is_number = text.starts_with("cuda:") && text.size() > 5 && text.size() < 9 &&
                         text.find_first_not_of("0123456789", 5) == std::string::npos;
  return is_number ? std::string() : "should be host, cuda, or cuda: and a number";
}

void AddDeviceSettings(CLI::App* command, DeviceSettings* settings) {
  command
      ->add_option("--device", settings->device, "host, cuda, or cuda:N; see \"plimsoll devices\"")
      ->check(CheckDevice)
      ->capture_default_str();
  command->add_option("--link", settings->link,
                      "On the host, copy no faster than this link: h200, v100, gtx1080ti or a "
                      "file; on a GPU, plan for it");
  command->add_flag("!--no-tf32", settings->tf32,
                    "On a GPU, products and convolutions in full floats instead of TF32");
  command->add_flag("--reproducible", settings->reproducible,
                    "On a GPU, only kernels that give the same bits in every run");
}

TrainingDevice OpenTrainingDevice(const DeviceSettings& settings) {
  if (settings.device == "host") return OpenHostDevice(settings);
  return OpenGpu(settings);
}

void SettleTrainingDevice(TrainingDevice* device) {
  if (!device->is_gpu) return;
  device->library->ReleaseScratch();
  const Bytes taken = device->taken_bytes();
  // It is the difference of what the whole card had taken before and has now.
  if (taken < kLeastTaken) {
    throw DeviceError("measuring what CUDA takes of " + device->name,
                      fmt::format("{} bytes cannot be all of it: another program gave memory back "
                                  "meanwhile, so that the limit could not be held; start again",
                                  taken));
  }
  device->overhead_bytes = taken + kReserve;
}

}  // namespace plimsoll::cli

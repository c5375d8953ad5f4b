// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/cuda/devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "plimsoll/base/error.h"
#include "plimsoll/cuda/check.h"
#include "plimsoll/cuda/delay_internal.h"

namespace plimsoll::cuda {
namespace {

std::string Version(int number) {
  return number == 0 ? "none" : fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

/// The few calls that are needed of NVML, the driver's own library. It may be missing, and toolkits
/// come without its header.
class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_LAZY), &Close) {
    if (library_ == nullptr) return;
    const auto init = Find<int (*)()>("nvmlInit_v2");
    find_ = Find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    memory_ = Find<int (*)(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
    usable_ = init != nullptr && find_ != nullptr && memory_ != nullptr && init() == 0;
  }

  /// What is taken of a card by everybody; -1 if it is not known.
  Bytes UsedBytes(int device) const {
    char bus[32] = "";
    void* handle = nullptr;
    Memory memory{};
    if (!usable_ || cudaDeviceGetPCIBusId(bus, sizeof(bus), device) != cudaSuccess) return -1;
    if (find_(bus, &handle) != 0 || memory_(handle, &memory) != 0) return -1;
    return static_cast<Bytes>(memory.used);
  }

 private:
  struct Memory {
    unsigned long long total, free, used;
  };

  static void Close(void* library) {
    if (library != nullptr) ::dlclose(library);
  }
  template <typename Function>
  Function Find(const char* name) {
    return reinterpret_cast<Function>(::dlsym(library_.get(), name));
  }

  std::unique_ptr<void, void (*)(void*)> library_;
  int (*find_)(const char*, void**) = nullptr;
  int (*memory_)(void*, Memory*) = nullptr;
  bool usable_ = false;
};

const Nvml& TheNvml() {
  static const Nvml nvml;
  return nvml;
}

}  // namespace

std::vector<DeviceInfo> ListDevices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice) return {};
  if (status == cudaErrorInsufficientDriver && ReadVersions().driver == "none") return {};
  Check(status, "looking for GPUs");
  std::vector<DeviceInfo> devices;
  for (int k = 0; k < count; ++k) {
    cudaDeviceProp properties{};
    Check(cudaGetDeviceProperties(&properties, k), "asking a GPU for its properties");
    DeviceInfo info{.number = k,
                    .name = properties.name,
                    .total_bytes = static_cast<Bytes>(properties.totalGlobalMem),
                    .major = properties.major,
                    .minor = properties.minor,
                    .multiprocessors = properties.multiProcessorCount};
    const Bytes used = TheNvml().UsedBytes(k);
    info.free_bytes = used < 0 ? info.total_bytes : std::max<Bytes>(info.total_bytes - used, 0);
    devices.push_back(info);
  }
  return devices;
}

Versions ReadVersions() {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const std::size_t cudnn = cudnnGetVersion();
  return {Version(driver), Version(runtime),
          fmt::format("{}.{}.{}", cudnn / 10000, cudnn % 10000 / 100, cudnn % 100)};
}

CardMemory::CardMemory(int device) : device_(device), before_(TheNvml().UsedBytes(device)) {}

Bytes CardMemory::taken_bytes() const {
  if (before_ >= 0) {
    const Bytes now = TheNvml().UsedBytes(device_);
    if (now >= 0) return now - before_;
  }
  // As if the card were ours.
  std::size_t free = 0;
  std::size_t total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return static_cast<Bytes>(total - free);
}

std::function<void(void*)> MemoryTraffic(std::byte* memory, Bytes size_bytes, int rounds) {
  return [=](void* native_stream) {
    LaunchTraffic(memory, size_bytes, rounds, static_cast<cudaStream_t>(native_stream));
  };
}

}  // namespace plimsoll::cuda

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "cli/plan_row.h"
#include "plimsoll/base/error.h"
#include "plimsoll/report/table.h"
#ifdef PLIMSOLL_HAS_CUDA
#include "plimsoll/cuda/devices.h"
#endif

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What there is, and why there is no more.
struct Found {
  Json devices = Json::array();
  Json cuda = Json::object();
  std::string note;
};

Json Host() {
  const Bytes page = ::sysconf(_SC_PAGESIZE);
  return {{"device", "host"},
          {"name", fmt::format("{} threads", std::thread::hardware_concurrency())},
          {"total_bytes", page * ::sysconf(_SC_PHYS_PAGES)},
          {"free_bytes", page * ::sysconf(_SC_AVPHYS_PAGES)}};
}

#ifdef PLIMSOLL_HAS_CUDA
void AddGpus(Found* found) {
  const cuda::Versions versions = cuda::ReadVersions();
  found->cuda = {{"built", true},
                 {"driver", versions.driver},
                 {"runtime", versions.runtime},
                 {"cudnn", versions.cudnn}};
  try {
    for (const cuda::DeviceInfo& gpu : cuda::ListDevices()) {
      found->devices.push_back({{"device", fmt::format("cuda:{}", gpu.number)},
                                {"name", gpu.name},
                                {"total_bytes", gpu.total_bytes},
                                {"free_bytes", gpu.free_bytes},
                                {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                                {"multiprocessors", gpu.multiprocessors}});
    }
    if (found->devices.size() == 1) {
      found->note = fmt::format("no GPU: the driver is {}", versions.driver == "none"
                                                                ? std::string("missing")
                                                                : "for CUDA " + versions.driver);
    }
  } catch (const DeviceError& error) {
    found->note = error.what();
  }
}
#else
void AddGpus(Found* found) {
  found->cuda = {{"built", false}};
  found->note = "GPUs: this program was built without CUDA";
}
#endif

void PrintDevices(bool json) {
  Found found;
  found.devices.push_back(Host());
  AddGpus(&found);
  if (json) {
    PrintJson({{"devices", found.devices}, {"cuda", found.cuda}, {"note", found.note}});
    return;
  }
  report::Table table({"device", "name", "memory", "free"});
  table.Left(1);
  for (const Json& device : found.devices) {
    table.Add({device["device"], device["name"], FormatBytes(device["total_bytes"].get<Bytes>()),
               FormatBytes(device["free_bytes"].get<Bytes>())});
  }
  fmt::print("{}", table.Render());
  if (found.cuda.contains("driver")) {
    fmt::print("CUDA: driver {}, runtime {}, cuDNN {}\n", found.cuda["driver"].get<std::string>(),
               found.cuda["runtime"].get<std::string>(), found.cuda["cudnn"].get<std::string>());
  }
  if (!found.note.empty()) fmt::print("{}\n", found.note);
}

}  // namespace

void AddDevicesCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List what networks can be trained on");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print an object");
  command->callback([json, &exit_code] {
    PrintDevices(*json);
    exit_code = ExitCode::kDone;
  });
}

}  // namespace plimsoll::cli

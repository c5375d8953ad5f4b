// SPDX-License-Identifier: Apache-2.0
#include "cli/model_trace.h"

#include <memory>
#include <vector>

#include "plimsoll/device/host_backend.h"
#include "plimsoll/nn/cost.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/onednn/library.h"
#include "plimsoll/nn/profile.h"
#include "plimsoll/nn/record.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kMeasured = "measured";
constexpr const char* kHost = "host";

}  // namespace

void AddSpeedOption(CLI::App* command, std::string* speed) {
  std::vector<std::string> names;
  for (const nn::MachineSpeed& machine : nn::MachineSpeeds()) names.push_back(machine.name);
  names.emplace_back(kMeasured);
  command
      ->add_option("--speed", *speed,
                   "How long ops take: as shapes say for this machine, or as measured on the host")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

nn::Program ProgramAtSpeed(const ModelInput& model, const std::string& speed) {
  if (speed != kMeasured && speed != kHost) {
    nn::NullLibrary library(nn::FindMachineSpeed(speed));
    return LowerModel(model, &library);
  }
  const std::unique_ptr<nn::KernelLibrary> library = nn::MakeOneDnnLibrary();
  if (speed == kHost) return ProgramAtSpeed(model, speed, library.get());
  nn::Program program = LowerModel(model, library.get());
  device::HostBackend backend;
  nn::Profiler profiler(&backend);
  nn::SetTimes(nn::Profile(program, &profiler), &program);
  return program;
}

nn::Program ProgramAtSpeed(const ModelInput& model, const std::string& speed,
                           nn::KernelLibrary* library) {
  nn::Program program = LowerModel(model, library);
  for (nn::ProgramOp& op : program.ops) {
    op.kernel.expected_ns = nn::ExpectedTime(op.spec, nn::FindMachineSpeed(speed));
  }
  return program;
}

trace::Trace TraceModel(const ModelInput& model, const std::string& speed) {
  return nn::Record(ProgramAtSpeed(model, speed), model.name);
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "cli/model_input.h"
#include "plimsoll/trace/trace.h"

/// From a model straight to a trace: nothing is recorded, and the model need not fit.
namespace plimsoll::cli {

/// Where the times of ops come from: a machine of nn::MachineSpeeds(), or "measured".
void AddSpeedOption(CLI::App* command, std::string* speed);

/// Returns the program of a model with the times of its ops: by the cost model from their shapes,
/// or measured on the host, one by one (nn/profile.h). What is for the host has the workspaces of
/// the host's kernels; other machines' programs have none, and fuse and group ops as those do.
nn::Program ProgramAtSpeed(const ModelInput& model, const std::string& speed);

/// The same with the kernels of a library, and so with their workspaces. REQUIRES: the speed is not
/// "measured".
nn::Program ProgramAtSpeed(const ModelInput& model, const std::string& speed,
                           nn::KernelLibrary* library);

/// Returns the trace of that program's iterations.
trace::Trace TraceModel(const ModelInput& model, const std::string& speed);

}  // namespace plimsoll::cli

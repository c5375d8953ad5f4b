// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

/// The contract of the command line: data on stdout, messages on stderr, progress on stderr and
/// only if that is a terminal, and one of the exit codes below.
namespace plimsoll::cli {

enum class ExitCode : int {
  kDone = 0,
  kNoAnswer = 1,  ///< The question was understood; the answer is no: it does not fit.
  kBadUsage = 2,
  kBadInput = 3,
  kFailure = 4,
};

// Each adds one subcommand; it runs when parsed and leaves its exit code behind.
void AddTraceCommand(CLI::App& app, ExitCode& exit_code);
void AddPoolCommand(CLI::App& app, ExitCode& exit_code);
void AddChainCommand(CLI::App& app, ExitCode& exit_code);
void AddPlanCommand(CLI::App& app, ExitCode& exit_code);
void AddCheckCommand(CLI::App& app, ExitCode& exit_code);
void AddSimulateCommand(CLI::App& app, ExitCode& exit_code);
void AddCompareCommand(CLI::App& app, ExitCode& exit_code);
void AddCurveCommand(CLI::App& app, ExitCode& exit_code);
void AddPlannersCommand(CLI::App& app, ExitCode& exit_code);
void AddModelsCommand(CLI::App& app, ExitCode& exit_code);
void AddProfileCommand(CLI::App& app, ExitCode& exit_code);
void AddMaxBatchCommand(CLI::App& app, ExitCode& exit_code);
void AddReportCommand(CLI::App& app, ExitCode& exit_code);
void AddTrainCommand(CLI::App& app, ExitCode& exit_code);
void AddDevicesCommand(CLI::App& app, ExitCode& exit_code);
void AddCalibrateCommand(CLI::App& app, ExitCode& exit_code);
void AddGenerateCommand(CLI::App& app, ExitCode& exit_code);

}  // namespace plimsoll::cli

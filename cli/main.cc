// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/command.h"
#include "plimsoll/base/error.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 no answer (it does not fit), 2 bad usage, 3 bad input, 4 failure.\n"
    "Files may be gzip-compressed. Formats and --json keys: docs/formats.md, docs/cli.md.";

ExitCode Run(int argc, char** argv) {
  CLI::App app{
      "Plimsoll plans the memory of neural-network training: reads a recorded trace, finds its "
      "iteration, decides what is swapped or recomputed under a limit, and places every buffer."};
  app.name("plimsoll");
  app.set_version_flag("--version", "plimsoll " PLIMSOLL_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  ExitCode exit_code = ExitCode::kDone;
  AddTraceCommand(app, exit_code);
  AddPoolCommand(app, exit_code);
  AddChainCommand(app, exit_code);
  AddPlanCommand(app, exit_code);
  AddCheckCommand(app, exit_code);
  AddSimulateCommand(app, exit_code);
  AddCompareCommand(app, exit_code);
  AddCurveCommand(app, exit_code);
  AddPlannersCommand(app, exit_code);
  AddModelsCommand(app, exit_code);
  AddProfileCommand(app, exit_code);
  AddMaxBatchCommand(app, exit_code);
  AddReportCommand(app, exit_code);
  AddTrainCommand(app, exit_code);
  AddDevicesCommand(app, exit_code);
  AddCalibrateCommand(app, exit_code);
  AddGenerateCommand(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Prints help and version to stdout, everything else to stderr with a hint.
    return app.exit(error) == 0 ? ExitCode::kDone : ExitCode::kBadUsage;
  } catch (const InputError& error) {
    fmt::print(stderr, "plimsoll: {}\n", error.what());
    return ExitCode::kBadInput;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "plimsoll: this machine has too little memory for that\n");
    return ExitCode::kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plimsoll: {}\n", error.what());
    return ExitCode::kFailure;
  }
  return exit_code;
}

}  // namespace
}  // namespace plimsoll::cli

int main(int argc, char** argv) {
  using plimsoll::cli::ExitCode;
  ExitCode exit_code = plimsoll::cli::Run(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::perror("plimsoll: cannot write to standard output");
    exit_code = ExitCode::kFailure;
  }
  return static_cast<int>(exit_code);
}

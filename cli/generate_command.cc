// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/input.h"
#include "plimsoll/base/file.h"
#include "plimsoll/place/csv.h"
#include "plimsoll/place/generate.h"
#include "plimsoll/trace/generate.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::cli {
namespace {

struct GenerateOptions {
  std::string output = "-";
  trace::GenerateOptions network;
  std::string scale = "1MiB";
  place::StackOptions stack;
  std::string peak = "1GiB";
};

void Write(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else {
    WriteFileWhole(path, text);
  }
}

void AddNetwork(CLI::App* command, const std::shared_ptr<GenerateOptions>& options) {
  CLI::App* network =
      command->add_subcommand("network", "A trace of training a made-up network (docs/formats.md)");
  trace::GenerateOptions& o = options->network;
  network->add_option("--seed", o.seed, "Equal seeds give equal traces")->capture_default_str();
  network->add_option("--layers", o.layers, "Layers of the network")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  network->add_option("--iterations", o.iterations, "Recorded iterations")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  network->add_option("--scale", options->scale, "Size of the largest activations, up to 1TiB")
      ->capture_default_str();
  network->add_flag("--differing-first", o.differing_first, "The first iteration does more");
  network->add_flag("--differing-last", o.differing_last, "The last iteration is an evaluation");
  network->add_flag("--stochastic", o.stochastic, "No two iterations are alike");
  network->add_flag("--rotating", o.rotating,
                    "One variable is freed only after its successor was made");
  network
      ->add_option("-o,--output", options->output,
                   "File to write, - for standard output; .gz compresses")
      ->capture_default_str();
  network->callback([options] {
    constexpr Bytes kLargestScale = Bytes{1} << 40;
    options->network.scale_bytes = ParseSizeOption("--scale", options->scale);
    if (options->network.scale_bytes < 1 || options->network.scale_bytes > kLargestScale) {
      throw CLI::ValidationError("--scale", "must be from 1 byte to 1TiB");
    }
    const trace::Trace trace = trace::GenerateTrace(options->network);
    if (options->output == "-") {
      fmt::print("{}", trace::FormatTrace(trace));
    } else {
      trace::WriteTrace(trace, options->output);
    }
  });
}

void AddStack(CLI::App* command, const std::shared_ptr<GenerateOptions>& options) {
  CLI::App* stack = command->add_subcommand(
      "stack", "A placement problem of stack-like buffers with a fixed peak load (CSV)");
  place::StackOptions& o = options->stack;
  stack->add_option("--seed", o.seed, "Equal seeds give equal problems")->capture_default_str();
  stack->add_option("--count", o.count, "Buffers")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  stack->add_option("--peak", options->peak, "Peak load")->capture_default_str();
  stack->add_option("--alignment", o.alignment, "Of every size and offset")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  stack
      ->add_option("-o,--output", options->output,
                   "File to write, - for standard output; .gz compresses")
      ->capture_default_str();
  stack->callback([options] {
    place::StackOptions& s = options->stack;
    s.peak_bytes = ParseSizeOption("--peak", options->peak);
    if (s.peak_bytes < s.alignment || s.peak_bytes % s.alignment != 0) {
      throw CLI::ValidationError(
          "--peak", fmt::format("must be a positive multiple of the alignment, {}", s.alignment));
    }
    Write(options->output, place::FormatCsv(place::GenerateStack(s)));
  });
}

}  // namespace

void AddGenerateCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("generate", "Make synthetic traces and placement problems");
  command->require_subcommand(1);
  auto options = std::make_shared<GenerateOptions>();
  AddNetwork(command, options);
  AddStack(command, options);
  command->callback([&exit_code] { exit_code = ExitCode::kDone; });
}

}  // namespace plimsoll::cli

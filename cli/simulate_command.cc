// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "cli/timeline_file.h"
#include "plimsoll/base/check.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/report/table.h"
#include "plimsoll/sim/simulate.h"
#include "plimsoll/sim/stalls.h"

namespace plimsoll::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kStallsShown = 10;

std::string Describe(const plan::Plan& plan, plan::CommandIndex index) {
  if (index < 0) return "nothing";
  const plan::Command& command = plan.commands[static_cast<std::size_t>(index)];
  if (command.queue == plan::Queue::kCompute) {
    const plan::Op& op = plan.problem.ops[static_cast<std::size_t>(command.op)];
    return fmt::format("op {} ({})", command.op,
                       plan.problem.op_names[static_cast<std::size_t>(op.name)]);
  }
  const plan::Residency& residency = plan.residencies[static_cast<std::size_t>(command.residency)];
  const auto variable = static_cast<std::size_t>(residency.variable);
  return fmt::format("{} of variable {}, {}", plan::Name(command.queue), variable,
                     FormatBytes(plan.problem.variables[variable].size_bytes));
}

Json ToJson(const plan::Plan& plan, const sim::Usage& usage) {
  Json busy;
  for (int q = 0; q < plan::kQueues; ++q) {
    busy[std::string(plan::Name(static_cast<plan::Queue>(q)))] =
        usage.busy_ns[static_cast<std::size_t>(q)] / plan.problem.laps;
  }
  Json stalls = Json::array();
  for (const sim::Stall& stall : usage.stalls) {
    stalls.push_back({{"start_ns", stall.start_ns},
                      {"length_ns", stall.length_ns},
                      {"command", Describe(plan, stall.command)},
                      {"awaited", Describe(plan, stall.awaited)}});
  }
  return {{"busy_ns", busy}, {"stall_ns", usage.stall_ns / plan.problem.laps}, {"stalls", stalls}};
}

void PrintUsage(const plan::Plan& plan, const sim::Usage& usage, Nanoseconds iteration_ns) {
  const auto milliseconds = [](Nanoseconds ns) {
    return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
  };
  const auto share = [&](Nanoseconds ns) {
    const double whole = static_cast<double>(iteration_ns > 0 ? iteration_ns : 1);
    return fmt::format("{:.1f} %", 100 * static_cast<double>(ns) / whole);
  };
  report::Table queues({"queue", "busy", "of the iteration"});
  for (int q = 0; q < plan::kQueues; ++q) {
    const Nanoseconds busy = usage.busy_ns[static_cast<std::size_t>(q)];
    queues.Add({std::string(plan::Name(static_cast<plan::Queue>(q))),
                milliseconds(busy / plan.problem.laps), share(busy)});
  }
  queues.Add(
      {"compute stalls", milliseconds(usage.stall_ns / plan.problem.laps), share(usage.stall_ns)});
  fmt::print("\n{}", queues.Render());
  if (usage.stalls.empty()) return;
  report::Table stalls({"longest stalls", "at", "waits", "for"});
  stalls.Left(3);
  for (const sim::Stall& stall : usage.stalls) {
    stalls.Add({Printable(Describe(plan, stall.command)), milliseconds(stall.start_ns),
                milliseconds(stall.length_ns), Printable(Describe(plan, stall.awaited))});
  }
  fmt::print("\n{}", stalls.Render());
}

/// A command that was not as predicted.
struct Difference {
  plan::CommandIndex command = 0;
  Nanoseconds predicted_ns = 0;  ///< How long it takes.
  Nanoseconds measured_ns = 0;

  Nanoseconds size() const { return std::abs(measured_ns - predicted_ns); }
};

/// What was measured beside what is predicted.
struct Comparison {
  Nanoseconds predicted_ns = 0;  ///< Of an iteration.
  Nanoseconds measured_ns = 0;
  std::array<Nanoseconds, plan::kQueues> predicted_busy_ns{};
  std::array<Nanoseconds, plan::kQueues> measured_busy_ns{};
  std::vector<Difference> largest{};

  double ratio() const {
    return static_cast<double>(measured_ns) /
           static_cast<double>(std::max<Nanoseconds>(predicted_ns, 1));
  }
};

Comparison Compare(const plan::Plan& plan, const sim::Timeline& predicted,
                   const sim::Timeline& measured) {
  Comparison comparison{.predicted_ns = predicted.iteration_ns / plan.problem.laps,
                        .measured_ns = measured.iteration_ns / plan.problem.laps};
  for (std::size_t c = 0; c < plan.commands.size(); ++c) {
    const auto length = [c](const sim::Timeline& timeline) {
      return timeline.spans[c].end_ns - timeline.spans[c].start_ns;
    };
    const auto queue = static_cast<std::size_t>(plan.commands[c].queue);
    comparison.predicted_busy_ns[queue] += length(predicted) / plan.problem.laps;
    comparison.measured_busy_ns[queue] += length(measured) / plan.problem.laps;
    comparison.largest.push_back(
        {static_cast<plan::CommandIndex>(c), length(predicted), length(measured)});
  }
  std::stable_sort(comparison.largest.begin(), comparison.largest.end(),
                   [](const Difference& a, const Difference& b) { return a.size() > b.size(); });
  comparison.largest.resize(std::min(comparison.largest.size(), kStallsShown));
  return comparison;
}

Json ToJson(const plan::Plan& plan, const Comparison& comparison) {
  Json busy;
  for (int q = 0; q < plan::kQueues; ++q) {
    busy[std::string(plan::Name(static_cast<plan::Queue>(q)))] =
        comparison.measured_busy_ns[static_cast<std::size_t>(q)];
  }
  Json largest = Json::array();
  for (const Difference& difference : comparison.largest) {
    largest.push_back({{"command", Describe(plan, difference.command)},
                       {"predicted_ns", difference.predicted_ns},
                       {"measured_ns", difference.measured_ns}});
  }
  return {{"measured_iteration_ns", comparison.measured_ns},
          {"measured_over_predicted", comparison.ratio()},
          {"measured_busy_ns", busy},
          {"differences", largest}};
}

void PrintComparison(const plan::Plan& plan, const Comparison& comparison) {
  const auto milliseconds = [](Nanoseconds ns) {
    return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
  };
  report::Table sums({"", "predicted", "measured"});
  sums.Add(
      {"iteration", milliseconds(comparison.predicted_ns), milliseconds(comparison.measured_ns)});
  for (int q = 0; q < plan::kQueues; ++q) {
    const auto k = static_cast<std::size_t>(q);
    sums.Add({fmt::format("{} busy", plan::Name(static_cast<plan::Queue>(q))),
              milliseconds(comparison.predicted_busy_ns[k]),
              milliseconds(comparison.measured_busy_ns[k])});
  }
  fmt::print("\nmeasured {:+.1f} % on predicted\n\n{}", 100 * (comparison.ratio() - 1),
             sums.Render());
  report::Table largest({"largest differences", "predicted", "measured"});
  for (const Difference& difference : comparison.largest) {
    largest.Add({Printable(Describe(plan, difference.command)),
                 milliseconds(difference.predicted_ns), milliseconds(difference.measured_ns)});
  }
  fmt::print("\n{}", largest.Render());
}

ExitCode Run(const PlanFileSettings& options, const std::optional<std::string>& measured_file) {
  const plan::Plan plan = ReadPlanFor(options.file, options.trace);
  const std::vector<plan::PlanViolation> violations = plan::CheckPlan(plan, 1);
  if (!violations.empty()) {
    fmt::print(stderr, "plimsoll: {} is not a valid plan: {}; \"plimsoll check\" says more\n",
               options.file, Printable(violations.front().message));
    return ExitCode::kNoAnswer;
  }
  const sim::Timeline timeline = sim::Simulate(plan);
  PLIMSOLL_CHECK(!timeline.deadlocked, "a valid plan deadlocks");
  const PlanRow row = DescribePlan(plan, timeline);
  const sim::Usage usage = sim::MeasureUsage(plan, timeline, kStallsShown);
  std::optional<Comparison> comparison;
  if (measured_file) {
    comparison = Compare(plan, timeline, ReadMeasuredTimeline(*measured_file, plan));
  }
  if (options.json) {
    Json json = ToJson(row);
    json.update(ToJson(plan, usage));
    if (comparison) json.update(ToJson(plan, *comparison));
    PrintJson(json);
  } else {
    PrintTable({row}, plan.machine.name);
    PrintUsage(plan, usage, timeline.iteration_ns);
    if (comparison) PrintComparison(plan, *comparison);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddSimulateCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("simulate", "Predict the time of a plan, and its stalls");
  auto options = std::make_shared<PlanFileSettings>();
  auto measured = std::make_shared<std::optional<std::string>>();
  AddPlanFileSettings(command, options.get());
  command->add_option("--measured", *measured,
                      "Compare with what \"plimsoll train --timeline-out\" wrote for this plan");
  command->callback([options, measured, &exit_code] { exit_code = Run(*options, *measured); });
}

}  // namespace plimsoll::cli

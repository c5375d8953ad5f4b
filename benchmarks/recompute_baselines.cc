// SPDX-License-Identifier: Apache-2.0
//
// What do the planners cost that others have for recomputation? For every trace and a few limits,
// the overhead of each in percent, beside `joint` and two that only swap, every plan proved; then
// how low a limit each can meet; then what their papers claim, and whether it holds.
//
//   recompute_baselines [--seconds S] [--link NAME] TRACE...
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/trace/reader.h"
#include "recompute_baselines/measured.h"

namespace plimsoll::recompute_baselines {
namespace {

/// With what heads its column.
struct Column {
  const char* planner;
  const char* head;
};
constexpr std::array<Column, 10> kColumns = {{{"joint", "joint"},
                                              {"memonger", "memonger"},
                                              {"superneurons", "superneurons"},
                                              {"superneurons-swap", "-swap"},
                                              {"superneurons-recompute", "-recompute"},
                                              {"capuchin", "capuchin"},
                                              {"dtr", "dtr"},
                                              {"checkpoint-blocks", "blocks"},
                                              {"vdnn-all", "vdnn-all"},
                                              {"autoswap-swdoa", "swdoa"}}};

std::string NameOf(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

double ForwardPercent(const plan::Problem& problem) {
  Nanoseconds forward_ns = 0;
  for (const plan::Op& op : problem.ops) {
    if (op.phase == trace::Phase::kForward) forward_ns += op.duration_ns;
  }
  return 100 * static_cast<double>(forward_ns) / static_cast<double>(problem.iteration_ns());
}

std::optional<double> Overhead(const planners::Outcome& outcome, const plan::Problem& problem) {
  if (!outcome.plan) return std::nullopt;
  return 100 * (static_cast<double>(outcome.timeline.iteration_ns) /
                    static_cast<double>(problem.iteration_ns()) -
                1);
}

/// One trace, and a planner to ask.
struct Case {
  const planners::Planner& planner;
  const plan::Problem& problem;
  const plan::Machine& machine;
  Bytes peak_bytes;
  double seconds;

  std::optional<double> OverheadAt(int percent) const {
    planners::PlannerOptions options;
    options.time_budget_seconds = seconds;
    options.limit_bytes = peak_bytes / 100 * percent;
    return Overhead(planners::MakePlan(planner, problem, machine, options), problem);
  }

  /// The lowest limit that fits, in whole percents, by bisection.
  int LowestPercent() const {
    int fits = 101;
    for (int fails = 0; fails + 1 < fits;) {
      const int middle = (fails + fits) / 2;
      (OverheadAt(middle) ? fits : fails) = middle;
    }
    return fits;
  }
};

Measured Measure(const std::string& path, const plan::Machine& machine, double seconds) {
  const plan::Problem recorded = plan::MakeProblem(trace::ReadTrace(path));
  const plan::Problem problem = plan::ProblemToPlan(recorded);
  const Bytes peak = plan::ProfileLoad(recorded).peak_bytes;
  Measured measured{.trace = NameOf(path), .forward_percent = ForwardPercent(problem)};
  for (const Column& column : kColumns) {
    const planners::Planner& planner = *planners::FindPlanner(column.planner);
    const Case one{planner, problem, machine, peak, seconds};
    Overheads& overheads = measured.overheads[column.planner];
    for (std::size_t k = 0; k < kPercents.size(); ++k) overheads[k] = one.OverheadAt(kPercents[k]);
    if (!planner.goes_to_any_length) measured.lowest[column.planner] = one.LowestPercent();
  }
  return measured;
}

std::string Cell(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.1f}", *percent) : "-";
}

void PrintTable(const Measured& measured) {
  fmt::print("\n{} (forward {:.1f} %)\n{:>8}", measured.trace, measured.forward_percent, "limit");
  for (const Column& column : kColumns) fmt::print("  {:>12}", column.head);
  fmt::print("\n");
  for (std::size_t k = 0; k < kPercents.size(); ++k) {
    fmt::print("{:>6} %", kPercents[k]);
    for (const Column& column : kColumns) {
      fmt::print("  {:>12}", Cell(measured.overheads.at(column.planner)[k]));
    }
    fmt::print("\n");
  }
  fmt::print("{:>8}", "lowest");
  for (const Column& column : kColumns) {
    const auto lowest = measured.lowest.find(column.planner);
    const bool is_known = lowest != measured.lowest.end() && lowest->second <= 100;
    fmt::print("  {:>12}", is_known ? fmt::format("{} %", lowest->second) : "");
  }
  fmt::print("\n");
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  double seconds = 2;
  std::string link = "h200";
  std::vector<std::string> paths;
  bool known = true;  // Whether all options are.
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (argument == "--link" && i + 1 < argc) {
      link = argv[++i];
    } else if (argument.starts_with("--")) {
      known = false;
    } else {
      paths.emplace_back(argument);
    }
  }
  const std::optional<plan::Machine> machine = plan::FindMachine(link);
  if (!known || paths.empty() || !(seconds > 0) || !machine) {
    fmt::print(stderr, "usage: recompute_baselines [--seconds S] [--link NAME] TRACE...\n");
    return 2;
  }
  fmt::print(
      "overhead in percent, by the limit in percent of the peak load; link {}, {} s for joint; "
      "every plan proved\nlowest: the lowest limit that a planner meets\n",
      link, seconds);
  std::vector<Measured> all;
  for (const std::string& path : paths) {
    all.push_back(Measure(path, *machine, seconds));
    PrintTable(all.back());
  }
  PrintClaims(all);
  return 0;
}

}  // namespace
}  // namespace plimsoll::recompute_baselines

int main(int argc, char** argv) {
  try {
    return plimsoll::recompute_baselines::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "recompute_baselines: {}\n", error.what());
    return 4;
  }
}

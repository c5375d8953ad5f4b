// SPDX-License-Identifier: Apache-2.0
//
// Every trace, every limit, every planner: does anything go wrong, and how long does it take?
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>

#include "plimsoll/report/table.h"
#include "plimsoll/sim/simulate.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

/// At this limit, this planner's plan is looked at more closely.
constexpr int kClosely = 60;
constexpr const char* kLookedAt = "autoswap-bo";
constexpr int kSimulations = 7;

/// What became of all plans.
struct Tally {
  int asked = 0;
  int fits = 0;
  int thrown = 0;
  double longest_seconds = 0;
  std::string longest;  ///< Who took that long.
};

/// The plan that is looked at closely.
struct Close {
  std::size_t commands = 0;
  double planning_seconds = 0;
  double simulation_ms = 0;
};

/// Measures the processor's time of this process, whatever else the machine does. Planners use one
/// core.
class ProcessorWatch {
 public:
  double seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t start_ = std::clock();
};

/// The median of several simulations.
double TimeSimulation(const plan::Plan& plan) {
  std::vector<double> seconds;
  for (int k = 0; k < kSimulations; ++k) {
    const ProcessorWatch watch;
    const sim::Timeline timeline = sim::Simulate(plan);
    seconds.push_back(timeline.deadlocked ? 1e9 : watch.seconds());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kSimulations / 2, seconds.end());
  return 1e3 * seconds[kSimulations / 2];
}

class Grid {
 public:
  /// Prints the overheads of one workload, limits by planners.
  Close PrintWorkload(const Workload& workload, const std::vector<int>& limits) {
    std::vector<std::string> header = {workload.name + ", %"};
    for (const planners::Planner& planner : planners::Planners()) {
      if (planner.choose != nullptr) continue;  // recompute_baselines asks these.
      const std::string name(planner.name);
      header.push_back(name.starts_with("autoswap-") ? name.substr(9) : name);
    }
    report::Table table(header);
    Close close;
    for (const int percent : limits) {
      std::vector<std::string> cells = {fmt::format("limit {}", percent)};
      for (const planners::Planner& planner : planners::Planners()) {
        if (planner.choose != nullptr) continue;
        cells.push_back(Ask(planner, workload, percent, &close));
      }
      table.Add(std::move(cells));
    }
    fmt::print("{}\n", table.Render());
    std::fflush(stdout);
    return close;
  }

  const Tally& tally() const { return tally_; }

 private:
  std::string Ask(const planners::Planner& planner, const Workload& workload, int percent,
                  Close* close) {
    const std::string what = fmt::format("{} at {} %, {}", workload.name, percent, planner.name);
    ++tally_.asked;
    try {
      const ProcessorWatch watch;
      const planners::Outcome outcome =
          Plan(planner, workload, machine_, PercentOf(workload.peak_bytes, percent));
      const double seconds = watch.seconds();
      if (seconds > 5) Report(fmt::format("{}: {:.1f} s", what, seconds));
      if (seconds > tally_.longest_seconds) {
        tally_.longest_seconds = seconds;
        tally_.longest = what;
      }
      if (outcome.plan) ++tally_.fits;
      if (outcome.plan && percent == kClosely && planner.name == kLookedAt) {
        *close = {outcome.plan->commands.size(), seconds, TimeSimulation(*outcome.plan)};
      }
      return OverheadCell(workload, outcome);
    } catch (const std::exception& error) {
      ++tally_.thrown;
      Report(fmt::format("{}: {}", what, error.what()));
      return "error";
    }
  }

  const plan::Machine machine_ = *plan::FindMachine("h200");
  Tally tally_;
};

}  // namespace

int PrintGrid(const std::vector<Workload>& workloads, const std::vector<int>& limits) {
  fmt::print(
      "== Overhead in percent at limits in percent of the peak load, link h200; \"-\": does "
      "not fit\n\n");
  Grid grid;
  report::Table closely({fmt::format("{} at {} %", kLookedAt, kClosely), "variables", "ops",
                         "commands", "planning s", "simulation ms"});
  for (const Workload& workload : workloads) {
    Report(fmt::format("grid, {}", workload.name));
    const Close close = grid.PrintWorkload(workload, limits);
    if (close.commands == 0) continue;  // There is no such plan.
    closely.Add({workload.name, fmt::format("{}", workload.problem.variables.size()),
                 fmt::format("{}", workload.problem.ops.size()), fmt::format("{}", close.commands),
                 fmt::format("{:.2f}", close.planning_seconds),
                 fmt::format("{:.2f}", close.simulation_ms)});
  }
  const Tally& tally = grid.tally();
  fmt::print(
      "{}\n{} asked: {} valid plans within their limit, {} do not fit, {} errors; longest "
      "{:.1f} s: {}\n\n",
      closely.Render(), tally.asked, tally.fits, tally.asked - tally.fits - tally.thrown,
      tally.thrown, tally.longest_seconds, tally.longest);
  return tally.thrown;
}

}  // namespace plimsoll::swapping

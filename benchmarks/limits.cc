// SPDX-License-Identifier: Apache-2.0
//
// What does a limit cost? For every trace and a few limits, the overhead of `joint`, which swaps
// and recomputes, in percent, with the footprint under the limit and every plan proved; then the
// medians over the traces that fit at every limit.
//
// With --reduction: how far below the peak load the limit goes with at most half a percent of
// overhead, by `joint` and by AutoSwap.
//
// With --tightest: whether there is a plan five points of the peak above what the largest op needs
// by itself.
//
//   limits [--reduction | --tightest] [--limits LIST] [--seconds S] [--evaluations N]
//          [--threads N] [--seed N] TRACE...
//
// The limits, if others are wanted than 80 to 30 %, are whole percents with commas in between.
// With --evaluations, a plan takes so many of them, whatever time that takes: then the figures do
// not depend on what else the machine does.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/planner.h"
#include "plimsoll/planners/reduction.h"
#include "plimsoll/trace/reader.h"

namespace plimsoll {
namespace {

/// How long a plan may take.
struct Budget {
  double seconds = 5;
  std::int64_t evaluations = 0;  ///< If positive, the seconds do not count.
  int threads = 0;               ///< 0: as many as the machine has.
  std::uint64_t seed = planners::PlannerOptions{}.seed;

  planners::PlannerOptions options() const {
    planners::PlannerOptions options;
    options.time_budget_seconds = seconds;
    options.evaluations = evaluations;
    options.threads = threads;
    options.seed = seed;
    return options;
  }
  std::string text() const {
    return evaluations > 0 ? fmt::format("{} evaluations", evaluations)
                           : fmt::format("{} s", seconds);
  }
};

struct Row {
  std::string trace;
  std::vector<double> overheads;  ///< Percent, by limit; negative if it does not fit.
  double longest_seconds = 0;
};

std::string NameOf(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find('.'));
}

/// The overhead of `joint` in percent; negative if it does not fit.
double Overhead(const plan::Problem& problem, Bytes limit_bytes, const Budget& budget) {
  planners::PlannerOptions options = budget.options();
  options.limit_bytes = limit_bytes;
  const planners::Outcome outcome = planners::MakePlan(*planners::FindPlanner("joint"), problem,
                                                       *plan::FindMachine("h200"), options);
  if (!outcome.plan) return -1;
  return 100 * (static_cast<double>(outcome.timeline.iteration_ns) /
                    static_cast<double>(problem.iteration_ns()) -
                1);
}

Row Measure(const std::string& path, const std::vector<int>& percents, const Budget& budget) {
  Row row;
  row.trace = NameOf(path);
  const plan::Problem recorded = plan::MakeProblem(trace::ReadTrace(path));
  const plan::Problem problem = plan::ProblemToPlan(recorded);
  const Bytes peak = plan::ProfileLoad(recorded).peak_bytes;
  for (const int percent : percents) {
    const Stopwatch watch;
    row.overheads.push_back(Overhead(problem, peak / 100 * percent, budget));
    row.longest_seconds = std::max(row.longest_seconds, watch.seconds());
  }
  return row;
}

std::string Cell(double overhead) { return overhead < 0 ? "-" : fmt::format("{:.2f}", overhead); }

void PrintMedians(const std::vector<Row>& rows, const std::vector<int>& percents) {
  fmt::print("\nmedian over the traces that fit at every limit, percent:");
  for (std::size_t k = 0; k < percents.size(); ++k) {
    std::vector<double> values;
    for (const Row& row : rows) {
      const bool everywhere = std::all_of(row.overheads.begin(), row.overheads.end(),
                                          [](double overhead) { return overhead >= 0; });
      if (everywhere) values.push_back(row.overheads[k]);
    }
    if (values.empty()) continue;
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    fmt::print("  {:.2f} at {} %", values[values.size() / 2], percents[k]);
  }
  fmt::print("\n");
}

constexpr double kHardlyAnything = 0.005;

/// The largest reduction with hardly any overhead, in percent of the peak load; negative: none.
double Reduce(const plan::Problem& problem, Bytes peak, std::string_view planner,
              const Budget& budget) {
  const planners::PlannerOptions options = budget.options();
  const auto outcome =
      planners::LargestReduction(*planners::FindPlanner(planner), problem,
                                 *plan::FindMachine("h200"), options, kHardlyAnything);
  if (!outcome) return -1;
  return 100 * (1 - static_cast<double>(outcome->plan->limit_bytes) / static_cast<double>(peak));
}

void PrintReductions(const std::vector<std::string>& paths, const Budget& budget) {
  fmt::print(
      "percent of the peak load that can be saved with at most {} % of overhead; link h200, {} "
      "a plan\n\n{:24}  {:>8}  {:>11}\n",
      100 * kHardlyAnything, budget.text(), "trace", "joint", "autoswap-bo");
  for (const std::string& path : paths) {
    const plan::Problem recorded = plan::MakeProblem(trace::ReadTrace(path));
    const plan::Problem problem = plan::ProblemToPlan(recorded);
    const Bytes peak = plan::ProfileLoad(recorded).peak_bytes;
    fmt::print("{:24}  {:>8}  {:>11}\n", NameOf(path), Cell(Reduce(problem, peak, "joint", budget)),
               Cell(Reduce(problem, peak, "autoswap-bo", budget)));
    std::fflush(stdout);
  }
}

constexpr double kPointsAbove = 5;

void PrintTightest(const std::vector<std::string>& paths, const Budget& budget) {
  fmt::print(
      "overhead of joint in percent, {} points of the peak load above the largest op; link h200, "
      "{} a plan\n\n{:24}  {:>12}  {:>8}  {:>10}\n",
      kPointsAbove, budget.text(), "trace", "largest op %", "limit %", "overhead %");
  for (const std::string& path : paths) {
    const plan::Problem recorded = plan::MakeProblem(trace::ReadTrace(path));
    const plan::Problem problem = plan::ProblemToPlan(recorded);
    const auto peak = static_cast<double>(plan::ProfileLoad(recorded).peak_bytes);
    const std::vector<plan::OpLoad> loads = plan::LoadOps(problem);
    const plan::OpIndex largest = plan::FindLargestOp(loads);
    if (largest < 0) continue;
    const double needed =
        100 * static_cast<double>(loads[static_cast<std::size_t>(largest)].needed_bytes()) / peak;
    const double limit = needed + kPointsAbove;
    const double overhead = Overhead(problem, static_cast<Bytes>(peak * limit / 100), budget);
    fmt::print("{:24}  {:>12.1f}  {:>8.1f}  {:>10}\n", NameOf(path), needed, limit, Cell(overhead));
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  Budget budget;
  bool reduction = false;
  bool tightest = false;
  bool known = true;  // Whether all options are.
  std::vector<int> percents = {80, 60, 50, 40, 30};
  std::vector<std::string> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--seconds" && i + 1 < argc) {
      budget.seconds = std::atof(argv[++i]);
    } else if (std::string_view(argv[i]) == "--evaluations" && i + 1 < argc) {
      budget.evaluations = std::atoll(argv[++i]);
    } else if (std::string_view(argv[i]) == "--threads" && i + 1 < argc) {
      budget.threads = std::atoi(argv[++i]);
    } else if (std::string_view(argv[i]) == "--seed" && i + 1 < argc) {
      budget.seed = static_cast<std::uint64_t>(std::atoll(argv[++i]));
    } else if (std::string_view(argv[i]) == "--limits" && i + 1 < argc) {
      percents.clear();
      for (std::string_view list = argv[++i]; !list.empty();) {
        percents.push_back(static_cast<int>(ParseInteger(TakeField(&list, ',')).value_or(0)));
        known = known && percents.back() > 0;
      }
    } else if (std::string_view(argv[i]) == "--reduction") {
      reduction = true;
    } else if (std::string_view(argv[i]) == "--tightest") {
      tightest = true;
    } else if (std::string_view(argv[i]).starts_with("--")) {
      known = false;
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  if (!known || paths.empty() || !(budget.seconds > 0)) {
    fmt::print(stderr,
               "usage: limits [--reduction | --tightest] [--limits LIST] [--seconds S]\n"
               "              [--evaluations N] [--threads N] [--seed N] TRACE...\n");
    return 2;
  }
  if (reduction || tightest) {
    if (reduction) PrintReductions(paths, budget);
    if (tightest) PrintTightest(paths, budget);
    return 0;
  }
  fmt::print(
      "overhead of joint in percent, by the limit in percent of the peak load; link h200, "
      "{} a plan; every plan proved\n\n{:24}",
      budget.text(), "trace");
  for (const int percent : percents) fmt::print("  {:>6} %", percent);
  fmt::print("  planning at most\n");
  std::vector<Row> rows;
  for (const std::string& path : paths) {
    rows.push_back(Measure(path, percents, budget));
    fmt::print("{:24}", rows.back().trace);
    for (const double overhead : rows.back().overheads) fmt::print("  {:>8}", Cell(overhead));
    fmt::print("  {:.1f} s\n", rows.back().longest_seconds);
    std::fflush(stdout);
  }
  PrintMedians(rows, percents);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  try {
    return plimsoll::Main(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "limits: {}\n", error.what());
    return 4;
  }
}

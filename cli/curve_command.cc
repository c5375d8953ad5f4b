// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/report/curve_drawing.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

using Options = ComparisonSettings;

/// What no plan beats at a limit, per iteration of the program.
struct BoundAtLimit {
  Bytes limit_bytes = 0;
  Nanoseconds bound_ns = 0;
};

/// What a limit costs, by planner.
struct Answers {
  std::vector<PlanRow> rows;  ///< For each limit, all planners; fewer if interrupted.
  std::vector<std::string> planners;
  std::vector<BoundAtLimit> bounds;  ///< For each limit that has rows.
  Bytes smallest_limit_bytes = 0;    ///< The smallest at which any plan was found.
  Bytes peak_load_bytes = 0;
  Nanoseconds unlimited_ns = 0;

  double OfPeak(Bytes bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(std::max<Bytes>(peak_load_bytes, 1));
  }
  double Overhead(Nanoseconds ns) const {
    return unlimited_ns == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(unlimited_ns) - 1;
  }
};

/// Adds the bound at each limit, also to rows of what does not fit.
void AddBounds(const PlanInput& input, Answers* answers) {
  for (std::size_t r = 0; r < answers->rows.size(); ++r) {
    PlanRow& row = answers->rows[r];
    if (r % answers->planners.size() == 0) {
      const Nanoseconds bound = planners::JointBound(input.problem, input.machine, row.limit_bytes);
      answers->bounds.push_back({row.limit_bytes, bound / input.problem.laps});
    }
    if (!row.fits) row.bound_ns = answers->bounds.back().bound_ns;
  }
}

Answers AskCurve(const PlanInput& input, const std::vector<Bytes>& limits,
                 const std::vector<const planners::Planner*>& chosen, const Interrupt& interrupt) {
  Answers answers;
  answers.peak_load_bytes = input.peak_load_bytes;
  answers.unlimited_ns = input.problem.iteration_ns() / input.problem.laps;
  for (const planners::Planner* planner : chosen) answers.planners.emplace_back(planner->name);
  answers.rows = AskAll(input, limits, chosen, interrupt);
  AddBounds(input, &answers);
  answers.smallest_limit_bytes =
      planners::SmallestLimit(input.problem, input.machine, input.options);
  for (const PlanRow& row : answers.rows) {
    if (!row.fits) continue;
    answers.smallest_limit_bytes = std::min(answers.smallest_limit_bytes, row.footprint_bytes);
  }
  return answers;
}

nlohmann::ordered_json ToJson(const Answers& answers) {
  auto rows = nlohmann::ordered_json::array();
  for (const PlanRow& row : answers.rows) rows.push_back(ToJson(row));
  auto bounds = nlohmann::ordered_json::array();
  for (const BoundAtLimit& x : answers.bounds) {
    bounds.push_back({{"limit_bytes", x.limit_bytes}, {"bound_ns", x.bound_ns}});
  }
  return {
      {"rows", rows}, {"smallest_limit_bytes", answers.smallest_limit_bytes}, {"bound", bounds}};
}

report::CurveChart ToChart(const Answers& answers) {
  report::CurveChart chart;
  for (std::size_t k = 0; k < answers.planners.size(); ++k) {
    report::Curve curve{answers.planners[k], {}};
    for (std::size_t r = k; r < answers.rows.size(); r += answers.planners.size()) {
      const PlanRow& row = answers.rows[r];
      if (row.fits) curve.points.push_back({answers.OfPeak(row.limit_bytes), row.overhead()});
    }
    chart.curves.push_back(std::move(curve));
  }
  for (const BoundAtLimit& x : answers.bounds) {
    chart.bound.push_back({answers.OfPeak(x.limit_bytes), answers.Overhead(x.bound_ns)});
  }
  chart.smallest_limit = answers.OfPeak(answers.smallest_limit_bytes);
  return chart;
}

std::string Percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

/// A line for each limit, with a column for each planner.
report::Table ToTable(const Answers& answers) {
  std::vector<std::string> header = {"limit", "of peak"};
  header.insert(header.end(), answers.planners.begin(), answers.planners.end());
  header.emplace_back("bound");
  report::Table table(header);
  const std::size_t width = answers.planners.size();
  for (std::size_t r = 0; r < answers.rows.size(); r += width) {
    const Bytes limit = answers.rows[r].limit_bytes;
    std::vector<std::string> cells = {FormatBytes(limit),
                                      fmt::format("{:.1f} %", 100 * answers.OfPeak(limit))};
    for (std::size_t k = r; k < r + width; ++k) {
      const bool fits = k < answers.rows.size() && answers.rows[k].fits;
      cells.push_back(fits ? Percent(answers.rows[k].overhead()) : "-");
    }
    cells.push_back(Percent(answers.Overhead(answers.bounds[r / width].bound_ns)));
    table.Add(cells);
  }
  return table;
}

void PrintForPeople(const Answers& answers, const std::string& link) {
  fmt::print(
      "peak load {} ({} bytes), iteration {:.3f} ms without a limit, link {}\n"
      "smallest limit {} ({} bytes, {:.1f} % of the peak load)\n\noverhead by limit\n\n",
      FormatBytes(answers.peak_load_bytes), answers.peak_load_bytes,
      static_cast<double>(answers.unlimited_ns) / 1e6, Printable(link),
      FormatBytes(answers.smallest_limit_bytes), answers.smallest_limit_bytes,
      100 * answers.OfPeak(answers.smallest_limit_bytes));
  fmt::print("{}\n{}", ToTable(answers).Render(), report::DrawCurves(ToChart(answers), {}));
}

ExitCode Run(const Options& options) {
  const Interrupt interrupt;
  const std::vector<const planners::Planner*> chosen =
      ParsePlanners("--planners", options.planners);
  const PlanInput input = ReadPlanInput(options.plan);
  const std::vector<Bytes> limits = ParseLimits("--limits", options.limits, input.peak_load_bytes);
  const Answers answers = AskCurve(input, limits, chosen, interrupt);
  if (options.json) {
    PrintJson(ToJson(answers));
  } else if (options.csv) {
    PrintCsv(answers.rows);
  } else {
    PrintForPeople(answers, input.machine.name);
  }
  if (AnyFits(answers.rows)) return ExitCode::kDone;
  ExplainNearestMisfit(answers.rows);
  return ExitCode::kNoAnswer;
}

}  // namespace

void AddCurveCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("curve", "Show what memory limits cost, by planner");
  auto options = std::make_shared<Options>();
  options->plan.budget_seconds = 1;
  options->limits = "90%,80%,70%,60%,50%,40%,30%,20%";
  options->planners = "joint,autoswap-swdoa,vdnn-all";
  AddComparisonSettings(command, "Print rows, bounds and the smallest limit", options.get());
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/curve.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/report/curve_drawing.h"
#include "plimsoll/report/table.h"

namespace plimsoll::cli {
namespace {

nlohmann::ordered_json ToJson(const CurveAnswers& answers) {
  auto rows = nlohmann::ordered_json::array();
  for (const PlanRow& row : answers.rows) rows.push_back(ToJson(row));
  auto bounds = nlohmann::ordered_json::array();
  for (const BoundAtLimit& x : answers.bounds) {
    bounds.push_back({{"limit_bytes", x.limit_bytes}, {"bound_ns", x.bound_ns}});
  }
  return {
      {"rows", rows}, {"smallest_limit_bytes", answers.smallest_limit_bytes}, {"bound", bounds}};
}

std::string Percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

/// A line for each limit, with a column for each planner.
report::Table ToTable(const CurveAnswers& answers) {
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

void PrintForPeople(const CurveAnswers& answers, const std::string& link) {
  fmt::print(
      "peak load {} ({} bytes), iteration {:.3f} ms without a limit, link {}\n"
      "smallest limit {} ({} bytes, {:.1f} % of the peak load)\n\noverhead by limit\n\n",
      FormatBytes(answers.peak_load_bytes), answers.peak_load_bytes,
      static_cast<double>(answers.unlimited_ns) / 1e6, Printable(link),
      FormatBytes(answers.smallest_limit_bytes), answers.smallest_limit_bytes,
      100 * answers.OfPeak(answers.smallest_limit_bytes));
  fmt::print("{}\n{}", ToTable(answers).Render(), report::DrawCurves(ToChart(answers), {}));
}

ExitCode RunCurve(const ComparisonSettings& options) {
  const Interrupt interrupt;
  const std::vector<const planners::Planner*> chosen =
      ParsePlanners("--planners", options.planners);
  const PlanInput input = ReadPlanInput(options.plan);
  const std::vector<Bytes> limits = ParseLimits("--limits", options.limits, input.peak_load_bytes);
  const CurveAnswers answers = AskCurve(input, limits, chosen, interrupt);
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
  auto options = std::make_shared<ComparisonSettings>();
  options->plan.budget_seconds = 1;
  options->limits = "90%,80%,70%,60%,50%,40%,30%,20%";
  options->planners = "joint,autoswap-swdoa,vdnn-all";
  AddComparisonSettings(command, "Print rows, bounds and the smallest limit", options.get());
  command->callback([options, &exit_code] { exit_code = RunCurve(*options); });
}

}  // namespace plimsoll::cli

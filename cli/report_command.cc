// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/curve.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "cli/report_subject.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/file.h"
#include "plimsoll/report/page.h"
#include "plimsoll/report/perfetto.h"
#include "plimsoll/report/sparkline.h"
#include "plimsoll/report/svg.h"

namespace plimsoll::cli {
namespace {

struct ReportOptions {
  PlanSettings settings;
  SubjectFiles files;
  std::optional<std::string> compare;
  std::optional<std::string> compare_measured;
  bool curve = false;
  std::string limits = "90%,80%,70%,60%,50%,40%,30%,20%";
  std::string planners = "joint,autoswap-swdoa,vdnn-all";
  std::string format = "html";
  std::optional<std::string> out;
  bool json = false;
};

/// Where a report goes if nobody says: into the folder that we are in.
std::string DefaultOut(const ReportOptions& options) {
  std::string stem = std::filesystem::path(options.files.input).filename().string();
  stem = stem.substr(0, stem.find('.'));
  const std::string ending = options.format == "perfetto" ? "perfetto.json" : options.format;
  return fmt::format("{}.report.{}", stem.empty() ? "plimsoll" : stem, ending);
}

std::optional<report::CurveChart> MakeCurve(const ReportOptions& options, const PlanInput& input,
                                            const Interrupt& interrupt) {
  if (!options.curve) return std::nullopt;
  const auto chosen = ParsePlanners("--planners", options.planners);
  const auto limits = ParseLimits("--limits", options.limits, input.peak_load_bytes);
  return ToChart(AskCurve(input, limits, chosen, interrupt));
}

std::string Render(const ReportOptions& options,
                   const std::vector<const report::Subject*>& subjects,
                   const std::optional<report::CurveChart>& curve) {
  if (options.format == "perfetto") return report::RenderPerfetto(*subjects.front());
  if (options.format == "svg") return report::RenderSvg(*subjects.front());
  return report::RenderPage(subjects, curve);
}

/// Refuses what only a page can show, and a limit that nothing would be planned for.
void CheckOptions(const ReportOptions& options) {
  if (options.format != "html" && (options.compare || options.curve)) {
    throw CLI::ValidationError(
        options.compare ? "--compare" : "--curve",
        fmt::format("is for --format html; --format {} shows one trace, plan or run",
                    options.format));
  }
  if (options.files.limit && IsPlanFile(options.files.input) &&
      (!options.compare || IsPlanFile(*options.compare))) {
    throw CLI::ValidationError("--limit", "is for a trace; a plan file has its own");
  }
}

ExitCode Run(const ReportOptions& options) {
  CheckOptions(options);
  if (options.format == "html" && !report::HasPage()) {
    fmt::print(stderr,
               "plimsoll: this build has no HTML report: d3 was not found when it was configured. "
               "Install node-d3 (Debian, Ubuntu) and build again, or take --format perfetto or "
               "svg\n");
    return ExitCode::kFailure;
  }
  const std::string out = options.out.value_or(DefaultOut(options));
  CheckWritable(out);
  const Interrupt interrupt;
  const std::optional<SubjectRead> first = ReadSubject(options.files, options.settings, interrupt);
  if (!first) return ExitCode::kNoAnswer;
  std::optional<SubjectRead> second;
  if (options.compare) {
    SubjectFiles files = options.files;
    files.input = *options.compare;
    files.trace.reset();
    files.measured = options.compare_measured;
    second = ReadSubject(files, options.settings, interrupt);
    if (!second) return ExitCode::kNoAnswer;
  }
  const auto curve = MakeCurve(options, first->input, interrupt);
  std::vector<const report::Subject*> subjects = {&first->subject};
  if (second) subjects.push_back(&second->subject);
  WriteFileWhole(out, Render(options, subjects, curve));
  if (options.json) {
    fmt::print("{}\n", report::FiguresJson(first->subject.figures, 2));
  } else {
    fmt::print("{}\nreport: {}\n", report::RenderForTerminal(first->subject), out);
  }
  return ExitCode::kDone;
}

}  // namespace

void AddReportCommand(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("report", "Draw a trace, a plan or a run, to look at");
  auto options = std::make_shared<ReportOptions>();
  options->settings.budget_seconds = 5;
  command
      ->add_option("INPUT", options->files.input,
                   "A trace, or what \"plimsoll plan -o\" or \"train --plan-out\" has written")
      ->required();
  command->add_option("-o,--out", options->out,
                      "Write here; by default into this folder, named after INPUT");
  command
      ->add_option("--format", options->format,
                   "html: a page to look at; perfetto: for ui.perfetto.dev; svg: for papers")
      ->check(CLI::IsMember({"html", "perfetto", "svg"}))
      ->capture_default_str();
  command->add_option("--limit", options->files.limit,
                      "For traces: plan them for this limit, such as 4GiB or 60%");
  command->add_option("--planner", options->files.planner, "See \"plimsoll planners\"")
      ->capture_default_str();
  command->add_option("--trace", options->files.trace, "For a plan: the trace it was made for");
  command->add_option("--measured", options->files.measured,
                      "For a plan: what \"train --timeline-out\" has written");
  CLI::Option* compare = command->add_option(
      "--compare", options->compare, "html: a second trace or plan, to be shown beside the first");
  command
      ->add_option("--compare-measured", options->compare_measured,
                   "For that: its measured timeline")
      ->needs(compare);
  CLI::Option* curve =
      command->add_flag("--curve", options->curve, "html: add what other limits would cost");
  command->add_option("--limits", options->limits, "Of the curve")->needs(curve);
  command->add_option("--planners", options->planners, "Of the curve")->needs(curve);
  AddPlannerSettings(command, &options->settings);
  command->add_flag("--json", options->json, "Print the figures of the report's head");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace plimsoll::cli

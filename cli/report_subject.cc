// SPDX-License-Identifier: Apache-2.0
#include "cli/report_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/ask.h"
#include "cli/input.h"
#include "cli/plan_row.h"
#include "cli/timeline_file.h"
#include "plimsoll/base/check.h"
#include "plimsoll/base/file.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/report/memory_view.h"
#include "plimsoll/sim/stalls.h"

namespace plimsoll::cli {
namespace {

report::Lanes ToLanes(const plan::Plan& plan, const sim::Timeline& timeline) {
  report::Lanes lanes;
  lanes.times.iteration_ns = timeline.iteration_ns;
  for (const sim::Span& span : timeline.spans) {
    lanes.times.start_ns.push_back(span.start_ns);
    lanes.times.end_ns.push_back(span.end_ns);
  }
  const sim::Usage usage =
      sim::MeasureUsage(plan, timeline, std::numeric_limits<std::size_t>::max());
  for (const sim::Stall& stall : usage.stalls) {
    lanes.stalls.push_back({stall.command, stall.awaited, stall.start_ns, stall.length_ns});
  }
  return lanes;
}

/// Returns a text of the trace's header, or nothing.
std::string HeaderText(const std::string& metadata, const std::string& key) {
  const auto json = nlohmann::json::parse(metadata, nullptr, false);
  if (!json.is_object() || !json.contains(key) || !json[key].is_string()) return "";
  return json[key].get<std::string>();
}

/// Plans without a limit: everything stays, at an address of its own.
planners::Outcome PlanUnlimited(const plan::Problem& problem, const plan::Machine& machine) {
  planners::PlannerOptions options;
  options.limit_bytes = kMaxBytes;
  planners::Outcome outcome =
      planners::MakePlan(*planners::FindPlanner("none"), problem, machine, options);
  PLIMSOLL_CHECK(outcome.plan.has_value(), "nothing fits without a limit");
  return outcome;
}

void AddCounts(const plan::Plan& plan, report::Figures* figures) {
  figures->laps = plan.problem.laps;
  figures->residencies = std::ssize(plan.residencies);
  figures->copies = std::ssize(plan.queues[1]) + std::ssize(plan.queues[2]);
  for (std::size_t k = 0; k < plan.problem.ops.size(); ++k) {
    if (report::IsReplay(plan, static_cast<plan::OpIndex>(k))) ++figures->replays;
  }
  figures->ops = std::ssize(plan.problem.ops) - figures->replays;
}

std::optional<SubjectRead> ReadPlanSubject(const SubjectFiles& files,
                                           const PlanSettings& settings) {
  SubjectFacts facts;
  plan::Plan plan = ReadPlanFor(files.input, files.trace);
  const std::vector<plan::PlanViolation> violations = plan::CheckPlan(plan, 1);
  if (!violations.empty()) {
    fmt::print(stderr, "plimsoll: {} is not a valid plan: {}; \"plimsoll check\" says more\n",
               files.input, Printable(violations.front().message));
    return std::nullopt;
  }
  facts.name = std::filesystem::path(files.input).filename().string();
  if (files.trace) {
    const trace::Trace trace = ReadAnyTrace(*files.trace);
    facts.metadata = trace.metadata;
    facts.recorded = plan::Unroll(plan::MakeProblem(trace));
  }
  if (files.measured) facts.measured = ReadMeasuredTimeline(*files.measured, plan);
  SubjectRead read;
  read.input.problem = plan.rewriting ? plan.rewriting->original : plan.problem;
  read.input.signature = plan.signature;
  read.input.machine = plan.machine;
  read.input.options = MakePlannerOptions(settings, read.input.problem);
  read.subject = MakeSubject(std::move(plan), facts);
  read.input.peak_load_bytes = read.subject.figures.peak_load_bytes;
  return read;
}

std::optional<SubjectRead> ReadTraceSubject(const SubjectFiles& files, const PlanSettings& settings,
                                            const Interrupt& interrupt) {
  if (files.measured) {
    throw CLI::ValidationError("--measured", "needs the plan that was run, not a trace");
  }
  const planners::Planner& planner = ParsePlanner("--planner", files.planner);
  const trace::Trace trace = ReadAnyTrace(files.input);
  SubjectRead read;
  read.input = MakePlanInput(settings, trace, files.input);
  SubjectFacts facts;
  facts.name = std::filesystem::path(files.input).filename().string();
  facts.metadata = trace.metadata;
  facts.recorded = plan::Unroll(plan::MakeProblem(trace));
  facts.has_limit = files.limit.has_value();
  if (!files.limit) {
    planners::Outcome outcome = PlanUnlimited(*facts.recorded, read.input.machine);
    read.subject = MakeSubject(std::move(*outcome.plan), facts);
    return read;
  }
  Asker asker(read.input, interrupt);
  Answer answer =
      asker.Ask(planner, ParseLimit("--limit", *files.limit, read.input.peak_load_bytes));
  if (!answer.plan) {
    ExplainMisfit(answer.row);
    return std::nullopt;
  }
  facts.planning_seconds = answer.row.planning_seconds;
  read.subject = MakeSubject(std::move(*answer.plan), facts);
  return read;
}

}  // namespace

bool IsPlanFile(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  LineReader reader(path);
  return reader.Next() && reader.line().starts_with("plan ");
}

report::Subject MakeSubject(plan::Plan made, const SubjectFacts& facts) {
  report::Subject subject;
  subject.plan = std::move(made);
  const plan::Plan& plan = subject.plan;
  const sim::Timeline predicted = sim::Simulate(plan);
  PLIMSOLL_CHECK(!predicted.deadlocked, "a valid plan deadlocks");
  subject.predicted = ToLanes(plan, predicted);
  if (facts.measured) subject.measured = ToLanes(plan, *facts.measured);
  // An unrolled trace has the plan's ops; lives were trimmed before, so that laps may differ.
  const plan::Problem& original = plan.rewriting ? plan.rewriting->original : plan.problem;
  const bool matches = facts.recorded && facts.recorded->ops.size() == original.ops.size();
  subject.recorded = matches ? *facts.recorded : original;
  report::Figures& figures = subject.figures;
  const PlanRow row = DescribePlan(plan, predicted);
  figures.name = facts.name;
  figures.model = HeaderText(facts.metadata, "model");
  figures.device = HeaderText(facts.metadata, "device");
  figures.link = plan.machine.name;
  if (facts.has_limit) {
    figures.planner = plan.planner;
    figures.limit_bytes = plan.limit_bytes;
  }
  figures.peak_load_bytes = plan::ProfileLoad(subject.recorded).peak_bytes;
  figures.footprint_unlimited_bytes =
      facts.has_limit ? PlanUnlimited(subject.recorded, plan.machine).plan->footprint_bytes
                      : plan.footprint_bytes;
  const report::CommandTimes& drawn = subject.drawn();
  for (const report::MemoryStep& step :
       report::ListSteps(plan, drawn, report::ListRectangles(subject, drawn))) {
    figures.peak_load_planned_bytes = std::max(figures.peak_load_planned_bytes, step.load_bytes);
  }
  // Nothing is planned: that is the load, moments between two ops included.
  if (!facts.has_limit) figures.peak_load_planned_bytes = figures.peak_load_bytes;
  figures.footprint_bytes = row.footprint_bytes;
  figures.host_bytes = row.host_bytes;
  figures.swapped_bytes = row.swapped_bytes;
  figures.recomputed_bytes = row.recomputed_bytes;
  figures.unlimited_ns = row.unlimited_ns;
  figures.iteration_ns = row.iteration_ns;
  if (facts.measured) figures.measured_ns = facts.measured->iteration_ns / plan.problem.laps;
  figures.bound_ns = facts.has_limit ? row.bound_ns : row.unlimited_ns;
  for (const report::StallMark& stall : subject.predicted.stalls) {
    figures.stall_ns += stall.length_ns;
  }
  figures.stall_ns /= plan.problem.laps;
  figures.planning_seconds = facts.planning_seconds;
  figures.variables = std::ssize(original.variables);
  AddCounts(plan, &figures);
  return subject;
}

std::optional<SubjectRead> ReadSubject(const SubjectFiles& files, const PlanSettings& settings,
                                       const Interrupt& interrupt) {
  if (IsPlanFile(files.input)) return ReadPlanSubject(files, settings);
  if (files.trace) throw CLI::ValidationError("--trace", "is for a plan file");
  return ReadTraceSubject(files, settings, interrupt);
}

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include "swapping/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/lives.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/singa.h"

namespace plimsoll::swapping {
namespace {

/// Derives the rest from the recorded problem.
void Complete(Workload* workload) {
  workload->problem = plan::ProblemToPlan(workload->recorded);
  workload->peak_bytes = plan::ProfileLoad(workload->recorded).peak_bytes;
}

Workload MakeWorkload(const std::string& path, const trace::Trace& trace) {
  Workload workload;
  const std::string name = std::filesystem::path(path).filename().string();
  workload.name = name.substr(0, name.find('.'));
  workload.recorded = plan::MakeProblem(trace);
  Complete(&workload);
  return workload;
}

std::int64_t Scale(std::int64_t value, double factor) {
  return std::llround(static_cast<double>(value) * factor);
}

}  // namespace

Workload ReadWorkload(const std::string& trace) {
  return MakeWorkload(trace, trace::ReadTrace(trace));
}

Workload ReadSingaWorkload(const std::string& log) {
  return MakeWorkload(log, trace::ReadSingaLog(log));
}

double PaperSlowdown(const std::vector<Workload>& workloads) {
  for (const Workload& workload : workloads) {
    if (workload.name != kVgg16) continue;
    return static_cast<double>(kVgg16Ns) / static_cast<double>(workload.iteration_ns());
  }
  throw InputError(kVgg16, 0, "this trace sets the speed of the paper's machine; add it");
}

Workload WithSlowerOps(const Workload& workload, double factor) {
  Workload slower = workload;
  for (plan::Op& op : slower.recorded.ops) op.duration_ns = Scale(op.duration_ns, factor);
  Complete(&slower);
  return slower;
}

Workload WithBatch(const Workload& workload, int batch) {
  const double factor = static_cast<double>(batch) / BatchOf(workload.name);
  Workload scaled = WithSlowerOps(workload, factor);
  for (plan::Variable& variable : scaled.recorded.variables) {
    const bool fixed = variable.persistent() || variable.kind == plan::VariableKind::kGradient;
    if (!fixed) variable.size_bytes = Scale(variable.size_bytes, factor);
  }
  Complete(&scaled);
  return scaled;
}

int BatchOf(const std::string& name) {
  const std::size_t place = name.rfind("_b");
  if (place == std::string::npos) return 0;
  return static_cast<int>(ParseInteger(name.substr(place + 2)).value_or(0));
}

Bytes PercentOf(Bytes bytes, int percent) { return bytes / 100 * percent; }

std::string Megabytes(Bytes bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

std::string Percent(double fraction) { return fmt::format("{:.1f}", 100 * fraction); }

double Milliseconds(const Workload& workload) {
  return static_cast<double>(workload.iteration_ns()) / 1e6;
}

planners::Outcome Plan(const planners::Planner& planner, const Workload& workload,
                       const plan::Machine& machine, Bytes limit_bytes) {
  planners::PlannerOptions options;
  options.limit_bytes = limit_bytes;
  planners::Outcome outcome = planners::MakePlan(planner, workload.problem, machine, options);
  std::string fault;
  if (!outcome.plan) {
    if (outcome.misfit.needed_bytes <= limit_bytes) fault = "a misfit that would fit";
  } else if (outcome.plan->footprint_bytes > limit_bytes) {
    fault = "a footprint above the limit";
  } else if (const auto violations = plan::CheckPlan(*outcome.plan, 1); !violations.empty()) {
    fault = violations.front().message;
  }
  if (fault.empty()) return outcome;
  throw Error(
      fmt::format("{} on {} at {} bytes: {}", planner.name, workload.name, limit_bytes, fault));
}

std::string OverheadCell(const Workload& workload, const planners::Outcome& outcome) {
  if (!outcome.plan) return "-";
  return Percent(static_cast<double>(outcome.timeline.iteration_ns) /
                     static_cast<double>(workload.problem.iteration_ns()) -
                 1);
}

void Report(const std::string& what) {
  fmt::print(stderr, "swapping: {}\n", what);
  std::fflush(stderr);
}

}  // namespace plimsoll::swapping

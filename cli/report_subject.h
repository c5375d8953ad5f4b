// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/report/subject.h"
#include "plimsoll/sim/simulate.h"
#include "plimsoll/trace/trace.h"

/// From files to what a report is about.
namespace plimsoll::cli {

/// What is known of a plan besides itself.
struct SubjectFacts {
  std::string name;
  std::string metadata;                     ///< The header of its trace; empty if unknown.
  std::optional<plan::Problem> recorded{};  ///< As recorded, unrolled; without it, as planned.
  std::optional<sim::Timeline> measured{};
  std::optional<double> planning_seconds{};
  bool has_limit = true;
};

/// Simulates a plan and collects what is reported of it. REQUIRES: the plan is valid.
report::Subject MakeSubject(plan::Plan plan, const SubjectFacts& facts);

/// What a subject is read from.
struct SubjectFiles {
  std::string input;                 ///< A trace, a SINGA event log or a plan.
  std::optional<std::string> trace;  ///< That a plan was made for.
  std::optional<std::string> measured;
  std::optional<std::string> limit;  ///< To plan a trace for; a plan has its own.
  std::string planner = "joint";
};

/// Whether a file says that it is a plan.
bool IsPlanFile(const std::string& path);

/// A subject, and what else could be planned for it.
struct SubjectRead {
  report::Subject subject;
  PlanInput input;
};

/// Reads a subject; plans a trace if a limit is given. Nothing if no plan fits or the plan is not
/// valid, which is then said on stderr. Throws InputError and CLI::ValidationError.
std::optional<SubjectRead> ReadSubject(const SubjectFiles& files, const PlanSettings& settings,
                                       const Interrupt& interrupt);

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check.h"

#include <fmt/format.h>

#include "plimsoll/plan/check_content.h"
#include "plimsoll/plan/check_overlap.h"
#include "plimsoll/plan/check_reach.h"
#include "plimsoll/plan/check_replay.h"
#include "plimsoll/plan/check_report.h"

namespace plimsoll::plan {

std::string_view Name(PlanLaw law) {
  switch (law) {
    case PlanLaw::kShape:
      return "shape";
    case PlanLaw::kBoundary:
      return "boundary";
    case PlanLaw::kLimit:
      return "limit";
    case PlanLaw::kReplay:
      return "replay";
    case PlanLaw::kDeadlock:
      return "deadlock";
    case PlanLaw::kContent:
      return "content";
    case PlanLaw::kSaved:
      return "saved";
    case PlanLaw::kArrival:
      return "arrival";
    case PlanLaw::kCopiedWrite:
      return "copied write";
    case PlanLaw::kAddress:
      return "address";
    case PlanLaw::kHostAddress:
      return "host address";
  }
  return "?";
}

std::vector<PlanViolation> CheckPlan(const Plan& plan, std::size_t most) {
  CheckReport report(plan, most);
  if (!CheckShape(plan, &report)) return report.Take();
  if (plan.rewriting) CheckReplays(plan, &report);
  const Contents contents = CheckResidencies(plan, &report);
  const Reach reach(plan);
  if (const auto& deadlock = reach.deadlock()) {
    report.Add(PlanLaw::kDeadlock,
               fmt::format("{} waits for {}, which waits for it in the end",
                           report.Describe(deadlock->first), report.Describe(deadlock->second)));
    return report.Take();
  }
  CheckVersions(plan, contents, reach, &report);
  CheckOverlaps(plan, contents, reach, &report);
  return report.Take();
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::cli {

/// What a planner made of a limit.
struct Answer {
  PlanRow row;
  std::optional<plan::Plan> plan;  ///< If it fits.
};

/// Asks planners about one input, with progress on stderr if that is a terminal. An interrupt ends
/// a search with the best that it has.
class Asker {
 public:
  /// Both must outlive the asker.
  Asker(const PlanInput& input, const Interrupt& interrupt)
      : input_(input), interrupt_(interrupt) {}

  Answer Ask(const planners::Planner& planner, Bytes limit_bytes);
  /// Asks for the smallest limit at which the overhead is at most `max_overhead`. Nothing if there
  /// is none.
  std::optional<Answer> AskSmallest(const planners::Planner& planner, double max_overhead);

 private:
  Answer Describe(const planners::Planner& planner, Bytes limit_bytes, planners::Outcome outcome,
                  double seconds);
  PlanRow DescribeMisfit(const planners::Planner& planner, Bytes limit_bytes,
                         const plan::Misfit& misfit);

  const PlanInput& input_;
  const Interrupt& interrupt_;
  std::optional<Bytes> smallest_limit_bytes_;  // Found when it is first asked for.
};

/// Asks every planner at every limit. An interrupt ends it with the rows so far, and says so on
/// stderr.
std::vector<PlanRow> AskAll(const PlanInput& input, const std::vector<Bytes>& limits,
                            const std::vector<const planners::Planner*>& chosen,
                            const Interrupt& interrupt);

}  // namespace plimsoll::cli

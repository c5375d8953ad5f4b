// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/plan_input.h"
#include "cli/plan_row.h"
#include "plimsoll/report/curve_drawing.h"

/// What memory limits cost, as `curve` and `report` show it.
namespace plimsoll::cli {

/// What no plan beats at a limit, per iteration of the program.
struct BoundAtLimit {
  Bytes limit_bytes = 0;
  Nanoseconds bound_ns = 0;
};

/// What a limit costs, by planner.
struct CurveAnswers {
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

/// Asks every planner at every limit, with progress as AskAll() has it.
CurveAnswers AskCurve(const PlanInput& input, const std::vector<Bytes>& limits,
                      const std::vector<const planners::Planner*>& chosen,
                      const Interrupt& interrupt);

report::CurveChart ToChart(const CurveAnswers& answers);

}  // namespace plimsoll::cli

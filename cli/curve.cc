// SPDX-License-Identifier: Apache-2.0
#include "cli/curve.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cli/ask.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll::cli {
namespace {

/// Adds the bound at each limit, also to rows of what does not fit.
void AddBounds(const PlanInput& input, CurveAnswers* answers) {
  for (std::size_t r = 0; r < answers->rows.size(); ++r) {
    PlanRow& row = answers->rows[r];
    if (r % answers->planners.size() == 0) {
      const Nanoseconds bound = planners::JointBound(input.problem, input.machine, row.limit_bytes);
      answers->bounds.push_back({row.limit_bytes, bound / input.problem.laps});
    }
    if (!row.fits) row.bound_ns = answers->bounds.back().bound_ns;
  }
}

}  // namespace

CurveAnswers AskCurve(const PlanInput& input, const std::vector<Bytes>& limits,
                      const std::vector<const planners::Planner*>& chosen,
                      const Interrupt& interrupt) {
  CurveAnswers answers;
  answers.peak_load_bytes = input.peak_load_bytes;
  answers.unlimited_ns = input.problem.iteration_ns() / input.problem.laps;
  for (const planners::Planner* planner : chosen) answers.planners.emplace_back(planner->name);
  answers.rows = AskAll(input, limits, chosen, interrupt);
  AddBounds(input, &answers);
  // Rows of what does not fit know it already.
  const auto misfit = std::find_if(answers.rows.begin(), answers.rows.end(),
                                   [](const PlanRow& row) { return !row.fits; });
  answers.smallest_limit_bytes =
      misfit != answers.rows.end()
          ? misfit->smallest_limit_bytes
          : planners::SmallestLimit(input.problem, input.machine, input.options);
  for (const PlanRow& row : answers.rows) {
    if (!row.fits) continue;
    answers.smallest_limit_bytes = std::min(answers.smallest_limit_bytes, row.footprint_bytes);
  }
  return answers;
}

report::CurveChart ToChart(const CurveAnswers& answers) {
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

}  // namespace plimsoll::cli

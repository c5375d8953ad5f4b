// SPDX-License-Identifier: Apache-2.0
//
// A small plan to report on. For tests only.
#pragma once

#include <string>

#include "plimsoll/plan/plan_file.h"
#include "plimsoll/report/subject.h"

namespace plimsoll::report {

/// The plan of docs/formats.md that swaps: variable 1 leaves while op 1 runs. `name` is what op 1
/// is called, as plan files write names.
inline plan::Plan SwappingPlan(const std::string& name = "relu") {
  return plan::ParsePlan(
      "plan 2\nplanner autoswap-aoa\nsignature b9efc58f534d6499\n"
      "machine h200 4000 4000 55000000000 55000000000 49000000000 49000000000\n"
      "limit 10 4611686018427387904\nfootprint 10 5\niteration once 8 1 0 0\n"
      "n matmul\nn " +
          name +
          "\nv 0 5 0 8 persistent F 1\nv 1 5 0 8 persistent F 1\nv 2 5 3 6 temporary F 1\n"
          "x 9000 F 0 1 - 0,1 -\nx 16000 F 1 4 - 0 2\nx 9000 F 0 7 - 0,1 -\n"
          "r 0 0 8 0 - -\nr 1 0 3 5 - 3\nr 1 6 10 5 4 -\nr 2 3 6 5 - -\n"
          "e 0 -\ne 1 3\ne 2 4\no 1 0 0\ni 2 0 1,3\n"
          "q compute 0,1,2\nq copy-out 3\nq copy-in 4\nchecksum 0000000000000000\n",
      "test", plan::ChecksumMode::kIgnore);
}

/// That plan, run: op 0 [0, 9), out [9, 14), op 1 [14, 30), in [30, 35), op 2 [35, 44), in us.
inline Subject SwappingSubject(const std::string& name = "relu") {
  Subject subject;
  subject.plan = SwappingPlan(name);
  subject.recorded = subject.plan.problem;
  subject.predicted.times = {
      44000, {0, 14000, 35000, 9000, 30000}, {9000, 30000, 44000, 14000, 35000}};
  subject.predicted.stalls = {{1, 3, 9000, 5000}, {2, 4, 30000, 5000}};
  Figures& figures = subject.figures;
  figures.name = "small.plan";
  figures.link = "h200";
  figures.planner = "autoswap-aoa";
  figures.limit_bytes = 10;
  figures.peak_load_bytes = 15;
  figures.footprint_unlimited_bytes = 15;
  figures.peak_load_planned_bytes = 10;
  figures.footprint_bytes = 10;
  figures.unlimited_ns = 34000;
  figures.iteration_ns = 44000;
  figures.bound_ns = 36000;
  figures.stall_ns = 10000;
  return subject;
}

}  // namespace plimsoll::report

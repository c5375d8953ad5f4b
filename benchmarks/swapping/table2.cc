// SPDX-License-Identifier: Apache-2.0
//
// Table II of paper 001: the largest reduction without overhead, network by network.
#include <fmt/format.h>

#include "plimsoll/planners/reduction.h"
#include "plimsoll/report/table.h"
#include "swapping/paper.h"
#include "swapping/reductions.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

std::string Reduction(const Workload& workload, Bytes limit) {
  return Percent(1 - static_cast<double>(limit) / static_cast<double>(workload.peak_bytes));
}

std::string FootprintReduction(const Workload& workload, const plan::Machine& machine) {
  const auto outcome = planners::LargestReduction(*planners::FindPlanner("autoswap-bo"),
                                                  workload.problem, machine, {});
  return outcome ? Reduction(workload, outcome->plan->limit_bytes) : "-";
}

void AddRow(const Workload& workload, const PaperRow& paper, report::Table* table) {
  Report(fmt::format("table II, {}", workload.name));
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  const planners::PlannerOptions options;
  const Bytes load_min = planners::MinimumCandidateLoad({workload.problem, machine, options});
  const double mb = static_cast<double>(workload.peak_bytes) / 1e6;
  table->Add(
      {workload.name, Megabytes(workload.peak_bytes), fmt::format("{:.1f}", Milliseconds(workload)),
       fmt::format("{:.1f}", mb / Milliseconds(workload)), FootprintReduction(workload, machine),
       Reduction(workload, LoadSwapper(workload, machine).SmallestLimit()),
       Reduction(workload, load_min), fmt::format("{:.1f}", paper.load_mb / paper.milliseconds),
       FootprintReduction(AtPaperRatio(workload, paper), machine), paper.reduction});
}

}  // namespace

void PrintTable2(const std::vector<Workload>& workloads) {
  const double factor = PaperSlowdown(workloads);
  fmt::print(
      "== Table II: largest reduction without overhead, percent of the peak load\n\n"
      "link gtx1080ti; times {:.2f} times as long as recorded, so that {} takes the {:.1f} ms of "
      "the paper's VGG16;\nin the columns of the paper's ratio, so that each network has the "
      "paper's MB of peak load per ms\n\n",
      factor, kVgg16, static_cast<double>(kVgg16Ns) / 1e6);
  report::Table table({"network", "peak MB", "ms", "MB / ms", "footprint, bo", "load, best mixture",
                       "load_min", "paper's MB / ms", "footprint, bo", "paper (load)"});
  for (const Workload& workload : workloads) {
    const PaperRow* paper = FindPaperRow(workload.name);
    if (paper != nullptr) AddRow(WithSlowerOps(workload, factor), *paper, &table);
  }
  fmt::print("{}\n", table.Render());
}

}  // namespace plimsoll::swapping

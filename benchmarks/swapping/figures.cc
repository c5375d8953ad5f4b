// SPDX-License-Identifier: Apache-2.0
//
// Figures 10 and 11 of paper 001: pool and swapping together, over batch sizes and beside others,
// in both scales of Table II. Link gtx1080ti; sizes and times grow with the batch, but for weights,
// their gradients and states.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/place/planner.h"
#include "plimsoll/plan/to_placement.h"
#include "plimsoll/planners/reduction.h"
#include "plimsoll/report/table.h"
#include "swapping/paper.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

constexpr const char* kNetworks[] = {kVgg16, "vgg19_cifar_b100", "resnet18_b100", "resnet50_b64"};
constexpr int kBatches[] = {25, 50, 100, 200, 400};
constexpr double kOverhead = 0.15;
constexpr int kLimits[] = {80, 70, 60, 50};
constexpr const char* kPlanners[] = {"autoswap-bo", "vdnn-all", "vdnn-conv",
                                     "tflms",       "geeps",    "lru"};

Bytes Pool(const char* planner, const Workload& workload) {
  return place::FindPlanner(planner)
      ->place(plan::ToPlacement(workload.recorded).problem, {})
      .footprint_bytes;
}

/// Pool and swapping: the smallest footprint, and what it is less than the baseline, as two cells.
void AddSwapped(const Workload& workload, const plan::Machine& machine, double overhead,
                Bytes baseline, std::vector<std::string>* cells) {
  const auto outcome = planners::LargestReduction(*planners::FindPlanner("autoswap-swdoa"),
                                                  workload.problem, machine, {}, overhead);
  if (!outcome) {
    cells->insert(cells->end(), {"-", "-"});
    return;
  }
  const Bytes footprint = outcome->plan->footprint_bytes;
  cells->push_back(Megabytes(footprint));
  cells->push_back(Percent(1 - static_cast<double>(footprint) / static_cast<double>(baseline)));
}

void PrintBatches(const Workload& workload, const plan::Machine& machine) {
  report::Table table({workload.name, "cnmem MB", "tight MB", "swapping at 0 %", "% less",
                       "at 15 % overhead", "% less"});
  for (const int batch : kBatches) {
    Report(fmt::format("figure 10, {}, batch {}", workload.name, batch));
    const Workload scaled = WithBatch(workload, batch);
    const Bytes cnmem = Pool("cnmem", scaled);
    std::vector<std::string> cells = {fmt::format("batch {}", batch), Megabytes(cnmem),
                                      Megabytes(Pool("tight", scaled))};
    AddSwapped(scaled, machine, 0, cnmem, &cells);
    AddSwapped(scaled, machine, kOverhead, cnmem, &cells);
    table.Add(std::move(cells));
  }
  fmt::print("{}\n", table.Render());
}

void PrintRivals(const Workload& workload, const plan::Machine& machine) {
  std::vector<std::string> header = {workload.name};
  header.insert(header.end(), std::begin(kPlanners), std::end(kPlanners));
  report::Table table(header);
  for (const int percent : kLimits) {
    Report(fmt::format("figure 11, {} at {} %", workload.name, percent));
    std::vector<std::string> cells = {fmt::format("limit {} %", percent)};
    for (const char* name : kPlanners) {
      const planners::Outcome outcome = Plan(*planners::FindPlanner(name), workload, machine,
                                             PercentOf(workload.peak_bytes, percent));
      cells.push_back(OverheadCell(workload, outcome));
    }
    table.Add(std::move(cells));
  }
  fmt::print("{}\n", table.Render());
}

/// The workloads of the figures that are there, in one of the two scales of Table II.
std::vector<Workload> Select(const std::vector<Workload>& workloads, bool paper_ratio) {
  const double factor = PaperSlowdown(workloads);
  std::vector<Workload> selected;
  for (const char* name : kNetworks) {
    for (const Workload& workload : workloads) {
      if (workload.name != name) continue;
      selected.push_back(paper_ratio ? AtPaperRatio(workload, *FindPaperRow(name))
                                     : WithSlowerOps(workload, factor));
    }
  }
  return selected;
}

void PrintScale(const std::vector<Workload>& workloads, bool paper_ratio) {
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  const char* scale = paper_ratio ? "each network at the paper's MB per ms" : "one factor for all";
  const std::vector<Workload> selected = Select(workloads, paper_ratio);
  fmt::print(
      "== Figure 10: footprint in MB over batch sizes, by autoswap-swdoa; % less than cnmem; "
      "times: {}\n\n",
      scale);
  for (const Workload& workload : selected) PrintBatches(workload, machine);
  fmt::print(
      "== Figure 11: overhead in percent at equal memory; \"-\": does not fit; times: {}\n\n",
      scale);
  for (const Workload& workload : selected) PrintRivals(workload, machine);
}

}  // namespace

void PrintFigures(const std::vector<Workload>& workloads) {
  PrintScale(workloads, false);
  PrintScale(workloads, true);
}

}  // namespace plimsoll::swapping

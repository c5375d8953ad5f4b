// SPDX-License-Identifier: Apache-2.0
//
// Table II of paper 001: the largest reduction without overhead, network by network.
#include <fmt/format.h>

#include <utility>

#include "plimsoll/planners/reduction.h"
#include "plimsoll/report/table.h"
#include "swapping/reductions.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

/// What the paper has, in percent.
constexpr std::pair<const char*, const char*> kPaper[] = {
    {"resnet18", "20.7"}, {"resnet34", "24.8"}, {"resnet50", "34.2"}, {"resnet101", "32.4"},
    {"vgg11", "27.0"},    {"vgg13", "29.3"},    {"vgg16", "30.9"},    {"vgg19", "28.5"}};

/// Returns the paper's figure for the network of a trace, nothing if it is not in the paper.
std::string PaperCell(const std::string& name) {
  for (const auto& [network, figure] : kPaper) {
    if (name.starts_with(std::string(network) + "_")) return figure;
  }
  return "";
}

std::string Reduction(const Workload& workload, Bytes limit) {
  return Percent(1 - static_cast<double>(limit) / static_cast<double>(workload.peak_bytes));
}

void AddRow(const Workload& workload, const plan::Machine& machine, report::Table* table) {
  Report(fmt::format("table II, {}", workload.name));
  const planners::PlannerOptions options;
  const auto outcome = planners::LargestReduction(*planners::FindPlanner("autoswap-bo"),
                                                  workload.problem, machine, options);
  const Bytes load_min = planners::MinimumCandidateLoad({workload.problem, machine, options});
  table->Add({workload.name, Megabytes(workload.peak_bytes),
              fmt::format("{:.1f}", static_cast<double>(workload.iteration_ns()) / 1e6),
              outcome ? Reduction(workload, outcome->plan->limit_bytes) : "-",
              Reduction(workload, LoadSwapper(workload, machine).SmallestLimit()),
              PaperCell(workload.name), Reduction(workload, load_min)});
}

}  // namespace

void PrintTable2(const std::vector<Workload>& workloads) {
  const double factor = PaperSlowdown(workloads);
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  fmt::print(
      "== Table II: largest reduction without overhead, percent of the peak load\n\n"
      "link gtx1080ti; times {:.2f} times as long as recorded, so that {} takes the {:.1f} "
      "ms of the paper's VGG16\n\n",
      factor, kVgg16, static_cast<double>(kVgg16Ns) / 1e6);
  report::Table table({"network", "peak MB", "iteration ms", "footprint, bo", "load, best mixture",
                       "paper (load)", "load_min"});
  for (const Workload& workload : workloads) {
    if (PaperCell(workload.name).empty()) continue;
    AddRow(WithSlowerOps(workload, factor), machine, &table);
  }
  fmt::print("{}\n", table.Render());
}

}  // namespace plimsoll::swapping

// SPDX-License-Identifier: Apache-2.0
//
// Figure 9 of paper 001: overhead of the four scores and of their combination on VGG16, over memory
// limits. The paper limits the load, Plimsoll the footprint: both are printed.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/planners/joint_search_internal.h"
#include "plimsoll/planners/reduction.h"
#include "plimsoll/planners/swap_bound.h"
#include "plimsoll/report/table.h"
#include "swapping/reductions.h"
#include "swapping/workload.h"

namespace plimsoll::swapping {
namespace {

constexpr Bytes kMegabyte = 1'000'000;
/// The paper counts 647 MB at the peak, a little less than the log has. What it leaves out is not
/// said; limits are raised by the difference.
constexpr Bytes kPaperPeak = 647 * kMegabyte;
constexpr Bytes kPaperLimits[] = {600, 550, 500, 447, 400, 350, 320, 300, 280};
constexpr const char* kPlanners[] = {"autoswap-doa", "autoswap-aoa", "autoswap-wdoa",
                                     "autoswap-swdoa", "autoswap-bo"};

/// The columns that say which limit.
std::vector<std::string> LimitCells(const Workload& singa, Bytes paper_mb, Bytes limit) {
  return {fmt::format("{}", paper_mb), Megabytes(limit),
          Percent(static_cast<double>(limit) / static_cast<double>(singa.peak_bytes))};
}

std::string Cell(const std::optional<double>& overhead) {
  return overhead ? Percent(*overhead) : "-";
}

void PrintFootprints(const Workload& singa, const plan::Machine& machine) {
  report::Table table({"limit of the footprint, MB", "limit here", "% of peak", "doa", "aoa",
                       "wdoa", "swdoa", "bo", "of which avoidable", "bound"});
  const auto unlimited = static_cast<double>(singa.problem.iteration_ns());
  for (const Bytes paper_mb : kPaperLimits) {
    Report(fmt::format("figure 9, {} MB", paper_mb));
    const Bytes limit = paper_mb * kMegabyte + singa.peak_bytes - kPaperPeak;
    std::vector<std::string> cells = LimitCells(singa, paper_mb, limit);
    planners::Outcome outcome;
    for (const char* name : kPlanners) {
      outcome = Plan(*planners::FindPlanner(name), singa, machine, limit);
      cells.push_back(OverheadCell(singa, outcome));
    }
    cells.push_back(!outcome.plan ? "-"
                                  : Percent(static_cast<double>(planners::AvoidableOverhead(
                                                *outcome.plan, outcome.timeline)) /
                                            unlimited));
    const Nanoseconds bound = planners::SwapBound(singa.problem, machine, limit);
    cells.push_back(Percent(static_cast<double>(bound) / unlimited - 1));
    table.Add(std::move(cells));
  }
  fmt::print("{}\n", table.Render());
}

constexpr std::int64_t kSearchEvaluations = 20'000;
/// Of the overhead, what a random change may cost at first.
constexpr double kSearchHeat = 0.003;

/// What a search over all gaps finds for a limit of the load, as rehearsed: no score, and nothing
/// is placed. The log says nothing of what may run again, so that it only swaps.
std::optional<double> SearchedOverhead(const Workload& singa, const plan::Machine& machine,
                                       Bytes limit) {
  const planners::PlannerOptions options;
  const plan::Rewriter rewriter(singa.problem, options.least_bytes);
  planners::JointSearch search(rewriter, machine, options.alignment, options.seed);
  search.set_target(limit);
  const auto never = [] { return false; };
  planners::Scored best;
  for (const bool all : {false, true}) {
    planners::Scored state;
    state.choices.gaps.assign(search.gaps().size(), planners::Choice::kKeep);
    if (all) search.SwapAll(&state);
    if (!all) search.Descend(&state, false, never);
    search.Time(state.choices, &state.worth);
    if (state.worth.time_ns == planners::Worth::kNoTime) continue;
    search.Relax(&state, never);
    search.Activate(state.choices);
    if (state.worth.time_ns < best.worth.time_ns) best = state;
    if (!search.CanChange()) continue;
    planners::Scored found = state;
    const std::int64_t begin = search.evaluations();
    for (std::int64_t spent = 0; spent < kSearchEvaluations / 2;
         spent = search.evaluations() - begin) {
      const double cold = 1 - 2 * static_cast<double>(spent) / kSearchEvaluations;
      const auto over = static_cast<double>(found.worth.time_ns - singa.problem.iteration_ns());
      search.Anneal(&state, &found, 500, kSearchHeat * over * cold * cold, never);
    }
    if (found.worth.time_ns < best.worth.time_ns) best = found;
  }
  if (best.worth.time_ns == planners::Worth::kNoTime) return std::nullopt;
  return static_cast<double>(best.worth.time_ns) /
             static_cast<double>(singa.problem.iteration_ns()) -
         1;
}

void PrintLoads(const Workload& singa, const plan::Machine& machine, const LoadSwapper& swapper) {
  using planners::Score;
  report::Table table({"limit of the load, MB", "limit here", "% of peak", "doa", "aoa", "wdoa",
                       "swdoa", "best mixture", "search"});
  for (const Bytes paper_mb : kPaperLimits) {
    const Bytes limit = paper_mb * kMegabyte + singa.peak_bytes - kPaperPeak;
    std::vector<std::string> cells = LimitCells(singa, paper_mb, limit);
    for (const Score score : {Score::kDoa, Score::kAoa, Score::kWdoa, Score::kSwdoa}) {
      cells.push_back(Cell(swapper.Overhead(score, limit)));
    }
    const std::optional<double> mixture = swapper.BestOverhead(limit);
    cells.push_back(Cell(mixture));
    const bool none = mixture && *mixture <= 0;
    cells.push_back(Cell(none ? mixture : SearchedOverhead(singa, machine, limit)));
    table.Add(std::move(cells));
  }
  fmt::print("{}\n", table.Render());
}

/// Prints a limit, in the paper's count too.
void PrintLimit(const char* what, const Workload& singa, Bytes limit) {
  const Bytes paper = limit - singa.peak_bytes + kPaperPeak;
  const auto less = [](Bytes bytes, Bytes peak) {
    return Percent(1 - static_cast<double>(bytes) / static_cast<double>(peak));
  };
  fmt::print("{}: {} MB, {} % less than the peak; in the paper's count {} MB, {} % less\n", what,
             Megabytes(limit), less(limit, singa.peak_bytes), Megabytes(paper),
             less(paper, kPaperPeak));
}

}  // namespace

void PrintFigure9(const Workload& singa) {
  const plan::Machine machine = *plan::FindMachine("gtx1080ti");
  fmt::print("== Figure 9: overhead of AutoSwap on VGG16 in percent, link gtx1080ti\n\n");
  fmt::print("peak load {} MB; the paper counts {}. Limits are the paper's and the difference.\n\n",
             Megabytes(singa.peak_bytes), Megabytes(kPaperPeak));
  PrintFootprints(singa, machine);
  const LoadSwapper swapper(singa, machine);
  PrintLoads(singa, machine, swapper);
  const planners::PlannerOptions options;
  PrintLimit("load_min", singa, planners::MinimumCandidateLoad({singa.problem, machine, options}));
  Report("figure 9, the largest reduction");
  const auto outcome = planners::LargestReduction(*planners::FindPlanner("autoswap-bo"),
                                                  singa.problem, machine, options);
  if (outcome) {
    PrintLimit("smallest footprint without overhead", singa, outcome->plan->limit_bytes);
  }
  PrintLimit("smallest load without overhead", singa, swapper.SmallestLimit());
  fmt::print("the paper: 447.0 MB of load, 30.9 % less; load_min below 280 MB\n\n");
}

}  // namespace plimsoll::swapping

// SPDX-License-Identifier: Apache-2.0
#include "cli/ask.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

#include "plimsoll/base/clock.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/reduction.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll::cli {
namespace {

/// One line on stderr that is written over and over, if that is a terminal.
class ProgressLine {
 public:
  ProgressLine(std::string_view planner, Nanoseconds unlimited_ns)
      : shown_(isatty(fileno(stderr)) != 0), planner_(planner), unlimited_ns_(unlimited_ns) {}
  ~ProgressLine() {
    if (shown_ && evaluations_ > 0) fmt::print(stderr, "\r\033[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void CountEvaluation() {
    ++evaluations_;
    Print();
  }
  void NoteBest(Nanoseconds best_ns) {
    best_ns_ = best_ns;
    Print();
  }

 private:
  void Print() const {
    if (!shown_) return;
    std::string best = "nothing fits yet";
    if (best_ns_ > 0 && unlimited_ns_ > 0) {
      best = fmt::format(
          "best overhead so far {:.2f} %; Ctrl-C keeps it",
          100 * (static_cast<double>(best_ns_) / static_cast<double>(unlimited_ns_) - 1));
    }
    fmt::print(stderr, "\r\033[K{}: evaluation {}, {}", planner_, evaluations_, best);
    std::fflush(stderr);
  }

  const bool shown_;
  const std::string_view planner_;
  const Nanoseconds unlimited_ns_;
  int evaluations_ = 0;
  Nanoseconds best_ns_ = 0;
};

/// Returns options that tell the line how a search goes on, and the search when to end.
planners::PlannerOptions Follow(planners::PlannerOptions options, const Interrupt& interrupt,
                                ProgressLine* progress) {
  options.on_progress = [progress](Nanoseconds best_ns) { progress->NoteBest(best_ns); };
  options.stop = [progress, &interrupt] {
    progress->CountEvaluation();
    return interrupt.requested();
  };
  return options;
}

}  // namespace

Answer Asker::Ask(const planners::Planner& planner, Bytes limit_bytes) {
  ProgressLine progress(planner.name, input_.problem.iteration_ns());
  planners::PlannerOptions options = Follow(input_.options, interrupt_, &progress);
  options.limit_bytes = limit_bytes;
  const Stopwatch watch;
  planners::Outcome outcome = planners::MakePlan(planner, input_.problem, input_.machine, options);
  return Describe(planner, limit_bytes, std::move(outcome), watch.seconds());
}

std::optional<Answer> Asker::AskSmallest(const planners::Planner& planner, double max_overhead) {
  ProgressLine progress(planner.name, input_.problem.iteration_ns());
  const planners::PlannerOptions options = Follow(input_.options, interrupt_, &progress);
  const Stopwatch watch;
  std::optional<planners::Outcome> outcome =
      planners::LargestReduction(planner, input_.problem, input_.machine, options, max_overhead);
  if (!outcome) return std::nullopt;
  const Bytes limit_bytes = outcome->plan->limit_bytes;
  return Describe(planner, limit_bytes, std::move(*outcome), watch.seconds());
}

Answer Asker::Describe(const planners::Planner& planner, Bytes limit_bytes,
                       planners::Outcome outcome, double seconds) {
  Answer answer;
  if (outcome.plan) {
    outcome.plan->signature = input_.signature;
    answer.row = DescribePlan(*outcome.plan, outcome.timeline);
    answer.row.peak_load_bytes = input_.peak_load_bytes;
    answer.plan = std::move(outcome.plan);
  } else {
    answer.row = DescribeMisfit(planner, limit_bytes, outcome.misfit);
  }
  answer.row.planning_seconds = seconds;
  return answer;
}

PlanRow Asker::DescribeMisfit(const planners::Planner& planner, Bytes limit_bytes,
                              const plan::Misfit& misfit) {
  PlanRow row;
  row.planner = planner.name;
  row.limit_bytes = limit_bytes;
  row.peak_load_bytes = input_.peak_load_bytes;
  row.unlimited_ns = input_.problem.iteration_ns() / input_.problem.laps;
  row.host_misfit = misfit.host;
  row.needed_bytes = misfit.needed_bytes;
  if (!smallest_limit_bytes_) {
    smallest_limit_bytes_ = planners::SmallestLimit(input_.problem, input_.machine, input_.options);
  }
  row.smallest_limit_bytes = *smallest_limit_bytes_;
  const plan::Problem& problem = input_.problem;
  const std::vector<plan::OpLoad> loads = plan::LoadOps(problem);
  row.largest_op = plan::FindLargestOp(loads);
  if (row.largest_op >= 0) {
    const auto op = static_cast<std::size_t>(row.largest_op);
    row.largest_op_name = problem.op_names[static_cast<std::size_t>(problem.ops[op].name)];
    row.largest_op_bytes = loads[op].needed_bytes();
  }
  return row;
}

std::vector<PlanRow> AskAll(const PlanInput& input, const std::vector<Bytes>& limits,
                            const std::vector<const planners::Planner*>& chosen,
                            const Interrupt& interrupt) {
  std::vector<PlanRow> rows;
  Asker asker(input, interrupt);
  const std::size_t count = limits.size() * chosen.size();
  while (rows.size() < count && (rows.empty() || !interrupt.requested())) {
    const planners::Planner& planner = *chosen[rows.size() % chosen.size()];
    rows.push_back(asker.Ask(planner, limits[rows.size() / chosen.size()]).row);
  }
  if (rows.size() < count) {
    fmt::print(stderr, "plimsoll: interrupted: the best plan so far is kept, {} of {} rows\n",
               rows.size(), count);
  }
  return rows;
}

}  // namespace plimsoll::cli

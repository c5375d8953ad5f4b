// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/reduction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/load_profile.h"
#include "plimsoll/planners/autoswap.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/swap_bound.h"

namespace plimsoll::planners {
namespace {

/// In percent of the peak load.
constexpr int kAmple = 110;
constexpr int kHighest = 100;
constexpr int kStep = 5;
/// Steps in a row that do not pass, after which no lower one is tried.
constexpr int kFailures = 3;
/// One percent is halved this often at most: to an eighth.
constexpr int kBisections = 3;

Bytes HighestOf(const std::vector<Bytes>& load) {
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

/// Looks for the smallest limit that passes, one plan at a time.
class Search {
 public:
  Search(const Planner& planner, const Question& question, double max_overhead)
      : planner_(planner),
        question_(question),
        options_(question.options),
        most_ns_(static_cast<double>(question.problem.iteration_ns()) * (1 + max_overhead)),
        peak_(HighestOf(plan::LeastLoad(question.problem, {}, question.options.alignment))) {}

  std::optional<Outcome> Run() {
    Try(Percent(kAmple));
    int failures = 0;  // In a row, since something has passed.
    for (int percent = kHighest; percent > 0 && failures < kFailures && !Finished();
         percent -= kStep) {
      if (!IsPossible(Percent(percent))) break;
      failures = Try(Percent(percent)) || !best_ ? 0 : failures + 1;
    }
    Refine();
    return std::move(best_);
  }

 private:
  Bytes Percent(int percent) const { return peak_ / 100 * percent + peak_ % 100 * percent / 100; }

  bool Finished() {
    if (!stopped_) stopped_ = best_ && options_.stop && options_.stop();
    return stopped_ || plans_ == kMostReductionPlans;
  }

  /// Whether no proof speaks against it.
  bool IsPossible(Bytes limit) const {
    const bool recomputes = planner_.plan == &PlanJoint;
    Nanoseconds bound = JointBound(question_.problem, question_.machine, limit, recomputes);
    if (!recomputes) {
      bound = std::max(bound, SwapBound(question_.problem, question_.machine, limit));
    }
    return static_cast<double>(bound) <= most_ns_;
  }

  /// Plans at a limit, and keeps the plan if it passes. Limits are tried in falling order, except
  /// for those between the smallest that passed and one that did not.
  bool Try(Bytes limit) {
    ++plans_;
    options_.limit_bytes = limit;
    Outcome outcome = MakePlan(planner_, question_.problem, question_.machine, options_);
    if (!outcome.plan || static_cast<double>(outcome.timeline.iteration_ns) > most_ns_) {
      return false;
    }
    best_ = std::move(outcome);
    return true;
  }

  /// Looks between the smallest limit that passes and the step below it: first by the percent, from
  /// below, up to the first that passes, then by halves.
  void Refine() {
    if (!best_) return;
    const Bytes highest = best_->plan->limit_bytes;
    const bool ample = highest == Percent(kAmple);
    Bytes fails = ample ? Percent(kHighest) : std::max<Bytes>(highest - Percent(kStep), 0);
    for (Bytes limit = fails + Percent(1); limit < highest && !Finished(); limit += Percent(1)) {
      if (Percent(1) == 0 || Passes(limit)) break;
      fails = limit;
    }
    Bytes passes = best_->plan->limit_bytes;
    for (int k = 0; k < kBisections && passes - fails > 1 && !Finished(); ++k) {
      const Bytes middle = fails + (passes - fails) / 2;
      (Passes(middle) ? passes : fails) = middle;
    }
  }

  bool Passes(Bytes limit) { return IsPossible(limit) && Try(limit); }

  const Planner& planner_;
  const Question& question_;
  PlannerOptions options_;
  const double most_ns_;
  const Bytes peak_;
  std::optional<Outcome> best_;
  int plans_ = 0;
  bool stopped_ = false;
};

/// A stretch of one iteration of the timeline.
struct Window {
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

/// Returns when the first op at or behind a position begins.
Nanoseconds StartAt(const plan::Plan& plan, const sim::Timeline& timeline,
                    plan::Position position) {
  for (const plan::CommandIndex c : plan.queues[0]) {
    const plan::Op& op = plan.problem.ops[At(plan.commands[At(c)].op)];
    if (op.position >= position) return timeline.spans[At(c)].start_ns;
  }
  return timeline.iteration_ns;
}

/// Returns how long copies out run in the window, those of earlier and later iterations included.
Nanoseconds BusyIn(const plan::Plan& plan, const sim::Timeline& timeline, const Window& window) {
  Nanoseconds busy = 0;
  const auto add = [&](Nanoseconds start_ns, Nanoseconds end_ns) {
    busy += std::max<Nanoseconds>(
        std::min(end_ns, window.end_ns) - std::max(start_ns, window.begin_ns), 0);
  };
  for (const plan::CommandIndex c : plan.queues[At(static_cast<int>(plan::Queue::kCopyOut))]) {
    sim::Span span = timeline.spans[At(c)];
    if (!plan.problem.cyclic || timeline.iteration_ns == 0) {
      add(span.start_ns, span.end_ns);
      continue;
    }
    const Nanoseconds laps = span.end_ns / timeline.iteration_ns;
    span.start_ns -= laps * timeline.iteration_ns;
    span.end_ns -= laps * timeline.iteration_ns;
    // It ends in [0, period); another iteration's twin may end in the next one and begin in this.
    while (span.start_ns < window.end_ns) {
      add(span.start_ns, span.end_ns);
      span.start_ns += timeline.iteration_ns;
      span.end_ns += timeline.iteration_ns;
    }
  }
  return busy;
}

}  // namespace

std::optional<Outcome> LargestReduction(const Planner& planner, const plan::Problem& problem,
                                        const plan::Machine& machine, const PlannerOptions& options,
                                        double max_overhead) {
  return Search(planner, {problem, machine, options}, max_overhead).Run();
}

Bytes MinimumCandidateLoad(const Question& question) {
  return HighestOf(plan::LeastLoad(question.problem, {ScoreCandidates(question).gaps}));
}

Nanoseconds AvoidableOverhead(const plan::Plan& plan, const sim::Timeline& timeline) {
  const plan::Problem& problem = plan.problem;
  const Nanoseconds overhead = timeline.iteration_ns - problem.iteration_ns();
  if (overhead <= 0 || problem.period == 0) return 0;
  const plan::Position lap = problem.period / problem.laps;
  const plan::Position peak = plan::ProfileLoad(problem).peak_position % lap;
  Nanoseconds idle = 0;
  for (std::int32_t k = 0; k < problem.laps; ++k) {
    const Window climb{StartAt(plan, timeline, k * lap), StartAt(plan, timeline, k * lap + peak)};
    idle += climb.end_ns - climb.begin_ns - BusyIn(plan, timeline, climb);
  }
  return std::min(overhead, idle);
}

}  // namespace plimsoll::planners

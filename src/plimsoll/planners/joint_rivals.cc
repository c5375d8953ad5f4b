// SPDX-License-Identifier: Apache-2.0
//
// The part of `joint` that asks the other planners: where to begin, and, in the end, whether one of
// them does better.
#include <algorithm>
#include <utility>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/joint_bound.h"
#include "plimsoll/planners/joint_internal.h"

namespace plimsoll::planners {
namespace {

/// Of the budget: until when they are asked where to begin, and, in a large problem, or if it is
/// not known whether they would do better, for a plan.
constexpr double kRivalsEnd = 0.3;
constexpr double kRivalsLast = 1.1;
/// The scores combined may be so much better than one alone: by one part in so many.
constexpr Nanoseconds kReachOfScores = 6;
/// The same where there is no plan yet, and seconds that they have then, however short the budget
/// is, unless the problem is large; and a time that no plan takes.
constexpr double kRivalsAlone = 3;
constexpr double kRivalsSeconds = 2;
constexpr Nanoseconds kAnyTime = Worth::kNoTime / 2;
/// Where there are so few variables, the scores combined are asked from scratch.
constexpr std::size_t kFewVariables = 700;
/// With less load than the limit allows, a rival may do better than at the limit: by one part in so
/// many; and where there is little time, only if it has no more than so many times the overhead,
/// and of all ops one part in so many.
constexpr Nanoseconds kReachOfLoads = 2;
constexpr Nanoseconds kReachOfOverheads = 3;
constexpr Nanoseconds kSmallOverhead = 100;

}  // namespace

std::vector<const Planner*> Joint::ListRivals() const {
  std::vector<const Planner*> rivals;
  if (!search_.IsSmall()) return rivals;
  for (const Planner& rival : Planners()) {
    if (rival.choose != nullptr) rivals.push_back(&rival);
  }
  return rivals;
}

Scored Joint::BeginFrom(const Planner& rival) {
  if (IsOver(kRivalsEnd)) return {};
  const Offer offer = rival.choose(question_, &evaluator_)(search_.target());
  Scored state{{offer.choices, {}, offer.horizon}, {}};
  search_.Time(state.choices, &state.worth);
  if (state.worth.time_ns < Worth::kNoTime) search_.Relax(&state, Until(kRivalsEnd));
  return state;
}

bool Joint::MayBeat(Nanoseconds predicted_ns) const {
  if (search_.IsSmall()) return predicted_ns <= made_ns_ + made_ns_ / kReachOfLoads;
  const Nanoseconds overhead = made_ns_ - base_ns_;
  return predicted_ns - base_ns_ <= kReachOfOverheads * overhead + base_ns_ / kSmallOverhead;
}

void Joint::TakeBetterRival() {
  const Bytes limit = question_.options.limit_bytes;
  const auto give_up = [this] {
    return IsStopped() || (!search_.IsSmall() && IsOver(kRivalsLast));
  };
  // No plan that only swaps is faster than this.
  const Nanoseconds bound =
      JointBound(question_.problem, question_.machine, limit, /*may_recompute=*/false);
  Nanoseconds closest = Worth::kNoTime;
  for (const Planner& rival : Planners()) {
    if (made_ns_ <= base_ns_ || give_up()) return;
    if (rival.decide != nullptr && made_ns_ > bound) {
      const Decider decide = rival.decide(question_);
      const auto predicted =
          plan::PredictIteration(question_.problem, decide(limit), question_.machine,
                                 ToScheduleOptions(question_.options));
      // What waits for ever at the limit may run with less load.
      const bool unknown = !predicted && search_.IsSmall() && !IsOver(kRivalsLast);
      if (predicted ? !MayBeat(*predicted) : !unknown) continue;
      closest = std::min(closest, predicted.value_or(Worth::kNoTime));
      if (auto faster = MakeFaster(question_, decide, made_ns_, give_up)) Take(std::move(*faster));
    } else if (rival.choose != nullptr && search_.IsSmall()) {
      const JointState state = ConsiderRival(rival, question_, limit, &evaluator_);
      const auto made_ns = static_cast<double>(made_ns_);
      if (state.time_ns >= made_ns) continue;
      Take(MakeFitByChoices(question_, rival.choose, made_ns));
    }
  }
  // Combined, the scores may be so much better than one of them alone.
  if (give_up() || made_ns_ <= bound) return;
  if (closest - made_ns_ > made_ns_ / kReachOfScores) return;
  PlannerOptions options = question_.options;
  options.stop = give_up;
  const Question question{question_.problem, question_.machine, options};
  if (question_.problem.variables.size() <= kFewVariables) {
    Take(PlanBayes(question));
  } else if (auto faster = PlanBayesBelow(question, made_ns_)) {
    Take(std::move(*faster));
  }
}

bool Joint::TakeAnyRival() {
  const Bytes limit = question_.options.limit_bytes;
  // Below this, nobody can who only swaps.
  const std::vector<Bytes> swapped =
      plan::LeastLoad(question_.problem, {plan::ListGaps(question_.problem, 1)});
  const bool swaps_will_do =
      std::all_of(swapped.begin(), swapped.end(), [&](Bytes bytes) { return bytes <= limit; });
  PlannerOptions options = question_.options;
  options.least_bytes = 1;
  const Question question{question_.problem, question_.machine, options};
  const Stopwatch watch;
  const auto give_up = [&] {
    if (made_) return IsOver();
    const bool counts = question_.options.evaluations > 0;
    const bool has_time = search_.IsSmall() && !counts && watch.seconds() < kRivalsSeconds;
    return IsStopped() || (!has_time && IsOver(kRivalsAlone));
  };
  for (const Planner& rival : Planners()) {
    if (give_up()) break;
    if (rival.decide != nullptr && swaps_will_do) {
      const Nanoseconds below = std::min(made_ns_, kAnyTime);
      auto found = MakeFaster(question, rival.decide(question), below, give_up);
      if (found) Take(std::move(*found));
    } else if (rival.choose != nullptr && search_.IsSmall()) {
      Take(MakeFitByChoices(question, rival.choose));
    }
  }
  return made_.has_value();
}

}  // namespace plimsoll::planners

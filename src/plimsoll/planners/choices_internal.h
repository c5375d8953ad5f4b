// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/planners/joint_state_internal.h"
#include "plimsoll/planners/lineage_internal.h"

/// Planners that decide for every gap whether its variable stays, is dropped or goes to the host.
/// Rewriting, scheduling, placement and judgement are the same for all of them, so a comparison of
/// them is a comparison of choices.
namespace plimsoll::planners {

/// What becomes of every gap of JointEvaluator::gaps(), and how long what is rebuilt on the way
/// stays (plan::Rewriter::Rewrite()).
struct Offer {
  std::vector<Choice> choices;
  plan::OpIndex horizon = plan::Rewriter::kFar;
};

/// Says what comes of an offer with the load held to `target_bytes`, which the evaluator is left
/// at. Nothing goes if what is offered cannot be rebuilt. The state is evaluated; its time is
/// kNever if the load is not held.
JointState Consider(Offer offer, Bytes target_bytes, JointEvaluator* evaluator);

/// Says what comes of what a planner chooses for a load limit: what `joint` may begin from.
/// REQUIRES: planner.choose; an evaluator of the same question.
JointState ConsiderRival(const Planner& planner, const Question& question, Bytes load_limit_bytes,
                         JointEvaluator* evaluator);

/// Makes a plan of what `choose` says, as MakeFit() of planner.h does of decisions: it is asked at
/// the limit and at ever lower loads, what is rehearsed to be fastest, and not slower than
/// `below_ns`, is placed first. Returns the first that fits, or the one that needs least.
Attempt MakeFit(const Question& question, const Chooser& choose, JointEvaluator* evaluator,
                double below_ns = kNever);

/// The same for a planner that has a chooser.
Attempt MakeFitByChoices(const Question& question, ChooseFunction choose, double below_ns = kNever);

/// Offers that do not depend on the limit, each evaluated once.
class Family {
 public:
  /// Begins with that everything stays.
  Family(const Question& question, JointEvaluator* evaluator);

  /// Returns the highest load that an offer brings; kMaxBytes, and forgets it, if it cannot be
  /// done.
  Bytes Add(Offer offer);

  /// The one that costs least of those whose load is within the limit, the first if several do; the
  /// one with the lowest load if there is none.
  const Offer& For(Bytes load_limit_bytes) const;

 private:
  struct Member {
    Offer offer;
    Bytes peak_bytes = 0;
    double cost_ns = 0;
  };
  const Question& question_;
  JointEvaluator* evaluator_;
  std::vector<Member> members_;
};

/// The highest load of a state at best, with everything that is swapped away for as long as can be.
Bytes PeakOf(const Question& question, const JointState& state);

/// Everything stays.
Offer KeepAll(const JointEvaluator& evaluator);

/// Per gap: whether it can be dropped, whatever else is, and whatever is not there any more.
std::vector<bool> ListDroppable(const JointEvaluator& evaluator, const Lineage& lineage);

}  // namespace plimsoll::planners

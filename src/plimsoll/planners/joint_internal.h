// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/planners/joint_search_internal.h"
#include "plimsoll/planners/joint_state_internal.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// `joint`, as joint.cc describes it: the search for choices is there, joint_place.cc makes plans
/// of them, joint_rivals.cc asks the other planners, and joint_threads.cc searches on several
/// threads.
class Joint {
 public:
  explicit Joint(const Question& question)
      : options_(question.options),
        question_{question.problem, question.machine, options_},
        evaluator_(question_),
        search_(evaluator_.rewriter(), question.machine, options_.alignment, options_.seed),
        deadline_(options_.time_budget_seconds),
        base_ns_(question.problem.iteration_ns()) {
    search_.set_host_limit(options_.host_limit_bytes);
  }
  Joint(const Joint&) = delete;
  Joint& operator=(const Joint&) = delete;

  Attempt Run();
  /// Makes a plan of the start that gets lowest, and tries nothing else.
  std::optional<Attempt> RunBriefly();

 private:
  /// Of the budget, from when on a search walks (WalkPlaced()) that is alone; of several, every
  /// other one walks at once, and the others never.
  static constexpr double kAloneWalksFrom = 0.75;
  /// Where a search begins.
  struct Start {
    double share;  ///< JointSearch::FillLink(); 0: the link is left empty at first.
    bool area;     ///< JointSearch::Reduce()
    plan::OpIndex horizon = plan::Rewriter::kFar;
  };
  static const std::vector<Start>& Starts();

  // Of the question and the budget:
  bool IsHuge() const;
  /// Whether one op needs more than the limit by itself: then there is no plan.
  bool IsOutOfReach() const;
  Bytes PersistentBytes() const;
  /// Whether what is persistent, which cannot be rebuilt, leaves room within the limit.
  bool MayDoWithoutSwaps() const;
  double Limit() const { return static_cast<double>(question_.options.limit_bytes); }
  bool IsStopped() const { return question_.options.stop && question_.options.stop(); }
  /// How much of the budget is spent.
  double Progress() const;
  bool IsOver(double progress = 1) const { return Progress() >= progress || IsStopped(); }
  JointSearch::IsOver Until(double progress) const;
  /// However short the time is, there must be something to begin with.
  JointSearch::IsOver UntilFound(double progress) const;

  // Choices:
  Scored Empty() const;
  /// Finds choices for the target from scratch; ones that take for ever if it finds none. Once
  /// there are any, it takes no longer than to `end`, of the budget.
  Scored Begin(const Start& start, double end = 1);
  /// Goes on from where starts got stuck that did not reach the target; choices that take for ever
  /// if that does not help.
  Scored Mend();
  /// Keeps again what need not go, and swaps what the link carries, once the target is reached.
  void Settle(Scored* state, double end);
  /// Everything goes to the host, and what is better rebuilt is rebuilt.
  Scored LastResort();
  /// Looks for better choices, from other starts, the first of them `next`, and on from the best.
  void Search(std::size_t next);
  /// Tries the other starts, and what other planners choose.
  void TryStarts(std::size_t next);
  /// Remembers choices to search on from, if they are among the best so far.
  void Enter(Scored state);
  void SortField();
  /// Searches on from the starts, in rounds: after each, the better half goes on. How good a start
  /// is by itself says little about where it leads. Returns where the best of them got to.
  Scored HoldHeats();
  /// After the heats, who is far behind goes on from where the best of all threads is.
  void CatchUp();
  /// Looks for better choices from the best on, and makes plans of them, until time is up.
  void GoOn();
  void AnnealOn(Scored* state);
  /// What a random change may cost at first, for choices like these: about as much as one of them.
  double HeatOf(const Scored& state) const;

  // Plans:
  /// Keeps a plan if it is the best so far; says whether it is.
  bool Take(Attempt attempt);
  /// Takes the plan of a chain, if the iteration is one and it is better.
  void TakeChain();
  /// Makes a plan of choices; keeps it if it is the best so far. Returns whether it can be placed.
  bool Make(const Scored& state);
  /// Makes a plan of the best choices as they are, or of ones for lower targets.
  void MakeFirst();
  /// Makes a plan of the best. False if it cannot be placed, or its addresses make ops wait.
  bool MakeAsPredicted();
  /// Makes a plan of the best, or of something close to it that leaves more room.
  void MakeLast();
  /// Of the limit, by how much the last plan that could not be placed was above it.
  double Missing() const { return static_cast<double>(needed_bytes_) / Limit() - 1; }
  /// Goes on from the best plan so far. False if there is none of ours.
  bool GoBack();
  /// Whether what is chosen by loads alone is far from being placed, placing is quick, and it is
  /// time to walk.
  bool MayWalk() const;
  /// Nothing can be placed for a target that is higher than that of the best plan by more than a
  /// little: goes back to that plan, if it is not much slower, and up halfway from there. Returns
  /// whether it did.
  bool ComeDown(Scored* state);
  /// Raises the target halfway to where it cannot be. What is found so far stays good.
  void Raise();
  /// The best cannot be placed. Looks for others that take about as long, step by step for such
  /// that need fewer addresses. Returns whether one of them can be placed.
  bool Squeeze(Scored* state);
  /// The same choices, with copies in that begin later, if that takes no longer than `most_ns` and
  /// is faster than the best plan: what is not there needs no addresses. Returns whether that can
  /// be placed; if not, the search still goes on from there.
  bool ComeLater(Nanoseconds most_ns, Scored* state);
  /// Goes on from the best plan by steps that can be placed, until time is up.
  void WalkPlaced();
  /// What misses by very little is brought under a target that is lower by little more, if it is
  /// then still faster than the best plan. Returns whether that can be placed; if not, the search
  /// still goes on from there.
  bool GiveWay(Scored* state);
  /// Lowers the target by a part of itself, or by more if the last plan was far from being placed.
  void GiveUp(double part);
  /// Brings choices under a target that is lower than it was. False if that cannot be done.
  bool Tighten(Scored* state);
  /// The best cannot be placed. Looks around for others of the same target, and every few times for
  /// some that leave more room, if these are not much slower.
  void Retreat(Scored* state);
  /// Looks for choices close to some that cannot be placed.
  void LookAround(const Scored& misfit, Scored* state);
  /// Brings the best under a lower target: much lower if it was far from being placed, or else a
  /// little. False, and all is as it was, if it cannot be.
  bool LowerTarget();

  // Other planners:
  /// Those who choose for every gap.
  std::vector<const Planner*> ListRivals() const;
  /// Begins from what another planner chooses; choices that take for ever if they do not fit.
  Scored BeginFrom(const Planner& rival);
  /// Takes what another planner would do, if it is better. Asks only whom nothing rules out, and of
  /// large problems only for a short while.
  void TakeBetterRival();
  /// Takes the best plan that any other planner has, where there is none yet, however small what it
  /// swaps. False if nobody has one.
  bool TakeAnyRival();
  /// Whether a rival that is predicted to take so long at the limit may still be better.
  bool MayBeat(Nanoseconds predicted_ns) const;

  // Several threads:
  /// A search beside another, from where that stands, which outlives it.
  Joint(Joint* lead, std::uint64_t seed, double walks_from);
  /// Gets a search for each thread that there is beside this one.
  void Engage();
  /// Calls `work` on all threads at once, each with its own search, this one too, and waits for
  /// them. Who asked the question is called by this thread alone.
  void Together(const std::function<void(Joint* joint)>& work);
  /// Takes the best plan of all threads.
  void TakeFromHelpers();
  /// Notes how good a plan is that any thread has made,
  void Note(Nanoseconds made_ns);
  /// and tells who asked.
  void Report();

  PlannerOptions options_;
  const Question question_;
  JointEvaluator evaluator_;
  JointSearch search_;
  const Deadline deadline_;
  const Nanoseconds base_ns_;  // Nothing is faster than the recorded ops alone.
  Scored best_;                // For the target, whether it can be placed or not.
  Scored roomy_;               // The first that was found, before what need not go was kept again.
  Scored placed_;              // What the best plan was made of.
  Bytes placed_target_ = 0;
  Bytes ceiling_ = 0;  // Of targets: what was found there could not be placed, or it is the limit.
  std::vector<Scored> field_;            // Starts to search on from, the best first.
  Bytes needed_bytes_ = 0;               // By the last plan that could not be placed.
  double walks_from_ = kAloneWalksFrom;  // Of the budget: MayWalk().
  int misfits_ = 0;                      // Of the search.
  std::optional<Attempt> made_;
  Nanoseconds made_ns_ = Worth::kNoTime;

  // If there are several threads, of the one that asks the others:
  std::vector<std::unique_ptr<Joint>> helpers_;
  std::function<bool()> callers_stop_;
  std::function<void(Nanoseconds)> callers_on_progress_;
  std::atomic<bool> stopped_ = false;                   // All of them.
  std::atomic<Nanoseconds> noted_ns_ = Worth::kNoTime;  // The best plan of all,
  Nanoseconds reported_ns_ = Worth::kNoTime;            // and as far as the caller knows.
};

}  // namespace plimsoll::planners

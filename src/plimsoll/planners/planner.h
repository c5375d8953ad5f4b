// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "plimsoll/plan/schedule.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::learn {
struct Policy;
}  // namespace plimsoll::learn

/// Planners decide which gaps are swapped, and some of them which are dropped; all else is the same
/// for all of them: rewriting, scheduling, placement, judgement and simulation. So a comparison of
/// planners is a comparison of decisions.
namespace plimsoll::planners {

struct PlannerOptions {
  Bytes limit_bytes = 0;
  Bytes host_limit_bytes = kMaxBytes;
  Bytes least_bytes = Bytes{1} << 20;  ///< Smaller variables stay (paper 001, section IV-A).
  Bytes alignment = kDefaultAlignment;
  std::uint64_t seed = 1;
  std::int64_t place_nodes = 4'000;  ///< For each placement of residencies.
  /// How long an anytime planner may search; or, if `evaluations` is positive, how many choices it
  /// may look at, whatever time that takes: then equal questions have equal answers.
  double time_budget_seconds = 5;
  std::int64_t evaluations = 0;
  /// How many threads a search by time may use; 0 for as many as the machine has, within reason.
  /// With `evaluations`, it is one.
  int threads = 0;
  /// Called by long searches with the best iteration time so far; like `stop`, by the thread that
  /// called the planner.
  std::function<void(Nanoseconds best_ns)> on_progress{};
  /// Asked by long searches before each evaluation. If it says true, the search ends there,
  /// with the best so far, once it has found anything that fits.
  std::function<bool()> stop{};
  /// For planners that learn: the weights to begin with, null for random ones, and who gets those
  /// that were learned, once, when the search has ended (learn/policy.h).
  const learn::Policy* policy = nullptr;
  std::function<void(const learn::Policy&)> on_policy{};
};

/// What PlannerOptions::least_bytes had best be: 1 MiB as in paper 001, or of less than a gigabyte
/// a thousandth of the peak load, so that small networks have as much to choose from as large ones.
[[nodiscard]] Bytes LeastBytesFor(const plan::Problem& problem);

/// What a planner is asked about.
struct Question {
  const plan::Problem& problem;
  const plan::Machine& machine;
  const PlannerOptions& options;
};

/// Says what to swap to bring the load under a limit, which is at or under that of the footprint;
/// the best that the planner has if it cannot. Used only while the question lives.
using Decider = std::function<plan::Decision(Bytes load_limit_bytes)>;
using DecideFunction = Decider (*)(const Question&);

/// For planners that look at whole plans.
using PlanFunction = struct Attempt (*)(const Question&);

/// For planners that also recompute: says what becomes of every gap (choices_internal.h) to bring
/// the load under a limit; the best that the planner has if it cannot. Used only while question and
/// evaluator live.
using Chooser = std::function<struct Offer(Bytes load_limit_bytes)>;
using ChooseFunction = Chooser (*)(const Question&, class JointEvaluator*);

struct Planner {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  DecideFunction decide = nullptr;  ///< One of these two, or `choose`.
  PlanFunction plan = nullptr;
  /// Whether it swaps whatever it takes where its own choice does not fit (smallest.h).
  bool goes_to_any_length = false;
  ChooseFunction choose = nullptr;
  /// Whether it learns weights that can be kept: PlannerOptions::policy.
  bool learns = false;
};

/// All planners of iterations, in the order of the papers.
const std::vector<Planner>& Planners();
const Planner* FindPlanner(std::string_view name);

/// The outcome of planning: a plan with its predicted timeline, or why there is none.
struct Outcome {
  std::optional<plan::Plan> plan;
  sim::Timeline timeline;
  plan::Misfit misfit;  ///< If there is no plan.
};

/// Asks the planner, makes a plan of its decision (MakeFit()) and simulates it. Every plan returned
/// has passed
/// plan::CheckPlan(): one that does not is a bug, and aborts. Equal questions have equal answers.
/// REQUIRES: every variable of the problem has one instance (plan::Unroll()).
Outcome MakePlan(const Planner& planner, const plan::Problem& problem, const plan::Machine& machine,
                 const PlannerOptions& options);

/// A decision and what became of it.
struct Attempt {
  plan::Decision decision;
  std::variant<plan::Plan, plan::Misfit> made;
  Bytes load_limit_bytes = 0;  ///< What was decided for.

  const plan::Plan* plan() const { return std::get_if<plan::Plan>(&made); }
};

/// Attempts that were seen not to fit. Placing is what takes long, most of all where it fails: who
/// asks for many plans of one question need not fail twice.
class Misfits {
 public:
  /// Nothing if the attempt is not known.
  const plan::Misfit* Find(const plan::Decision& decision, Bytes load_limit) const;
  void Add(const plan::Decision& decision, Bytes load_limit, const plan::Misfit& misfit);

 private:
  struct Seen {
    plan::Decision decision;
    plan::Misfit misfit;
  };
  std::map<Bytes, std::vector<Seen>> at_load_;
};

/// Makes a plan of what `decide` says for a load limit. Fragmentation needs room, how much cannot
/// be told: so decisions are asked for at the limit and at ever lower loads, and the one that is
/// predicted to be fastest, and not slower than `below_ns`, is placed first. Returns the first that
/// fits, or the one that needs least.
Attempt MakeFit(const Question& question, const Decider& decide);
/// The same, with a memory of what did not fit.
Attempt MakeFit(const Question& question, const Decider& decide, Nanoseconds below_ns,
                Misfits* misfits);

/// The same for who has a plan already, of `below_ns`: nothing is placed that is predicted to be
/// slower. Returns a faster plan, or nothing; nothing, too, if it is to `give_up` meanwhile.
std::optional<Attempt> MakeFaster(const Question& question, const Decider& decide,
                                  Nanoseconds below_ns, const std::function<bool()>& give_up);

/// Of the limit, what the load is held to, in the order in which MakeFit() asks: 1 first.
std::span<const double> LoadShares();

/// How the planner's options look to the scheduler.
plan::ScheduleOptions ToScheduleOptions(const PlannerOptions& options);

// The decisions; each has a file of its own, where it is described.
Decider DecideNothing(const Question& question);
Decider DecideDoa(const Question& question);
Decider DecideAoa(const Question& question);
Decider DecideWdoa(const Question& question);
Decider DecideSwdoa(const Question& question);
Attempt PlanBayes(const Question& question);
/// The same for who has a plan already, of `below_ns`, and has asked for the scores alone: returns
/// a faster plan, or nothing.
std::optional<Attempt> PlanBayesBelow(const Question& question, Nanoseconds below_ns);
Attempt PlanJoint(const Question& question);
/// The same for who only asks whether there is a plan: nothing is searched for.
std::optional<Attempt> PlanJointBriefly(const Question& question);
Attempt PlanDqn(const Question& question);
Attempt PlanDqnSwap(const Question& question);
Attempt PlanLayrubIntra(const Question& question);
Attempt PlanLayrubInter(const Question& question);
Attempt PlanLayrubHybrid(const Question& question);
Decider DecideVdnnAll(const Question& question);
Decider DecideVdnnConv(const Question& question);
Decider DecideTflms(const Question& question);
Decider DecideGeeps(const Question& question);
Decider DecideLru(const Question& question);

// The choices, likewise.
Chooser ChooseMemonger(const Question& question, JointEvaluator* evaluator);
Chooser ChooseSuperNeurons(const Question& question, JointEvaluator* evaluator);
Chooser ChooseSuperNeuronsSwap(const Question& question, JointEvaluator* evaluator);
Chooser ChooseSuperNeuronsRecompute(const Question& question, JointEvaluator* evaluator);
Chooser ChooseCapuchin(const Question& question, JointEvaluator* evaluator);
Chooser ChooseDtr(const Question& question, JointEvaluator* evaluator);
Chooser ChooseCheckpointBlocks(const Question& question, JointEvaluator* evaluator);

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/learn/q_network_internal.h"
#include "plimsoll/planners/joint_state_internal.h"

namespace plimsoll::planners {

/// What the agent of paper 000 acts in: an iteration that it walks through once, from its first op
/// to its last, swapping variables out or removing them until the load is within the target
/// everywhere (sections 4.5 to 4.8).
///
///     ops       0    1    2    3    4    5    6        copies out take 1.5 ops
///     agent     ●──▶ ● ────────────▶ ●──▶ ●
///               nothing  swap x      remove y
///
/// The agent stops only where there is something to decide: where a gap begins that spans an op
/// whose load is still above the target, and right before such an op, where it must act. Then only
/// what makes room for that op counts; if the agent can do nothing about it, the environment swaps
/// whatever there is, the largest first, and if there is nothing, the episode has failed.
///
/// An action is worth, in negative time, what it adds to the rehearsed iteration: replays, and
/// copies as far as nothing hides them. The rehearsal brings variables back in the order of their
/// next use, as early as memory allows (section 4.5), or just in time. Up to the agent the target
/// is held; behind it the rehearsal has the memory that the load still takes. So an action is
/// charged when the ops reach what it causes, and the rewards of an episode add up to the overhead
/// of its plan.
class DqnEnvironment {
 public:
  /// Without `may_remove`, variables are only swapped. Keeps a reference to the question.
  DqnEnvironment(const Question& question, bool may_remove);

  /// Whether there is anything to swap or remove; if not, nothing below may be called.
  bool has_candidates() const { return !candidates_.empty(); }
  const learn::OperationGraph& graph() const { return graph_; }

  std::int64_t evaluations() const { return evaluator_.evaluations(); }

  /// Goes back to the beginning of the iteration. The load is to be brought under the target; what
  /// was swapped comes back as `prefetch` says (plan/rehearsal.h).
  void Reset(Bytes target_bytes, double prefetch);
  /// The agent, and the nodes whose actions it may take. REQUIRES for all below: Reset().
  const learn::AgentState& state() const { return state_; }
  /// Whether the episode is over: the load is within the target, or it has failed.
  bool terminal() const { return done_ || failed_; }
  /// Whether the load cannot be brought under the target any more.
  bool failed() const { return failed_; }
  /// The op that the agent is at; -1 before the first.
  plan::OpIndex op() const { return op_; }

  /// Whether a valid node stands for a removal.
  bool IsRemoval(learn::NodeIndex node) const {
    return graph_.features[static_cast<std::size_t>(node)][learn::kAction] < 0;
  }
  /// Whether it stands for doing nothing.
  bool IsNothing(learn::NodeIndex node) const {
    return graph_.actions[static_cast<std::size_t>(action_at_[static_cast<std::size_t>(node)])]
               .kind == learn::ActionKind::kNothing;
  }
  /// Takes the action of a valid node; returns the reward, 1 being kRewardUnit of the iteration.
  double Take(learn::NodeIndex node);

  /// Time of the rehearsed iteration. REQUIRES: terminal() and not failed().
  double time_ns() const { return time_ns_; }
  const std::vector<Choice>& choices() const { return joint_.choices; }
  Bytes target() const { return evaluator_.target(); }
  double prefetch() const { return joint_.prefetch; }
  /// Makes a plan of the choices, with as much memory for the load and with variables that come
  /// back as early as promises to be fastest; where that cannot be placed, the next of those that
  /// promise to take less than `below_ns`, and at last as it is. One at least is tried, others
  /// until `give_up` says so.
  Attempt Make(double below_ns, const std::function<bool()>& give_up);

  static constexpr double kRewardUnit = 0.01;
  /// What a failure costs, in rewards.
  static constexpr double kFailure = 30;

 private:
  /// What a plan of the same choices is made with.
  struct Try {
    double ns = 0;  ///< That it promises to take.
    Bytes load_bytes = 0;
    double prefetch = 0;

    /// The promise follows from the rest.
    friend bool operator==(const Try& a, const Try& b) {
      return a.load_bytes == b.load_bytes && a.prefetch == b.prefetch;
    }
  };

  void Set(const Try& x);
  std::vector<Try> ListTries(double below_ns);
  bool TryChoice(std::size_t gap, Choice choice);
  bool SwapAnything();
  void Measure();
  double Predict();
  double Charge();
  plan::Position MadePosition(plan::OpIndex op) const;
  plan::OpIndex CopyOut(std::size_t candidate);
  void Advance(plan::OpIndex from);
  void ListValid();
  bool IsValid(std::size_t candidate) const;
  bool Spans(std::size_t candidate, plan::OpIndex from, plan::OpIndex to) const;
  bool IsOverWithin(plan::OpIndex from, plan::OpIndex to) const;
  bool blocked() const;

  const Question& question_;
  JointEvaluator evaluator_;
  std::vector<learn::Candidate> candidates_;
  std::vector<std::size_t> gap_of_;               // Per candidate: its gap.
  std::vector<std::vector<std::size_t>> starts_;  // Per op: the candidates whose gaps it begins.
  std::vector<Nanoseconds> start_ns_;             // Per op, and the end of the last.
  learn::OperationGraph graph_;
  std::vector<std::int32_t> action_at_;  // Per node; -1 for none.

  JointState joint_;
  std::vector<bool> banned_;        // Per candidate: it cannot be removed as things are.
  std::vector<std::int32_t> over_;  // Per op, how many before it are above the target.
  Bytes peak_bytes_ = 0;            // Of the least load.
  double time_ns_ = 0;
  Nanoseconds link_free_ns_ = 0;  // When the copies out that were decided have ended.
  plan::OpIndex op_ = -1;
  bool done_ = false;
  bool failed_ = false;
  learn::AgentState state_;
};

}  // namespace plimsoll::planners

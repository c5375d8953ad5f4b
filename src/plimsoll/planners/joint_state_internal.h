// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/plan/rewrite.h"
#include "plimsoll/planners/joint_sketch_internal.h"
#include "plimsoll/planners/planner.h"

/// What `joint` chooses among, and what a choice is worth.
namespace plimsoll::planners {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// What is chosen for every gap, and what comes of it.
struct JointState {
  std::vector<Choice> choices;
  std::vector<bool> lingers;                     ///< Per variable, or empty.
  plan::OpIndex horizon = plan::Rewriter::kFar;  ///< For what is rebuilt on the way.
  double prefetch = plan::kPrefetchJustInTime;   ///< Of all that comes back.
  std::optional<plan::Rewritten> rewritten;
  plan::Decision swaps;     ///< Gaps of the rewritten problem.
  double excess = 0;        ///< Bytes above the target, summed over ops.
  double cost_ns = 0;       ///< Of replays, and of copies as if nothing hid them.
  double time_ns = kNever;  ///< Of the rehearsed iteration, once it has been rehearsed.
};

/// Says what comes of choices: rewrites the problem, adds up costs and loads, rehearses, makes
/// plans.
class JointEvaluator {
 public:
  explicit JointEvaluator(const Question& question);

  const plan::Rewriter& rewriter() const { return rewriter_; }
  const std::vector<plan::Gap>& gaps() const { return gaps_; }
  bool CanDrop(std::size_t gap) const { return rewriter_.CanDrop(gap); }
  Bytes SizeOf(std::size_t gap) const;
  /// Time of both copies of a gap's variable.
  double CopyNs(std::size_t gap) const;

  /// What the load is to be brought under.
  Bytes target() const { return target_; }
  void set_target(Bytes bytes) { target_ = bytes; }
  /// How many choices have been looked at.
  std::int64_t evaluations() const { return evaluations_; }

  /// Rewrites by the choices, and adds up cost and excess. False if it cannot be done.
  bool Evaluate(JointState* state);

  /// Rehearses the iteration, if nothing exceeds the target.
  void Rehearse(JointState* state) const;

  /// Makes a plan with the load within the target. REQUIRES: the state has been evaluated.
  Attempt Make(const JointState& state) const;

 private:
  void MapSwaps(JointState* state) const;
  std::optional<plan::Gap> FindLongest(
      const plan::Problem& problem, const std::vector<plan::OpIndex>& recorded,
      const std::vector<std::pair<plan::VariableIndex, plan::OpIndex>>& replays,
      std::size_t gap) const;
  plan::VariableIndex OperandAt(const plan::Problem& problem, const plan::Gap& gap,
                                plan::OpIndex op) const;
  Attempt MakeOfRecorded(const JointState& state, const plan::ScheduleOptions& schedule) const;

  const Question& question_;
  const plan::Rewriter rewriter_;
  const std::vector<plan::Gap>& gaps_;
  Bytes target_ = 0;
  std::int64_t evaluations_ = 0;
};

}  // namespace plimsoll::planners

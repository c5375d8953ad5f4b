// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/choices_internal.h"
#include "plimsoll/planners/dropped_classes_internal.h"

namespace plimsoll::planners {

/// What every run of DtrRuntime needs to know of a problem.
struct DtrModel {
  /// Keeps references.
  DtrModel(const Question& question, const JointEvaluator& evaluator);

  const plan::Problem& problem;
  const JointEvaluator& evaluator;
  const Lineage lineage;
  const std::vector<bool> droppable;           ///< Per gap.
  std::vector<Nanoseconds> rebuild_ns;         ///< Per gap: if nothing else is dropped.
  std::vector<std::vector<std::size_t>> gaps;  ///< Per variable: those that can be dropped.
  std::vector<std::vector<plan::VariableIndex>> wanted;  ///< Per op.
  std::vector<std::vector<plan::VariableIndex>> frees;   ///< Per position.
  Bytes always_bytes = 0;                                ///< Of what is there all the time.
};

/// One iteration under a budget, with nobody who plans: dtr.cc says how.
class DtrRuntime {
 public:
  DtrRuntime(const DtrModel& model, Bytes budget_bytes);

  /// Runs it; returns what was dropped. To be called once.
  std::vector<Choice> Run();

  /// Whether something did not fit with everything dropped that could be, or took for ever.
  bool failed() const { return failed_; }

 private:
  Bytes Size(plan::VariableIndex v) const { return problem_.variables[At(v)].size_bytes; }
  void RunOp(const std::vector<plan::VariableIndex>& wanted);
  void Take(plan::VariableIndex v);
  void Free(plan::VariableIndex v);
  void MakeRoom(Bytes bytes);
  std::size_t GapNow(plan::VariableIndex v) const;
  std::pair<plan::VariableIndex, std::size_t> FindLeast();
  void Rebuild(Content content);
  void Replay(plan::OpIndex op, plan::VariableIndex target);
  void Bring(Content input);

  const DtrModel& model_;
  const plan::Problem& problem_;
  const Bytes budget_;
  Bytes load_;
  DroppedClasses classes_;
  std::vector<bool> resident_;                   // Per variable.
  std::vector<int> locked_;                      // Per variable: how many ops need it right now.
  std::vector<Nanoseconds> last_ns_;             // Per variable: of its last use.
  std::vector<plan::VariableIndex> candidates_;  // Resident, and droppable at times.
  std::vector<Choice> choices_;
  plan::OpIndex now_ = 0;
  Nanoseconds clock_ns_ = 0;
  int depth_ = 0;
  std::int64_t replays_left_;
  bool failed_ = false;
};

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
//
// On-demand swapping: what a runtime does that has no plan (SuperNeurons' tensor cache, the
// recording phase of AutoSwap). Variables come when an op wants them, its scratch with them; when
// that would exceed the load limit, the least recently used one that the op does not want goes. Two
// iterations are replayed; what is away in the second, steady one is the decision.
#include <list>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {
namespace {

using plan::Position;

class Cache {
 public:
  Cache(const plan::Problem& problem, Bytes limit_bytes)
      : problem_(problem),
        limit_(limit_bytes),
        where_(problem.variables.size()),
        resident_(problem.variables.size(), false) {}

  /// Brings all of these, none of which pushes out another.
  void Use(const std::vector<plan::VariableIndex>& wanted) {
    for (const plan::VariableIndex v : wanted) {
      if (resident_[At(v)]) order_.erase(where_[At(v)]);
      if (!resident_[At(v)]) load_ += Size(v);
      resident_[At(v)] = true;
      where_[At(v)] = order_.insert(order_.end(), v);
    }
    // What is wanted stands at the end.
    for (std::size_t k = order_.size(); k > wanted.size() && load_ > limit_; --k) {
      Drop(order_.front());
    }
  }

  void Drop(plan::VariableIndex v) {
    if (!resident_[At(v)]) return;
    order_.erase(where_[At(v)]);
    resident_[At(v)] = false;
    load_ -= Size(v);
  }

  bool resident(plan::VariableIndex v) const { return resident_[At(v)]; }

 private:
  Bytes Size(plan::VariableIndex v) const { return problem_.variables[At(v)].size_bytes; }

  const plan::Problem& problem_;
  const Bytes limit_;
  std::list<plan::VariableIndex> order_;  // The least recently used first.
  std::vector<std::list<plan::VariableIndex>::iterator> where_;
  std::vector<bool> resident_;
  Bytes load_ = 0;
};

plan::Decision Replay(const plan::Problem& problem, Bytes load_limit) {
  // A gap whose variable is not resident when its second access comes has been swapped.
  std::vector<std::vector<plan::Gap>> gap_before(problem.ops.size());
  for (const plan::Gap& gap : plan::ListGaps(problem, 1)) {
    gap_before[At(gap.before)].push_back(gap);
  }
  std::vector<std::vector<plan::VariableIndex>> frees(At(problem.period) + 1);
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const plan::Variable& variable = problem.variables[v];
    if (variable.persistent()) continue;
    frees[At(variable.end % problem.period)].push_back(static_cast<plan::VariableIndex>(v));
  }
  std::vector<std::vector<plan::VariableIndex>> wanted(problem.ops.size());
  const auto accesses = plan::ListAccesses(problem);
  for (std::size_t v = 0; v < accesses.size(); ++v) {
    for (const plan::Access& access : accesses[v]) {
      wanted[At(access.op)].push_back(static_cast<plan::VariableIndex>(v));
    }
  }
  Cache cache(problem, load_limit);
  plan::Decision decision;
  for (int lap = 0; lap < 2; ++lap) {
    decision.swapped.clear();
    Position done = 0;
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      const plan::Op& op = problem.ops[i];
      for (; done <= op.position; ++done) {
        for (const plan::VariableIndex v : frees[At(done)]) cache.Drop(v);
      }
      for (const plan::Gap& gap : gap_before[i]) {
        if (!cache.resident(gap.variable)) decision.swapped.push_back(gap);
      }
      cache.Use(wanted[i]);
      // Scratch may be free by now, before the op that uses it.
      for (const plan::VariableIndex v : wanted[i]) {
        if (problem.variables[At(v)].kind == plan::VariableKind::kWorkspace) cache.Drop(v);
      }
    }
    for (; done < problem.period; ++done) {
      for (const plan::VariableIndex v : frees[At(done)]) cache.Drop(v);
    }
  }
  return decision;
}

}  // namespace

Decider DecideLru(const Question& question) {
  return [&question](Bytes load_limit) { return Replay(question.problem, load_limit); };
}

}  // namespace plimsoll::planners

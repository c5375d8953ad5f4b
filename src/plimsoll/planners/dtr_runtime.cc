// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/dtr_runtime_internal.h"

namespace plimsoll::planners {

using plan::OpIndex;
using plan::VariableIndex;

namespace {

/// Deeper chains, and more replays for each recorded op, count as failure.
constexpr int kDeepest = 8000;
constexpr std::int64_t kMostReplays = 20;

}  // namespace

DtrModel::DtrModel(const Question& question, const JointEvaluator& of)
    : problem(question.problem),
      evaluator(of),
      lineage(problem),
      droppable(ListDroppable(of, lineage)),
      gaps(problem.variables.size()),
      wanted(problem.ops.size()),
      frees(At(problem.period) + 1) {
  for (std::size_t g = 0; g < droppable.size(); ++g) {
    const plan::Gap& gap = of.gaps()[g];
    if (droppable[g]) gaps[At(gap.variable)].push_back(g);
    rebuild_ns.push_back(
        !droppable[g]
            ? 0
            : lineage.RebuildNs(lineage.After(gap.variable, gap.after), [&](Content content) {
                return lineage.IsThere(content, gap.before);
              }));
  }
  const auto accesses = plan::ListAccesses(problem);
  for (std::size_t v = 0; v < accesses.size(); ++v) {
    const auto index = static_cast<VariableIndex>(v);
    const plan::Variable& variable = problem.variables[v];
    const bool is_inside = !variable.persistent() && variable.end <= problem.period;
    if (is_inside) frees[At(variable.end)].push_back(index);
    if (!is_inside) always_bytes += variable.size_bytes;
    for (const plan::Access& access : accesses[v]) wanted[At(access.op)].push_back(index);
  }
}

DtrRuntime::DtrRuntime(const DtrModel& model, Bytes budget_bytes)
    : model_(model),
      problem_(model.problem),
      budget_(budget_bytes),
      load_(model.always_bytes),
      classes_(problem_, model.lineage),
      resident_(problem_.variables.size(), false),
      locked_(problem_.variables.size(), 0),
      last_ns_(problem_.variables.size(), 0),
      choices_(KeepAll(model.evaluator).choices),
      replays_left_(kMostReplays * static_cast<std::int64_t>(problem_.ops.size())) {
  for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
    const plan::Variable& variable = problem_.variables[v];
    resident_[v] = variable.persistent() || variable.end > problem_.period;
  }
}

std::vector<Choice> DtrRuntime::Run() {
  plan::Position done = 0;
  for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
    now_ = static_cast<OpIndex>(i);
    for (; done <= problem_.ops[i].position; ++done) {
      for (const VariableIndex v : model_.frees[At(done)]) Free(v);
    }
    RunOp(model_.wanted[i]);
  }
  return choices_;
}

void DtrRuntime::RunOp(const std::vector<VariableIndex>& wanted) {
  for (const VariableIndex v : wanted) ++locked_[At(v)];
  for (const VariableIndex v : wanted) {
    if (resident_[At(v)]) continue;
    if (classes_.is_dropped(v)) {
      Rebuild(model_.lineage.After(v, now_ - 1));
    } else {
      Take(v);
    }
  }
  clock_ns_ += problem_.ops[At(now_)].duration_ns;
  for (const VariableIndex v : wanted) {
    --locked_[At(v)];
    last_ns_[At(v)] = clock_ns_;
    // Scratch may be free by now, before the op that uses it.
    if (problem_.variables[At(v)].kind == plan::VariableKind::kWorkspace) Free(v);
  }
}

void DtrRuntime::Take(VariableIndex v) {
  MakeRoom(Size(v));
  load_ += Size(v);
  resident_[At(v)] = true;
  last_ns_[At(v)] = clock_ns_;
  if (!model_.gaps[At(v)].empty()) candidates_.push_back(v);
}

void DtrRuntime::Free(VariableIndex v) {
  if (resident_[At(v)]) load_ -= Size(v);
  resident_[At(v)] = false;
  if (classes_.is_dropped(v)) classes_.Return(v);
  std::erase(candidates_, v);
}

void DtrRuntime::MakeRoom(Bytes bytes) {
  while (load_ + bytes > budget_) {
    const auto [v, gap] = FindLeast();
    if (v < 0) {
      failed_ = true;
      return;
    }
    choices_[gap] = Choice::kDrop;
    resident_[At(v)] = false;
    load_ -= Size(v);
    std::erase(candidates_, v);
    classes_.Drop(v, model_.rebuild_ns[gap]);
  }
}

/// The gap that the current op lies in, if its variable can be dropped there; else the end.
std::size_t DtrRuntime::GapNow(VariableIndex v) const {
  for (const std::size_t g : model_.gaps[At(v)]) {
    const plan::Gap& gap = model_.evaluator.gaps()[g];
    if (gap.after < now_ && now_ < gap.before) return g;
  }
  return model_.droppable.size();
}

/// Who has the least h, and its gap; -1 if nothing can go.
std::pair<VariableIndex, std::size_t> DtrRuntime::FindLeast() {
  std::pair<VariableIndex, std::size_t> least = {-1, 0};
  double least_h = 0;
  for (const VariableIndex v : candidates_) {
    if (locked_[At(v)] > 0) continue;
    const std::size_t gap = GapNow(v);
    if (gap == model_.droppable.size()) continue;
    const auto cost = static_cast<double>(model_.rebuild_ns[gap] + classes_.CostAround(v) + 1);
    const auto staleness = static_cast<double>(clock_ns_ - last_ns_[At(v)] + 1);
    const double h = cost / (static_cast<double>(Size(v)) * staleness);
    if (least.first >= 0 && h >= least_h) continue;
    least = {v, gap};
    least_h = h;
  }
  return least;
}

/// Runs again what made a content. What the program still has then stays; the rest passes.
void DtrRuntime::Rebuild(Content content) {
  const VariableIndex v = content.variable;
  const bool stays = classes_.is_dropped(v) && model_.lineage.IsThere(content, now_);
  ++locked_[At(v)];
  if (stays) {
    classes_.Return(v);
    Take(v);
  } else {
    MakeRoom(Size(v));
    load_ += Size(v);
  }
  for (std::int32_t k = 0; k < content.version; ++k) {
    Replay(model_.lineage.writers(v)[At(k)], v);
  }
  --locked_[At(v)];
  if (!stays) load_ -= Size(v);
}

void DtrRuntime::Replay(OpIndex op, VariableIndex target) {
  if (--replays_left_ < 0) failed_ = true;
  if (failed_) return;
  const auto inputs = model_.lineage.inputs(op);
  for (const Content& input : inputs) {
    if (input.variable != target) Bring(input);
    ++locked_[At(input.variable)];
  }
  clock_ns_ += problem_.ops[At(op)].duration_ns;
  for (const Content& input : inputs) --locked_[At(input.variable)];
}

void DtrRuntime::Bring(Content input) {
  if (input.version == 0) return;
  if (model_.lineage.IsThere(input, now_) && resident_[At(input.variable)]) {
    last_ns_[At(input.variable)] = clock_ns_;
    return;
  }
  if (++depth_ > kDeepest) failed_ = true;
  if (!failed_) Rebuild(input);
  --depth_;
}

}  // namespace plimsoll::planners

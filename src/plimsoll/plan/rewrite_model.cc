// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rewrite_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
RewriteModel::RewriteModel(const Problem& of, Bytes least_bytes)
    : problem(of), gaps(ListGapsAndMoments(of, least_bytes)) {
  ListUses();
  ListWorkspaces();
  ListEvents();
  gaps_after.resize(problem.ops.size());
  for (std::size_t g = 0; g < gaps.size(); ++g) gaps_after[At(gaps[g].after)].push_back(g);
}

bool RewriteModel::IsInside(VariableIndex v) const {
  const Variable& x = problem.variables[At(v)];
  return !x.persistent() && x.end <= problem.period;
}

void RewriteModel::ListUses() {
  uses.resize(problem.ops.size());
  writers.resize(problem.variables.size());
  users.resize(problem.variables.size());
  replayable.resize(problem.ops.size());
  std::vector<std::int32_t> version(problem.variables.size(), 0);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const Op& op = problem.ops[i];
    replayable[i] = op.traits.replayable;
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = problem.operands[At(op.first_operand + k)];
      // What is of an iteration before is not what the variable holds here.
      if (operand.age != 0) replayable[i] = false;
      const bool writes = k >= op.read_count;
      const bool state = !writes && k < 32 && (op.traits.state_reads >> k & 1) != 0;
      AddUse(i, operand.variable, writes, state, version);
    }
    for (Use& use : uses[i]) {
      use.state = use.state && !use.reads;
      users[At(use.variable)].push_back(static_cast<OpIndex>(i));
      if (!use.writes) continue;
      // The version before, which it may leave in part as it was, is gone for good.
      const bool persistent = problem.variables[At(use.variable)].persistent();
      if (persistent && !use.state) replayable[i] = false;
      ++version[At(use.variable)];
      writers[At(use.variable)].push_back(static_cast<OpIndex>(i));
    }
  }
}

void RewriteModel::AddUse(std::size_t op, VariableIndex v, bool writes, bool state,
                          const std::vector<std::int32_t>& version) {
  auto use =
      std::find_if(uses[op].begin(), uses[op].end(), [&](const Use& x) { return x.variable == v; });
  if (use == uses[op].end()) {
    uses[op].push_back({v, version[At(v)], false, false, false});
    use = std::prev(uses[op].end());
  }
  use->reads = use->reads || (!writes && !state);
  use->writes = use->writes || writes || state;
  use->state = use->state || state;
}

void RewriteModel::ListWorkspaces() {
  workspaces.resize(problem.ops.size());
  const std::vector<std::vector<Access>> accesses = ListAccesses(problem);
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    if (problem.variables[v].kind != VariableKind::kWorkspace || accesses[v].empty()) continue;
    workspaces[At(accesses[v].front().op)].push_back(static_cast<VariableIndex>(v));
  }
}

void RewriteModel::ListEvents() {
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& x = problem.variables[v];
    if (x.persistent()) continue;
    const auto index = static_cast<VariableIndex>(v);
    events.push_back({x.begin, index, true});
    events.push_back({x.end % std::max<Position>(problem.period, 1), index, false});
    // What is free at the very end has no position of its own to be freed at.
    if (x.end == problem.period) events.back().position = problem.period;
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.position, a.is_malloc) < std::pair(b.position, b.is_malloc);
  });
}

}  // namespace plimsoll::plan

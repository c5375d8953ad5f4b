// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "plimsoll/planners/lineage_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::VariableIndex;

constexpr OpIndex kAlways = std::numeric_limits<OpIndex>::max();
constexpr OpIndex kNot = -1;

}  // namespace

Lineage::Lineage(const plan::Problem& problem) : problem_(problem) {
  ListUses();
  FindWhatIsThere();
  FindWhatCanBeRebuilt();
}

bool Lineage::IsInside(VariableIndex v) const {
  const plan::Variable& x = problem_.variables[At(v)];
  return !x.persistent() && x.end <= problem_.period;
}

void Lineage::ListUses() {
  writers_.resize(problem_.variables.size());
  inputs_.resize(problem_.ops.size());
  for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
    const plan::Op& op = problem_.ops[i];
    bool replayable = op.traits.replayable;
    std::vector<VariableIndex> written;
    std::vector<VariableIndex> states;
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const plan::Operand& x = problem_.operands[At(op.first_operand + k)];
      const bool writes = k >= op.read_count;
      const bool state = !writes && k < 32 && (op.traits.state_reads >> k & 1) != 0;
      replayable = replayable && x.age == 0;
      const auto version = static_cast<std::int32_t>(writers_[At(x.variable)].size());
      if (!writes && !state) inputs_[i].push_back({x.variable, version});
      if (state) states.push_back(x.variable);
      if (writes || state) written.push_back(x.variable);
      const bool is_state = std::find(states.begin(), states.end(), x.variable) != states.end();
      // What it held before would be gone.
      const bool persistent = problem_.variables[At(x.variable)].persistent();
      if (writes && persistent && !is_state) replayable = false;
    }
    std::sort(written.begin(), written.end());
    written.erase(std::unique(written.begin(), written.end()), written.end());
    for (const VariableIndex v : written) writers_[At(v)].push_back(static_cast<OpIndex>(i));
    replayable_.push_back(replayable);
  }
}

Content Lineage::After(VariableIndex v, OpIndex op) const {
  const auto& writers = writers_[At(v)];
  const auto end = std::upper_bound(writers.begin(), writers.end(), op);
  return {v, static_cast<std::int32_t>(end - writers.begin())};
}

void Lineage::FindWhatIsThere() {
  for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
    first_.push_back(there_until_.size());
    OpIndex last = kAlways;
    if (IsInside(static_cast<VariableIndex>(v))) {
      const auto behind = std::partition_point(
          problem_.ops.begin(), problem_.ops.end(),
          [&](const plan::Op& op) { return op.position < problem_.variables[v].end; });
      last = static_cast<OpIndex>(behind - problem_.ops.begin()) - 1;
    }
    // The op that writes the next version still finds this one.
    for (const OpIndex writer : writers_[v]) there_until_.push_back(std::min(writer, last));
    there_until_.push_back(last);
  }
}

/// The last op before which an op can run again for the sake of one variable.
OpIndex Lineage::ReplayUntil(OpIndex op, VariableIndex target) const {
  if (!replayable_[At(op)]) return kNot;
  OpIndex until = kAlways;
  for (const Content& input : inputs_[At(op)]) {
    if (input.variable == target) continue;
    const auto& writers = writers_[At(input.variable)];
    // What it changes must be its own, not what others find.
    const bool changes = std::binary_search(writers.begin(), writers.end(), op);
    const OpIndex rebuilt = rebuilt_until_[Key(input)];
    until = std::min(until, changes ? rebuilt : std::max(rebuilt, there_until_[Key(input)]));
  }
  return until;
}

void Lineage::FindWhatCanBeRebuilt() {
  rebuilt_until_.assign(there_until_.size(), kNot);
  // Inputs are made before what is made of them.
  for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
    const auto op = static_cast<OpIndex>(i);
    for (const plan::Operand& x : problem_.writes(problem_.ops[i])) {
      if (!IsInside(x.variable)) continue;
      const Content made = After(x.variable, op);
      const OpIndex before = made.version == 1 ? kAlways : rebuilt_until_[Key(made) - 1];
      rebuilt_until_[Key(made)] = std::min(before, ReplayUntil(op, x.variable));
    }
  }
}

Nanoseconds Lineage::RebuildNs(Content content, const std::function<bool(Content)>& held) const {
  std::vector<Content> wanted = {content};
  std::unordered_set<OpIndex> run;
  std::unordered_set<std::size_t> seen = {Key(content)};
  Nanoseconds sum = 0;
  while (!wanted.empty()) {
    const Content next = wanted.back();
    wanted.pop_back();
    for (std::int32_t k = 0; k < next.version; ++k) {
      const OpIndex op = writers_[At(next.variable)][At(k)];
      if (!run.insert(op).second) continue;
      sum += problem_.ops[At(op)].duration_ns;
      for (const Content& input : inputs_[At(op)]) {
        if (input.variable == next.variable || held(input)) continue;
        if (seen.insert(Key(input)).second) wanted.push_back(input);
      }
    }
  }
  return sum;
}

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/planners/dropped_classes_internal.h"

namespace plimsoll::planners {

using plan::VariableIndex;

DroppedClasses::DroppedClasses(const plan::Problem& problem, const Lineage& lineage)
    : neighbours_(problem.variables.size()),
      dropped_(problem.variables.size(), false),
      node_of_(problem.variables.size(), 0),
      own_ns_(problem.variables.size(), 0) {
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const Content& input : lineage.inputs(static_cast<plan::OpIndex>(i))) {
      if (problem.variables[At(input.variable)].persistent()) continue;
      for (const plan::Operand& made : problem.writes(problem.ops[i])) {
        if (made.variable == input.variable) continue;
        neighbours_[At(made.variable)].push_back(input.variable);
        neighbours_[At(input.variable)].push_back(made.variable);
      }
    }
  }
  for (std::vector<VariableIndex>& list : neighbours_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

std::size_t DroppedClasses::Find(std::size_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

void DroppedClasses::Drop(VariableIndex v, Nanoseconds own_ns) {
  const std::size_t node = parent_.size();
  parent_.push_back(node);
  cost_ns_.push_back(own_ns);
  for (const VariableIndex other : neighbours_[At(v)]) {
    if (!dropped_[At(other)]) continue;
    const std::size_t root = Find(node_of_[At(other)]);
    const std::size_t own = Find(node);
    if (root == own) continue;
    parent_[own] = root;
    cost_ns_[root] += cost_ns_[own];
  }
  dropped_[At(v)] = true;
  node_of_[At(v)] = node;
  own_ns_[At(v)] = own_ns;
}

void DroppedClasses::Return(VariableIndex v) {
  cost_ns_[Find(node_of_[At(v)])] -= own_ns_[At(v)];
  dropped_[At(v)] = false;
}

Nanoseconds DroppedClasses::CostAround(VariableIndex v) {
  roots_.clear();
  for (const VariableIndex other : neighbours_[At(v)]) {
    if (dropped_[At(other)]) roots_.push_back(Find(node_of_[At(other)]));
  }
  std::sort(roots_.begin(), roots_.end());
  roots_.erase(std::unique(roots_.begin(), roots_.end()), roots_.end());
  Nanoseconds sum = 0;
  for (const std::size_t root : roots_) sum += cost_ns_[root];
  return sum;
}

}  // namespace plimsoll::planners

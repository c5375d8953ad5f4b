// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/lineage_internal.h"

namespace plimsoll::planners {

/// Classes of dropped variables that are made of each other, with what it costs to make each class
/// again: DTR's e* (Kirisame et al. 2021, section 4.1). Nearly constant time for each neighbour.
///
///     a ─▶ b ─▶ c ─▶ d     b dropped, then c: one class {b, c}; around a and around d its cost
class DroppedClasses {
 public:
  DroppedClasses(const plan::Problem& problem, const Lineage& lineage);

  bool is_dropped(plan::VariableIndex v) const { return dropped_[At(v)]; }

  /// Puts a variable into one class with its dropped neighbours. REQUIRES: it is not dropped.
  void Drop(plan::VariableIndex v, Nanoseconds own_ns);

  /// Takes it out; the rest stays one class. REQUIRES: it is dropped.
  void Return(plan::VariableIndex v);

  /// The cost of all classes next to a variable.
  Nanoseconds CostAround(plan::VariableIndex v);

 private:
  std::size_t Find(std::size_t node);

  std::vector<std::vector<plan::VariableIndex>> neighbours_;  // Per variable, sorted.
  std::vector<bool> dropped_;                                 // Per variable.
  std::vector<std::size_t> node_of_;                          // Per variable: since its last drop.
  std::vector<Nanoseconds> own_ns_;                           // Per variable, likewise.
  std::vector<std::size_t> parent_;                           // Per node: union-find.
  std::vector<Nanoseconds> cost_ns_;                          // Per node that is a root.
  std::vector<std::size_t> roots_;                            // To count each class once.
};

}  // namespace plimsoll::planners

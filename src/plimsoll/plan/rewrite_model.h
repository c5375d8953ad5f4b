// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// What every rewriting of a problem needs to know of it (rewrite.h).
struct RewriteModel {
  /// How an op uses a variable: one entry for all its operands that name it.
  struct Use {
    VariableIndex variable = 0;
    std::int32_t version = 0;  ///< Of the variable, in writes since its malloc, before the op.
    bool reads = false;        ///< Not counting state.
    bool writes = false;  ///< Or updates it on the side, whether it is said to write it or not.
    bool state = false;   ///< Is nothing but state that it updates on the side.
  };

  /// A malloc or a free.
  struct Event {
    Position position = 0;
    VariableIndex variable = 0;
    bool is_malloc = false;
  };

  /// Keeps a reference to the problem.
  RewriteModel(const Problem& of, Bytes least_bytes);

  /// Whether a variable comes and goes within the iteration.
  bool IsInside(VariableIndex v) const;

  const Problem& problem;
  const std::vector<Gap> gaps;
  std::vector<std::vector<Use>> uses;                  ///< Per op.
  std::vector<std::vector<OpIndex>> writers;           ///< Per variable, in order.
  std::vector<std::vector<OpIndex>> users;             ///< Likewise.
  std::vector<bool> replayable;                        ///< Per op.
  std::vector<std::vector<VariableIndex>> workspaces;  ///< Per op.
  std::vector<Event> events;                           ///< In order.
  std::vector<std::vector<std::size_t>> gaps_after;    ///< Per op.

 private:
  void ListUses();
  void AddUse(std::size_t op, VariableIndex v, bool writes, bool state,
              const std::vector<std::int32_t>& version);
  void ListWorkspaces();
  void ListEvents();
};

}  // namespace plimsoll::plan

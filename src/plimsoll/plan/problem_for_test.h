// SPDX-License-Identifier: Apache-2.0
//
// Problems built by hand. For tests only.
#pragma once

#include <initializer_list>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// Appends an op, at the position behind the last one's, with what it reads and writes.
inline void AddTimedOp(Nanoseconds duration_ns, std::initializer_list<VariableIndex> reads,
                       std::initializer_list<VariableIndex> writes, Problem* problem) {
  Op op;
  op.duration_ns = duration_ns;
  op.position = problem->ops.empty() ? 0 : problem->ops.back().position + 1;
  op.first_operand = static_cast<std::int64_t>(problem->operands.size());
  op.read_count = static_cast<std::int32_t>(reads.size());
  op.write_count = static_cast<std::int32_t>(writes.size());
  for (const VariableIndex v : reads) problem->operands.push_back({v, 0});
  for (const VariableIndex v : writes) problem->operands.push_back({v, 0});
  problem->ops.push_back(op);
  problem->period = op.position + 1;
}

/// Appends a variable of the iteration.
inline void AddVariable(Bytes size_bytes, Position begin, Position end, Problem* problem) {
  problem->variables.push_back({.id = static_cast<std::int64_t>(problem->variables.size()),
                                .size_bytes = size_bytes,
                                .begin = begin,
                                .end = end});
}

/// Appends a variable that lives around the cycle. REQUIRES: all ops are there.
inline void AddPersistent(Bytes size_bytes, Problem* problem) {
  AddVariable(size_bytes, 0, problem->period, problem);
  problem->variables.back().kind = VariableKind::kPersistent;
}

/// A copy of n bytes takes n ns either way, whatever the other direction does.
inline Machine OneBytePerNs() { return {"test", 0, 0, 1e9, 1e9, 1e9, 1e9}; }

/// Returns the gaps of these variables, in the order of variables and time.
inline std::vector<Gap> GapsOf(const Problem& problem, std::initializer_list<VariableIndex> of) {
  std::vector<Gap> gaps;
  for (const Gap& gap : ListGaps(problem, 0)) {
    for (const VariableIndex v : of) {
      if (gap.variable == v) gaps.push_back(gap);
    }
  }
  return gaps;
}

}  // namespace plimsoll::plan

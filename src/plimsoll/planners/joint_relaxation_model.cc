// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/plan/rewrite_model.h"
#include "plimsoll/planners/joint_relaxation_internal.h"

namespace plimsoll::planners {
ContentModel::ContentModel(const plan::Problem& problem, const plan::Machine& machine) {
  const plan::RewriteModel recorded(problem, 1);
  std::vector<std::int32_t> first;  // Per variable: the content that its first writer leaves.
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    PLIMSOLL_CHECK(recorded.IsInside(static_cast<plan::VariableIndex>(v)), "lives around the end");
    first.push_back(static_cast<std::int32_t>(bytes.size()));
    for (std::size_t k = 0; k < recorded.writers[v].size(); ++k) {
      bytes.push_back(problem.variables[v].size_bytes);
      out_ns.push_back(machine.out_ns(bytes.back()));
      in_ns.push_back(machine.in_ns(bytes.back()));
    }
  }
  PLIMSOLL_CHECK(bytes.size() <= 32, "too many contents");
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    OpContents op{.replayable = recorded.replayable[i]};
    for (const plan::RewriteModel::Use& use : recorded.uses[i]) {
      PLIMSOLL_CHECK(use.version > 0 || !use.reads, "read before it is written");
      const std::int32_t after = first[At(use.variable)] + use.version;
      if (use.version > 0) op.finds |= Bit(after - 1);
      if (use.writes) op.leaves |= Bit(after);
      if (use.writes && use.version > 0) op.changes |= Bit(after - 1);
    }
    ops.push_back(op);
    op_ns.push_back(problem.ops[i].duration_ns);
  }
  SumUp();
}

void ContentModel::SumUp() {
  to_go_ns.assign(ops.size() + 1, 0);
  useful.assign(ops.size() + 1, 0);
  for (std::size_t i = ops.size(); i-- > 0;) {
    to_go_ns[i] = to_go_ns[i + 1] + op_ns[i];
    useful[i] = useful[i + 1] | ops[i].finds;
    // What replays that leave something useful may find, to any depth: later ops first.
    for (std::size_t j = i; j-- > 0;) {
      if (ops[j].replayable && (ops[j].leaves & useful[i]) != 0) useful[i] |= ops[j].finds;
    }
  }
}

}  // namespace plimsoll::planners

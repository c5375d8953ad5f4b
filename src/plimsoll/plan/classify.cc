// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/classify.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

/// The first and the last op that touches a variable, by time and phase.
struct Touches {
  Position first_time = std::numeric_limits<Position>::max();
  Position last_time = -1;
  trace::Phase first = trace::Phase::kForward;
  trace::Phase last = trace::Phase::kForward;
};

std::vector<Touches> FindTouches(const Problem& problem) {
  std::vector<Touches> touches(problem.variables.size());
  for (const Op& op : problem.ops) {
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = problem.operands[At(op.first_operand + k)];
      Touches& touch = touches[At(operand.variable)];
      // What is touched at some age is touched so many iterations after it was made.
      const Position time = op.position + operand.age * problem.period;
      if (time < touch.first_time) {
        touch.first_time = time;
        touch.first = op.phase;
      }
      if (time > touch.last_time) {
        touch.last_time = time;
        touch.last = op.phase;
      }
    }
  }
  return touches;
}

/// The phase of the op that follows a position.
trace::Phase PhaseAt(const Problem& problem, Position position) {
  const auto op = std::lower_bound(problem.ops.begin(), problem.ops.end(), position,
                                   [](const Op& x, Position value) { return x.position < value; });
  return op == problem.ops.end() ? trace::Phase::kForward : op->phase;
}

}  // namespace

void ClassifyVariables(Problem* problem) {
  const std::vector<Touches> touches = FindTouches(*problem);
  for (std::size_t v = 0; v < touches.size(); ++v) {
    Variable& variable = problem->variables[v];
    const Touches& touch = touches[v];
    const bool touched = touch.last_time >= 0;
    if (touched) variable.phase = touch.first;
    if (variable.persistent()) continue;
    if (!touched) {
      variable.kind = VariableKind::kWorkspace;
      variable.phase = PhaseAt(*problem, variable.begin);
    } else if (touch.first == touch.last) {
      variable.kind = VariableKind::kTemporary;
    } else if (variable.phase == trace::Phase::kForward) {
      variable.kind = VariableKind::kActivation;
    } else {
      variable.kind = VariableKind::kGradient;
    }
  }
}

std::string_view Name(VariableKind kind) {
  switch (kind) {
    case VariableKind::kPersistent:
      return "persistent";
    case VariableKind::kActivation:
      return "activation";
    case VariableKind::kGradient:
      return "gradient";
    case VariableKind::kTemporary:
      return "temporary";
    case VariableKind::kWorkspace:
      return "workspace";
  }
  return "?";
}

std::string_view Name(trace::Phase phase) {
  switch (phase) {
    case trace::Phase::kForward:
      return "forward";
    case trace::Phase::kBackward:
      return "backward";
    case trace::Phase::kUpdate:
      return "update";
  }
  return "?";
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check_replay.h"

namespace plimsoll::plan {
namespace {

/// By op: the workspaces of it, variables that no op names and that the op follows.
std::vector<std::vector<VariableIndex>> ListScratch(const Problem& problem) {
  std::vector<std::vector<VariableIndex>> scratch(problem.ops.size());
  if (problem.ops.empty()) return scratch;
  std::vector<bool> named(problem.variables.size());
  for (const Op& op : problem.ops) {
    for (const Operand& operand : problem.reads(op)) named[At(operand.variable)] = true;
    for (const Operand& operand : problem.writes(op)) named[At(operand.variable)] = true;
  }
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    if (named[v] || variable.persistent()) continue;
    const auto op =
        std::lower_bound(problem.ops.begin(), problem.ops.end(), variable.begin,
                         [](const Op& x, Position position) { return x.position < position; });
    if (op == problem.ops.end() && !problem.cyclic) continue;
    const auto owner = op == problem.ops.end() ? 0 : op - problem.ops.begin();
    scratch[At(owner)].push_back(static_cast<VariableIndex>(v));
  }
  return scratch;
}

/// The life of a variable as seen by an op that has it in hand, or had it until it was freed.
struct Life {
  Position begin = 0;
  Position end = 0;
};

Life LifeBefore(const Problem& problem, VariableIndex v, const Op& op) {
  const Variable& x = problem.variables[At(v)];
  const Position back = x.persistent() || x.begin > op.position ? problem.period : 0;
  return {x.begin - back, x.end - (x.persistent() ? 0 : back)};
}

/// Something that an op has in hand, when recorded and now.
struct Held {
  VariableIndex variable = 0;
  Life recorded;
  Life now;
};

class ScratchCheck {
 public:
  ScratchCheck(const Plan& plan, CheckReport* report)
      : plan_(plan),
        problem_(plan.problem),
        original_(plan.rewriting->original),
        report_(*report),
        recorded_(ListScratch(original_)),
        now_(ListScratch(problem_)),
        stand_in_(original_.variables.size(), -1) {}

  void Run() {
    for (std::size_t i = 0; i < problem_.ops.size() && !report_.full(); ++i) {
      const OpIndex source = plan_.rewriting->op_source[i];
      if (!recorded_[At(source)].empty()) CheckOp(i, source);
    }
  }

 private:
  std::string Describe(std::size_t op) const {
    return DescribeSource(plan_, static_cast<OpIndex>(op), report_);
  }

  void CheckOp(std::size_t i, OpIndex source) {
    for (const VariableIndex v : now_[i])
      stand_in_[At(plan_.rewriting->variable_source[At(v)])] = v;
    std::vector<Held> scratch;
    for (const VariableIndex v : recorded_[At(source)]) {
      if (stand_in_[At(v)] < 0) {
        report_.Add(PlanLaw::kReplay,
                    fmt::format("{} has no scratch in place of variable {}, which "
                                "recorded op {} had",
                                Describe(i), v, source));
      } else {
        scratch.push_back(Hold(i, source, stand_in_[At(v)], v));
      }
    }
    for (const VariableIndex v : now_[i]) {
      stand_in_[At(plan_.rewriting->variable_source[At(v)])] = -1;
    }
    CheckApart(i, source, scratch);
  }

  Held Hold(std::size_t i, OpIndex source, VariableIndex now, VariableIndex recorded) const {
    return {now, LifeBefore(original_, recorded, original_.ops[At(source)]),
            LifeBefore(problem_, now, problem_.ops[i])};
  }

  /// Judges that what was there together is there together.
  void CheckApart(std::size_t i, OpIndex source, const std::vector<Held>& scratch) {
    std::vector<Held> all = scratch;
    const Op& op = problem_.ops[i];
    const Op& recorded = original_.ops[At(source)];
    for (std::int32_t k = 0; k < op.read_count + op.write_count; ++k) {
      all.push_back(Hold(i, source, problem_.operands[At(op.first_operand + k)].variable,
                         original_.operands[At(recorded.first_operand + k)].variable));
    }
    std::sort(all.begin(), all.end(),
              [](const Held& a, const Held& b) { return a.recorded.begin < b.recorded.begin; });
    for (std::size_t k = 1; k < all.size(); ++k) {  // Who of those up to here comes last now.
      if (all[k].now.begin >= all[k - 1].now.begin) continue;
      all[k].now.begin = all[k - 1].now.begin;
      all[k].variable = all[k - 1].variable;
    }
    for (const Held& x : scratch) {
      if (x.now.end > op.position) continue;
      if (x.recorded.end > recorded.position) {
        report_.Add(PlanLaw::kReplay,
                    fmt::format("variable {}, scratch of {}, is freed before it runs, and was not "
                                "before recorded op {}",
                                x.variable, Describe(i), source));
        continue;
      }
      const auto behind = std::partition_point(
          all.begin(), all.end(), [&](const Held& y) { return y.recorded.begin < x.recorded.end; });
      const Held& latest = *std::prev(behind);  // Itself, if nobody else.
      if (latest.now.begin < x.now.end) continue;
      report_.Add(PlanLaw::kReplay,
                  fmt::format("variable {}, scratch of {}, is freed before variable {} comes, and "
                              "was not before recorded op {}",
                              x.variable, Describe(i), latest.variable, source));
    }
  }

  const Plan& plan_;
  const Problem& problem_;
  const Problem& original_;
  CheckReport& report_;
  const std::vector<std::vector<VariableIndex>> recorded_;  // By op.
  const std::vector<std::vector<VariableIndex>> now_;       // By op.
  std::vector<VariableIndex> stand_in_;                     // By recorded variable.
};

}  // namespace

void CheckReplayScratch(const Plan& plan, CheckReport* report) { ScratchCheck(plan, report).Run(); }

}  // namespace plimsoll::plan

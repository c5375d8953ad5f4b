// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/check_report.h"

namespace plimsoll::plan {
namespace {

/// Far from where sums of a few positions leave 64 bits.
constexpr Position kMostPositions = Position{1} << 48;

template <typename T>
bool Holds(const std::vector<T>& list, std::int64_t index) {
  return index >= 0 && At(index) < list.size();
}

/// Judges a problem: that of the plan, or the recorded one that it was made from.
class ProblemShapeCheck {
 public:
  ProblemShapeCheck(const Problem& problem, std::string_view which, CheckReport* report)
      : problem_(problem), which_(which), report_(*report) {}

  void Run() {
    if (problem_.period < 1 || problem_.period > kMostPositions) {
      report_.Add(PlanLaw::kShape,
                  fmt::format("the {}iteration has {} positions", which_, problem_.period));
      return;
    }
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const Variable& x = problem_.variables[v];
      const bool around = x.begin == 0 && x.end == problem_.period;
      const bool fits = x.begin >= 0 && x.begin < problem_.period && x.begin < x.end &&
                        x.end - x.begin <= problem_.period &&
                        (problem_.cyclic || x.end <= problem_.period);
      if (x.instances != 1 || !fits || (x.persistent() && !around) || x.size_bytes < 0 ||
          x.size_bytes >= kMaxBytes) {
        report_.Add(
            PlanLaw::kShape,
            fmt::format("{}variable {}: {} bytes, [{}, {}) and {} instances do not fit an "
                        "iteration of {} positions",
                        which_, v, x.size_bytes, x.begin, x.end, x.instances, problem_.period));
      }
    }
    Position last = -1;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const Op& op = problem_.ops[i];
      if (op.position <= last || op.position >= problem_.period) {
        report_.Add(PlanLaw::kShape,
                    fmt::format("{}op {} is at position {}, after {} and within {}", which_, i,
                                op.position, last, problem_.period));
      }
      last = op.position;
      CheckOperands(i);
    }
  }

 private:
  void CheckOperands(std::size_t index) {
    const Op& op = problem_.ops[index];
    const std::int64_t count = std::int64_t{op.read_count} + op.write_count;
    if (op.first_operand < 0 || op.read_count < 0 || op.write_count < 0 ||
        op.first_operand > static_cast<std::int64_t>(problem_.operands.size()) - count) {
      report_.Add(PlanLaw::kShape,
                  fmt::format("{}op {} has operands that do not exist", which_, index));
      return;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const Operand& operand = problem_.operands[At(op.first_operand + k)];
      // What lives for a period at most is never older than an iteration.
      bool alive =
          Holds(problem_.variables, operand.variable) && operand.age >= 0 && operand.age <= 1;
      if (alive) {
        const Variable& variable = problem_.variables[At(operand.variable)];
        const Position time = op.position + operand.age * problem_.period;
        alive = variable.begin <= time && time < variable.end;
      }
      if (!alive) {
        report_.Add(PlanLaw::kShape, fmt::format("{}op {} touches variable {}, {} iterations old, "
                                                 "which is not alive then",
                                                 which_, index, operand.variable, operand.age));
      }
    }
  }

  const Problem& problem_;
  const std::string_view which_;
  CheckReport& report_;
};

class ShapeCheck {
 public:
  ShapeCheck(const Plan& plan, CheckReport* report) : plan_(plan), report_(*report) {}

  bool Run() {
    ProblemShapeCheck(plan_.problem, "", &report_).Run();
    if (report_.clean() && plan_.rewriting) CheckRewriting();
    if (report_.clean()) CheckCommands();
    if (report_.clean()) CheckQueues();
    if (report_.clean()) CheckResidencies();
    return report_.clean();
  }

 private:
  /// The recorded problem, and the lists that lead to it.
  void CheckRewriting() {
    const Rewriting& rewriting = *plan_.rewriting;
    ProblemShapeCheck(rewriting.original, "recorded ", &report_).Run();
    const std::size_t ops = plan_.problem.ops.size();
    const std::size_t variables = plan_.problem.variables.size();
    if (rewriting.op_source.size() != ops || rewriting.is_replay.size() != ops ||
        rewriting.variable_source.size() != variables) {
      report_.Add(PlanLaw::kShape,
                  fmt::format("{} sources and {} marks of replays are for {} ops, {} sources for "
                              "{} variables",
                              rewriting.op_source.size(), rewriting.is_replay.size(), ops,
                              rewriting.variable_source.size(), variables));
      return;
    }
    for (std::size_t i = 0; i < ops; ++i) {
      if (Holds(rewriting.original.ops, rewriting.op_source[i]) && rewriting.is_replay[i] <= 1) {
        continue;
      }
      report_.Add(PlanLaw::kShape, fmt::format("{} has the source {} and the mark {}",
                                               report_.DescribeOp(static_cast<OpIndex>(i)),
                                               rewriting.op_source[i], rewriting.is_replay[i]));
    }
    for (std::size_t v = 0; v < variables; ++v) {
      if (Holds(rewriting.original.variables, rewriting.variable_source[v])) continue;
      report_.Add(PlanLaw::kShape,
                  fmt::format("variable {} has the source {}, which does not exist", v,
                              rewriting.variable_source[v]));
    }
  }

  void CheckCommands() {
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      const Command& command = plan_.commands[c];
      const bool is_op = command.queue == Queue::kCompute;
      if (static_cast<int>(command.queue) >= kQueues) {
        report_.Add(PlanLaw::kShape, fmt::format("command {} is of no queue", c));
      } else if (is_op ? !Holds(plan_.problem.ops, command.op)
                       : !Holds(plan_.residencies, command.residency)) {
        report_.Add(PlanLaw::kShape, fmt::format("command {} is for {} {}, which does not exist", c,
                                                 is_op ? "op" : "residency",
                                                 is_op ? command.op : command.residency));
      }
      for (const Wait& wait : command.waits) {
        if (!Holds(plan_.commands, wait.command) || wait.lag < 0) {
          report_.Add(PlanLaw::kShape,
                      fmt::format("command {} waits for command {} of {} iterations earlier", c,
                                  wait.command, wait.lag));
        } else if (wait.lag > 0 && !plan_.problem.cyclic) {
          report_.Add(PlanLaw::kBoundary,
                      fmt::format("command {} waits for command {} of an iteration before, and the "
                                  "plan runs once",
                                  c, wait.command));
        }
      }
    }
  }

  void CheckQueues() {
    std::vector<int> seen(plan_.commands.size(), 0);
    for (int q = 0; q < kQueues; ++q) {
      const std::vector<CommandIndex>& queue = plan_.queues[At(q)];
      for (const CommandIndex c : queue) {
        if (!Holds(plan_.commands, c)) {
          report_.Add(PlanLaw::kShape, fmt::format("queue {} holds command {}", q, c));
          continue;
        }
        ++seen[At(c)];
        if (static_cast<int>(plan_.commands[At(c)].queue) != q) {
          report_.Add(PlanLaw::kShape, fmt::format("command {} is not of the queue {}", c, q));
        }
      }
    }
    for (std::size_t c = 0; c < seen.size(); ++c) {
      if (seen[c] != 1) {
        report_.Add(PlanLaw::kShape, fmt::format("command {} is queued {} times", c, seen[c]));
      }
    }
    const std::vector<CommandIndex>& compute = plan_.queues[0];
    if (compute.size() != plan_.problem.ops.size()) {
      report_.Add(PlanLaw::kShape,
                  fmt::format("{} ops are queued of {}", compute.size(), plan_.problem.ops.size()));
    }
    for (std::size_t k = 0; k < compute.size() && report_.clean(); ++k) {
      const OpIndex op = plan_.commands[At(compute[k])].op;
      if (op == static_cast<OpIndex>(k)) continue;
      report_.Add(PlanLaw::kShape,
                  fmt::format("{} stands where {} should, in program order", report_.DescribeOp(op),
                              report_.DescribeOp(static_cast<OpIndex>(k))));
    }
  }

  void CheckResidencies() {
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      const Residency& x = plan_.residencies[r];
      if (!Holds(plan_.problem.variables, x.variable) || !Links(x.copy_in, Queue::kCopyIn, r) ||
          !Links(x.copy_out, Queue::kCopyOut, r)) {
        report_.Add(PlanLaw::kShape, fmt::format("residency {} of variable {} does not agree with "
                                                 "its copies {} and {}",
                                                 r, x.variable, x.copy_in, x.copy_out));
        continue;
      }
      const Variable& variable = plan_.problem.variables[At(x.variable)];
      const Position period = plan_.problem.period;
      if (x.begin < 0 || x.begin >= period || x.end <= x.begin || x.end - x.begin > period ||
          (x.end > period && !plan_.problem.cyclic && !variable.persistent())) {
        report_.Add(PlanLaw::kBoundary,
                    fmt::format("residency {} of variable {}, [{}, {}), does not fit an iteration "
                                "of {} positions",
                                r, x.variable, x.begin, x.end, period));
      }
    }
    for (std::size_t c = 0; c < plan_.commands.size() && report_.clean(); ++c) {
      const Command& command = plan_.commands[c];
      if (command.queue == Queue::kCompute) continue;
      const Residency& x = plan_.residencies[At(command.residency)];
      const bool in = command.queue == Queue::kCopyIn;
      if ((in ? x.copy_in : x.copy_out) != static_cast<CommandIndex>(c)) {
        report_.Add(PlanLaw::kShape, report_.Describe(static_cast<CommandIndex>(c)) +
                                         " is not the copy of its residency");
      }
    }
  }

  bool Links(CommandIndex c, Queue queue, std::size_t residency) const {
    if (c == -1) return true;
    return Holds(plan_.commands, c) && plan_.commands[At(c)].queue == queue &&
           At(plan_.commands[At(c)].residency) == residency;
  }

  const Plan& plan_;
  CheckReport& report_;
};

/// Reports what reaches beyond a limit, and returns the highest top.
Bytes CheckTop(Bytes offset, Bytes size, Bytes limit, const std::string& who, Bytes highest,
               CheckReport* report) {
  if (size == 0) return highest;  // Reaches nowhere, wherever it is.
  if (!IsWithin(offset, size, limit)) {
    report->Add(PlanLaw::kLimit,
                fmt::format("{} takes {} bytes from {} on, of {}", who, size, offset, limit));
    return highest;
  }
  return std::max(highest, offset + size);
}

void CheckLimits(const Plan& plan, CheckReport* report) {
  const auto size_of = [&](const Residency& residency) {
    return plan.problem.variables[At(residency.variable)].size_bytes;
  };
  Bytes top = 0;
  for (std::size_t r = 0; r < plan.residencies.size(); ++r) {
    const Residency& x = plan.residencies[r];
    top = CheckTop(x.offset, size_of(x), plan.limit_bytes,
                   fmt::format("residency {} of variable {}", r, x.variable), top, report);
  }
  Bytes host_top = 0;
  for (std::size_t c = 0; c < plan.commands.size(); ++c) {
    const Command& command = plan.commands[c];
    if (command.queue == Queue::kCompute) continue;
    host_top = CheckTop(command.host_offset, size_of(plan.residencies[At(command.residency)]),
                        plan.host_limit_bytes, report->Describe(static_cast<CommandIndex>(c)),
                        host_top, report);
  }
  if (report->clean() && (top != plan.footprint_bytes || host_top != plan.host_bytes)) {
    report->Add(PlanLaw::kLimit,
                fmt::format("the footprint is {} bytes, not {}, and on the host {}, not {}", top,
                            plan.footprint_bytes, host_top, plan.host_bytes));
  }
}

}  // namespace

std::string CheckReport::DescribeOp(OpIndex op) const {
  const std::int32_t name = plan_.problem.ops[At(op)].name;
  const bool named = Holds(plan_.problem.op_names, name);
  return named ? fmt::format("op {} ({})", op, plan_.problem.op_names[At(name)])
               : fmt::format("op {}", op);
}

std::string CheckReport::Describe(CommandIndex command) const {
  const Command& x = plan_.commands[At(command)];
  if (x.queue == Queue::kCompute) return DescribeOp(x.op);
  return fmt::format("{} {} of variable {}", x.queue == Queue::kCopyIn ? "copy-in" : "copy-out",
                     command, plan_.residencies[At(x.residency)].variable);
}

bool CheckShape(const Plan& plan, CheckReport* report) {
  if (!ShapeCheck(plan, report).Run()) return false;
  CheckLimits(plan, report);
  return true;
}

}  // namespace plimsoll::plan

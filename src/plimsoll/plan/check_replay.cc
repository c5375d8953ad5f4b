// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

using Version = std::int64_t;
/// What only a replay has left behind, in the place of state.
constexpr Version kNobodys = -1;

/// Whether a variable is there when the iteration begins and ends.
bool LivesAround(const Problem& problem, const Variable& variable) {
  return variable.persistent() || variable.end > problem.period;
}

/// A variable that a recorded op touches; all operands that name it are one touch.
struct Touch {
  VariableIndex variable = 0;
  std::int32_t age = 0;
  std::int32_t operand = 0;  ///< The first that names it, counted from the op's first.
  bool reads = false;        ///< Needs its content.
  bool state = false;        ///< Updates it on the side.
  bool writes = false;
  Version found = 0;

  bool only_state() const { return state && !reads; }
  bool changes() const { return state || writes; }
};

/// The recorded iteration: what every op found.
class RecordedTouches {
 public:
  explicit RecordedTouches(const Problem& problem)
      : problem_(problem), place_(problem.variables.size(), -1), last_(problem.variables.size()) {
    for (const Op& op : problem.ops) {
      begin_.push_back(touches_.size());
      AddTouches(op);
    }
    begin_.push_back(touches_.size());
    FindVersions();
  }

  std::span<const Touch> of(OpIndex op) const {
    return {touches_.data() + begin_[At(op)], begin_[At(op) + 1] - begin_[At(op)]};
  }
  /// The version in which the iteration leaves what it holds of a variable.
  Version last(VariableIndex v) const { return last_[At(v)]; }

 private:
  void AddTouches(const Op& op) {
    const std::size_t first = touches_.size();
    for (std::int32_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = problem_.operands[At(op.first_operand + k)];
      std::int64_t& place = place_[At(operand.variable)];
      if (place < static_cast<std::int64_t>(first)) {
        place = static_cast<std::int64_t>(touches_.size());
        touches_.push_back({.variable = operand.variable, .age = operand.age, .operand = k});
      }
      Touch& touch = touches_[At(place)];
      if (k >= op.read_count) {
        touch.writes = true;
      } else if (k < 32 && (op.traits.state_reads >> k & 1) != 0) {
        touch.state = true;
      } else {
        touch.reads = true;
      }
    }
  }

  /// What is an iteration old goes on from where that iteration left it.
  void FindVersions() {
    for (Touch& touch : touches_) {
      if (touch.age != 0) continue;
      touch.found = last_[At(touch.variable)];
      last_[At(touch.variable)] += touch.changes() ? 1 : 0;
    }
    std::vector<Version> old = last_;
    for (Touch& touch : touches_) {
      if (touch.age == 0) continue;
      touch.found = old[At(touch.variable)];
      old[At(touch.variable)] += touch.changes() ? 1 : 0;
    }
  }

  const Problem& problem_;
  std::vector<std::int64_t> place_;  // By variable: its latest touch.
  std::vector<Touch> touches_;
  std::vector<std::size_t> begin_;  // By op.
  std::vector<Version> last_;       // By variable.
};

class ReplayCheck {
 public:
  ReplayCheck(const Plan& plan, CheckReport* report)
      : plan_(plan),
        problem_(plan.problem),
        rewriting_(*plan.rewriting),
        original_(plan.rewriting->original),
        report_(*report),
        recorded_(original_),
        mapped_(original_.variables.size()) {}

  void Run() {
    CheckVariables();
    CheckOps();
    if (wrong_) return;  // What ops find can no longer be compared.
    Begin();
    for (std::size_t i = 0; i < problem_.ops.size() && !report_.full(); ++i) RunOp(i);
    CheckEnd();
    CheckReplayScratch(plan_, &report_);
  }

 private:
  /// What a variable holds, and who has left it there; -1: nobody in this iteration.
  struct Content {
    Version version = 0;
    OpIndex left_by = -1;
  };

  void Fail(std::string message) {
    wrong_ = true;
    report_.Add(PlanLaw::kReplay, std::move(message));
  }
  std::string Describe(std::size_t op) const {
    return DescribeSource(plan_, static_cast<OpIndex>(op), report_);
  }

  void CheckVariables() {
    if (problem_.cyclic != original_.cyclic || problem_.laps != original_.laps) {
      Fail(fmt::format("the recorded iteration is {} and of {} laps, the plan's is {} and of {}",
                       original_.cyclic ? "cyclic" : "run once", original_.laps,
                       problem_.cyclic ? "cyclic" : "run once", problem_.laps));
    }
    std::vector<VariableIndex> around(original_.variables.size(), -1);
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const Variable& x = problem_.variables[v];
      const VariableIndex source = rewriting_.variable_source[v];
      const Variable& recorded = original_.variables[At(source)];
      if (x.size_bytes != recorded.size_bytes) {
        Fail(fmt::format("variable {} has {} bytes, its source {} has {}", v, x.size_bytes, source,
                         recorded.size_bytes));
      }
      if (!LivesAround(problem_, x)) continue;
      if (x.persistent() != recorded.persistent() || !LivesAround(original_, recorded)) {
        Fail(
            fmt::format("variable {} lives around the end of the iteration in another way than "
                        "its source {}",
                        v, source));
      } else if (around[At(source)] >= 0) {
        Fail(
            fmt::format("variables {} and {} both stand for variable {}, which lives around the "
                        "end of the iteration",
                        around[At(source)], v, source));
      }
      around[At(source)] = static_cast<VariableIndex>(v);
    }
    for (std::size_t v = 0; v < around.size(); ++v) {
      if (around[v] >= 0 || !LivesAround(original_, original_.variables[v])) continue;
      Fail(
          fmt::format("recorded variable {} lives around the end of the iteration, and no variable "
                      "stands for it",
                      v));
    }
  }

  /// Judges all that does not depend on contents.
  void CheckOps() {
    OpIndex next = 0;  // Recorded op.
    for (std::size_t i = 0; i < problem_.ops.size() && !wrong_; ++i) {
      const OpIndex source = rewriting_.op_source[i];
      if (rewriting_.is_replay[i] != 0) {
        CheckMayReplay(i, next);
      } else if (source != next) {
        Fail(fmt::format("{} runs recorded op {} where {} should come", Describe(i), source,
                         At(next) < original_.ops.size() ? fmt::format("recorded op {}", next)
                                                         : "no further one"));
      } else {
        places_.push_back(static_cast<OpIndex>(i));
        ++next;
      }
      CheckSame(i);
    }
    if (!wrong_ && At(next) < original_.ops.size()) {
      Fail(fmt::format("recorded op {} ({}) never runs: only {} do", next,
                       NameOf(original_, original_.ops[At(next)]), next));
    }
  }

  void CheckMayReplay(std::size_t i, OpIndex next) {
    const OpIndex source = rewriting_.op_source[i];
    const Op& op = original_.ops[At(source)];
    if (source >= next) {
      Fail(fmt::format("{} comes before recorded op {} has run", Describe(i), source));
    } else if (!op.traits.replayable) {
      Fail(fmt::format("{} may not run again", Describe(i)));
    }
    for (const Touch& touch : recorded_.of(source)) {
      if (touch.age == 0) continue;
      Fail(fmt::format("{} touches variable {} of an iteration before", Describe(i),
                       touch.variable));
    }
  }

  static std::string_view NameOf(const Problem& problem, const Op& op) {
    const bool named = op.name >= 0 && At(op.name) < problem.op_names.size();
    return named ? std::string_view(problem.op_names[At(op.name)]) : std::string_view();
  }

  /// Judges that an op is its source, but for whose contents its operands are.
  void CheckSame(std::size_t i) {
    const Op& op = problem_.ops[i];
    const OpIndex source = rewriting_.op_source[i];
    const Op& recorded = original_.ops[At(source)];
    if (NameOf(problem_, op) != NameOf(original_, recorded) || op.phase != recorded.phase ||
        op.duration_ns != recorded.duration_ns || op.traits != recorded.traits ||
        op.read_count != recorded.read_count || op.write_count != recorded.write_count) {
      Fail(fmt::format("{} is not what recorded op {} ({}) is", Describe(i), source,
                       NameOf(original_, recorded)));
      return;
    }
    const std::int32_t count = op.read_count + op.write_count;
    for (std::int32_t k = 0; k < count; ++k) {
      const Operand& x = problem_.operands[At(op.first_operand + k)];
      const Operand& y = original_.operands[At(recorded.first_operand + k)];
      if (rewriting_.variable_source[At(x.variable)] != y.variable || x.age != y.age) {
        Fail(
            fmt::format("{} has variable {} for operand {}, which stands for variable {}, {} "
                        "iterations old; recorded op {} has variable {}, {} iterations old",
                        Describe(i), x.variable, k, rewriting_.variable_source[At(x.variable)],
                        x.age, source, y.variable, y.age));
        return;
      }
      mapped_[At(y.variable)] = x.variable;
    }
    for (std::int32_t k = 0; k < count; ++k) {
      const Operand& x = problem_.operands[At(op.first_operand + k)];
      const VariableIndex other = mapped_[At(rewriting_.variable_source[At(x.variable)])];
      if (x.variable == other) continue;
      Fail(
          fmt::format("{} has variables {} and {} in place of one, which recorded op {} names "
                      "twice",
                      Describe(i), x.variable, other, source));
      return;
    }
  }

  /// Puts into the variables what they hold before the first op touches them.
  void Begin() {
    contents_.resize(problem_.variables.size());
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const VariableIndex source = rewriting_.variable_source[v];
      const bool persistent = problem_.variables[v].persistent();
      if (!persistent && original_.variables[At(source)].persistent()) {
        contents_[v][0].version = kNobodys;
      }
      contents_[v][1].version = recorded_.last(source);
    }
  }

  void RunOp(std::size_t i) {
    const bool replay = rewriting_.is_replay[i] != 0;
    for (const Touch& touch : recorded_.of(rewriting_.op_source[i])) {
      const VariableIndex v =
          problem_.operands[At(problem_.ops[i].first_operand + touch.operand)].variable;
      Content& content = contents_[At(v)][At(touch.age)];
      if (replay && touch.only_state()) {
        CheckScratch(i, v, touch.operand);
        const bool right = content.version == touch.found;
        content = {right ? touch.found + 1 : kNobodys, static_cast<OpIndex>(i)};
        continue;
      }
      if (content.version != touch.found) FailContent(i, v, content, touch);
      if (touch.changes()) content = {touch.found + 1, static_cast<OpIndex>(i)};
    }
  }

  /// Judges what a replay is given in the place of state.
  void CheckScratch(std::size_t i, VariableIndex v, std::int32_t operand) {
    const OpIndex place = places_[At(rewriting_.op_source[i])];
    const VariableIndex real =
        problem_.operands[At(problem_.ops[At(place)].first_operand + operand)].variable;
    if (v != real && !LivesAround(problem_, problem_.variables[At(v)])) return;
    Fail(
        fmt::format("{} updates variable {} once more, and not scratch in place of variable {}, "
                    "which {} has updated",
                    Describe(i), v, real, report_.DescribeOp(place)));
  }

  void FailContent(std::size_t i, VariableIndex v, const Content& content, const Touch& touch) {
    const std::string place = Describe(At(places_[At(rewriting_.op_source[i])]));
    Fail(fmt::format("{} finds {} of variable {}{}; {} found version {}", Describe(i),
                     Text(content.version), v, LeftBy(content),
                     rewriting_.is_replay[i] != 0 ? place : "when recorded, it", touch.found));
  }

  std::string LeftBy(const Content& content) const {
    return content.left_by < 0 ? "" : ", left by " + Describe(At(content.left_by));
  }
  static std::string Text(Version version) {
    return version == kNobodys ? "scratch in place" : fmt::format("version {}", version);
  }

  void CheckEnd() {
    for (std::size_t v = 0; v < problem_.variables.size() && !report_.full(); ++v) {
      const Version last = recorded_.last(rewriting_.variable_source[v]);
      const Content& content = contents_[v][0];
      if (!LivesAround(problem_, problem_.variables[v]) || content.version == last) continue;
      Fail(fmt::format("the iteration ends with {} of variable {}{}, and ended with version {}",
                       Text(content.version), v, LeftBy(content), last));
    }
  }

  const Plan& plan_;
  const Problem& problem_;
  const Rewriting& rewriting_;
  const Problem& original_;
  CheckReport& report_;
  const RecordedTouches recorded_;
  bool wrong_ = false;
  std::vector<OpIndex> places_;                   // By recorded op: where it runs.
  std::vector<VariableIndex> mapped_;             // By recorded variable: whom the op has for it.
  std::vector<std::array<Content, 2>> contents_;  // By variable, and by age.
};

}  // namespace

std::string DescribeSource(const Plan& plan, OpIndex op, const CheckReport& report) {
  const Rewriting& rewriting = *plan.rewriting;
  if (rewriting.is_replay[At(op)] == 0) return report.DescribeOp(op);
  // Recorded op s is not before op s here, as ops are only added.
  const OpIndex source = rewriting.op_source[At(op)];
  for (std::size_t i = At(source); i < rewriting.op_source.size(); ++i) {
    if (rewriting.op_source[i] != source || rewriting.is_replay[i] != 0) continue;
    return fmt::format("replay {} of {}", op, report.DescribeOp(static_cast<OpIndex>(i)));
  }
  return fmt::format("replay {} of recorded op {}", op, source);
}

void CheckReplays(const Plan& plan, CheckReport* report) { ReplayCheck(plan, report).Run(); }

}  // namespace plimsoll::plan

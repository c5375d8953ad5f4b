// SPDX-License-Identifier: Apache-2.0
//
// Small random problems, decisions and plans. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/random_for_test.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/schedule.h"

namespace plimsoll::plan {

using PlanRandom = TestRandom;

inline int PlanCaseCount(int usual) { return CaseCount(usual); }

/// Builds a random problem: a shuffled iteration of mallocs, frees and ops, whose ops read and
/// write anything that is alive. A free that comes before its malloc is of an iteration before.
class RandomProblem {
 public:
  explicit RandomProblem(PlanRandom* random) : random_(*random) {}

  Problem Make() {
    problem_.cyclic = !random_.OneIn(6);
    problem_.op_names = {"alpha", "beta", "gamma"};
    const std::int64_t persistent = random_.Between(0, 3);
    const std::int64_t others = random_.Between(1, 7);
    const std::int64_t ops = random_.Between(1, 14);
    problem_.period = 2 * others + ops;
    for (std::int64_t v = 0; v < persistent; ++v) {
      Add(0, problem_.period).kind = VariableKind::kPersistent;
    }
    AddEvents(others, ops);
    const std::vector<bool> named = AddOperands();
    for (std::size_t v = static_cast<std::size_t>(persistent); v < named.size(); ++v) {
      if (!named[v]) problem_.variables[v].kind = VariableKind::kWorkspace;
    }
    return std::move(problem_);
  }

 private:
  Variable& Add(Position begin, Position end) {
    Variable variable;
    variable.id = static_cast<std::int64_t>(problem_.variables.size());
    variable.size_bytes = random_.OneIn(12) ? 0 : random_.Between(1, 5);
    variable.begin = begin;
    variable.end = end;
    variable.instances =
        static_cast<std::int32_t>((end - begin + problem_.period - 1) / problem_.period);
    problem_.variables.push_back(variable);
    return problem_.variables.back();
  }

  void AddEvents(std::int64_t others, std::int64_t ops) {
    std::vector<Position> slots(static_cast<std::size_t>(problem_.period));
    std::iota(slots.begin(), slots.end(), 0);
    for (std::size_t i = slots.size(); i > 1; --i) std::swap(slots[i - 1], slots[random_.Index(i)]);
    std::vector<std::pair<Position, Position>> lives;
    for (std::int64_t v = 0; v < others; ++v) {
      Position begin = slots[static_cast<std::size_t>(2 * v)];
      Position end = slots[static_cast<std::size_t>(2 * v + 1)];
      if (end < begin && (!problem_.cyclic || random_.OneIn(2))) std::swap(begin, end);
      if (end < begin || (problem_.cyclic && random_.OneIn(20))) end += problem_.period;
      lives.emplace_back(begin, end);
    }
    std::sort(lives.begin(), lives.end());
    for (const auto& [begin, end] : lives) Add(begin, end);
    std::vector<Position> positions(slots.end() - ops, slots.end());
    std::sort(positions.begin(), positions.end());
    for (const Position position : positions) {
      Op op;
      op.name = static_cast<std::int32_t>(random_.Between(0, 2));
      op.duration_ns = random_.Between(0, 80);
      op.position = position;
      problem_.ops.push_back(op);
    }
  }

  /// Returns which variables some op names.
  std::vector<bool> AddOperands() {
    std::vector<bool> named(problem_.variables.size());
    const std::vector<std::int64_t> reads(named.size(), 3);
    std::vector<std::int64_t> writes;  // Some are written rarely, as weights and activations are.
    for (std::size_t v = 0; v < named.size(); ++v) writes.push_back(random_.OneIn(2) ? 4 : 20);
    for (Op& op : problem_.ops) {
      op.first_operand = static_cast<std::int64_t>(problem_.operands.size());
      op.read_count = AddSome(op.position, reads, &named);
      op.write_count = AddSome(op.position, writes, &named);
    }
    return named;
  }

  /// `one_in`: by variable, how rarely an op touches it.
  std::int32_t AddSome(Position position, const std::vector<std::int64_t>& one_in,
                       std::vector<bool>* named) {
    std::int32_t count = 0;
    for (std::size_t v = 0; v < problem_.variables.size(); ++v) {
      const Variable& variable = problem_.variables[v];
      for (std::int32_t age = 0; age < 3; ++age) {
        const Position time = position + age * problem_.period;
        if (time < variable.begin || time >= variable.end || !random_.OneIn(one_in[v])) continue;
        problem_.operands.push_back({static_cast<VariableIndex>(v), age});
        (*named)[v] = true;
        ++count;
      }
    }
    return count;
  }

  PlanRandom& random_;
  Problem problem_;
};

inline Machine RandomMachine(PlanRandom* random) {
  Machine machine;
  machine.out_latency_ns = random->Between(0, 10);
  machine.in_latency_ns = random->Between(0, 10);
  machine.out_bytes_per_s = machine.both_out_bytes_per_s =
      1e8 * static_cast<double>(random->Between(1, 20));
  machine.in_bytes_per_s = machine.both_in_bytes_per_s =
      1e8 * static_cast<double>(random->Between(1, 20));
  return machine;
}

/// Returns the highest load with a decision.
inline Bytes LeastPeak(const Problem& problem, const Decision& decision) {
  const std::vector<Bytes> load = LeastLoad(problem, decision);
  return *std::max_element(load.begin(), load.end());
}

inline Decision RandomDecision(const Problem& problem, PlanRandom* random) {
  Decision decision;
  const std::int64_t share = random->Between(1, 3);
  for (const Gap& gap : ListGaps(problem, 0)) {
    if (random->OneIn(share)) decision.swapped.push_back(gap);
  }
  return decision;
}

/// Makes a plan of a decision, with a random limit and machine; nothing if it does not fit.
inline std::optional<Plan> RandomPlanOf(const Problem& problem, const Decision& decision,
                                        PlanRandom* random) {
  const Bytes least = LeastPeak(problem, decision);
  ScheduleOptions options;
  options.limit_bytes = random->Between(least, std::max(least, LeastPeak(problem, {})) + 2);
  // Mostly little room, so that much is away.
  if (!random->OneIn(4)) options.limit_bytes = least + random->Between(0, 1);
  options.host_limit_bytes = random->OneIn(4) ? random->Between(0, 20) : 1000;
  options.alignment = 1;
  options.prefetch = random->OneIn(2) ? kPrefetchEarly : kPrefetchJustInTime;
  auto made = MakePlan(problem, decision, RandomMachine(random), options);
  if (!std::holds_alternative<Plan>(made)) return std::nullopt;
  return std::get<Plan>(std::move(made));
}

/// Makes a plan of a problem, with a random decision and limit; nothing if none fits.
/// REQUIRES: every variable has one instance.
inline std::optional<Plan> RandomPlanOf(const Problem& problem, PlanRandom* random) {
  return RandomPlanOf(problem, RandomDecision(problem, random), random);
}

/// Makes a plan of a random problem, decision and limit; nothing if none fits.
inline std::optional<Plan> RandomPlan(PlanRandom* random) {
  Problem problem;
  Decision decision;
  do {  // Mostly something that is of use.
    problem = Unroll(RandomProblem(random).Make());
    decision = RandomDecision(problem, random);
  } while (LeastPeak(problem, decision) == LeastPeak(problem, {}) && !random->OneIn(6));
  return RandomPlanOf(problem, decision, random);
}

/// Writes a plan for people who look for what is wrong with it.
inline std::string Dump(const Plan& plan) {
  std::ostringstream text;
  const Problem& problem = plan.problem;
  text << (problem.cyclic ? "cyclic" : "once") << ", period " << problem.period << ", limit "
       << plan.limit_bytes << ", footprint " << plan.footprint_bytes << "\n";
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& x = problem.variables[v];
    text << "variable " << v << " " << Name(x.kind) << " " << x.size_bytes << " bytes [" << x.begin
         << ", " << x.end << ")\n";
  }
  for (std::size_t r = 0; r < plan.residencies.size(); ++r) {
    const Residency& x = plan.residencies[r];
    text << "residency " << r << " of variable " << x.variable << " [" << x.begin << ", " << x.end
         << ") at " << x.offset << " in " << x.copy_in << " out " << x.copy_out << "\n";
  }
  for (const auto& queue : plan.queues) {
    for (const CommandIndex c : queue) {
      const Command& command = plan.commands[static_cast<std::size_t>(c)];
      text << Name(command.queue) << " " << c;
      if (command.queue == Queue::kCompute) {
        const Op& op = problem.ops[static_cast<std::size_t>(command.op)];
        text << " at " << op.position << " reads";
        for (const Operand& x : problem.reads(op)) text << " " << x.variable << "-" << x.age;
        text << " writes";
        for (const Operand& x : problem.writes(op)) text << " " << x.variable << "-" << x.age;
      } else {
        text << " residency " << command.residency << " host " << command.host_offset;
      }
      for (const Wait& wait : command.waits) text << " waits " << wait.command << "-" << wait.lag;
      text << "\n";
    }
  }
  return text.str();
}

}  // namespace plimsoll::plan

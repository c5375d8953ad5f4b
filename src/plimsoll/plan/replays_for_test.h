// SPDX-License-Identifier: Apache-2.0
//
// Random problems with replays, plans of them, and what running them computes. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/random_plan_for_test.h"
#include "plimsoll/plan/rewrite.h"

namespace plimsoll::plan::replays {

/// Gives an operand to an op: the last of what it reads or of what it writes.
inline void InsertOperand(Operand operand, bool writes, std::size_t index, Problem* problem) {
  Op& op = problem->ops[index];
  const std::int64_t behind = op.first_operand + op.read_count + (writes ? op.write_count : 0);
  problem->operands.insert(problem->operands.begin() + behind, operand);
  ++(writes ? op.write_count : op.read_count);
  for (std::size_t k = index + 1; k < problem->ops.size(); ++k) ++problem->ops[k].first_operand;
}

inline bool Names(std::span<const Operand> operands, VariableIndex v) {
  return std::any_of(operands.begin(), operands.end(),
                     [&](const Operand& operand) { return operand.variable == v; });
}

/// Lets most ops run again; some draw random numbers, some update what they read on the side.
inline void AddTraits(PlanRandom* random, Problem* problem) {
  for (std::size_t i = 0; i < problem->ops.size(); ++i) {
    OpTraits& traits = problem->ops[i].traits;
    traits.replayable = !random->OneIn(8);
    traits.random = traits.replayable && random->OneIn(5);
    const std::int32_t count = problem->ops[i].read_count;
    if (count == 0 || !random->OneIn(3)) continue;
    const auto k = static_cast<std::int32_t>(random->Between(0, std::min(count, 32) - 1));
    const Operand state = problem->reads(problem->ops[i])[At(k)];
    traits.state_reads = 1U << k;
    if (random->OneIn(2) || Names(problem->writes(problem->ops[i]), state.variable)) continue;
    InsertOperand(state, true, i, problem);
  }
}

/// A longer iteration, in which ops mostly write what has just come, as layers do.
inline Problem LayeredProblem(PlanRandom* random) {
  Problem problem;
  problem.cyclic = !random->OneIn(6);
  problem.op_names = {"alpha", "beta", "gamma"};
  const std::int64_t persistent = random->Between(0, 2);
  const std::int64_t layers = random->Between(2, 7);
  problem.period = 100;
  for (std::int64_t v = 0; v < persistent; ++v) {
    problem.variables.push_back(
        {.id = v, .size_bytes = 1, .begin = 0, .end = 100, .kind = VariableKind::kPersistent});
  }
  Position position = 0;
  const auto add_op = [&](const std::vector<VariableIndex>& reads, VariableIndex written) {
    Op op;
    op.name = static_cast<std::int32_t>(random->Between(0, 2));
    op.duration_ns = random->Between(0, 80);
    op.position = position++;
    op.first_operand = static_cast<std::int64_t>(problem.operands.size());
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = written >= 0 ? 1 : 0;
    for (const VariableIndex v : reads) problem.operands.push_back({v, 0});
    if (written >= 0) problem.operands.push_back({written, 0});
    problem.ops.push_back(op);
  };
  const auto any = [&](std::int64_t one_in) {
    std::vector<VariableIndex> some;
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      if (problem.variables[v].kind == VariableKind::kWorkspace) continue;
      if (random->OneIn(one_in)) some.push_back(static_cast<VariableIndex>(v));
    }
    return some;
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    if (random->OneIn(4)) {
      problem.variables.push_back({.size_bytes = 1,
                                   .begin = position,
                                   .end = position + random->Between(1, 2),
                                   .kind = VariableKind::kWorkspace});
      position += 2;
    }
    const std::vector<VariableIndex> reads = any(3);
    const auto made = static_cast<VariableIndex>(problem.variables.size());
    problem.variables.push_back(
        {.size_bytes = random->Between(1, 5), .begin = position++, .end = 100});
    add_op(reads, made);
    while (random->OneIn(3)) add_op({made}, made);  // In place.
  }
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<VariableIndex> reads = any(3);
    const bool writes = !reads.empty() && random->OneIn(2);
    add_op(reads, writes ? reads[random->Index(reads.size())] : -1);
  }
  problem.period = position + 1;
  for (Variable& variable : problem.variables) {
    variable.end = variable.kind == VariableKind::kWorkspace ? variable.end : problem.period;
  }
  std::vector<bool> named(problem.variables.size());
  for (const Operand& operand : problem.operands) named[At(operand.variable)] = true;
  for (std::size_t v = At(persistent); v < named.size(); ++v) {
    if (!named[v]) problem.variables[v].kind = VariableKind::kWorkspace;
  }
  return problem;
}

/// A problem with replays, and where it comes from.
struct Replayed {
  Problem problem;
  Rewriting rewriting;

  friend bool operator==(const Replayed&, const Replayed&) = default;
};

/// Drops some of what can be rebuilt; nothing if no op runs again then.
inline std::optional<Replayed> RandomReplayed(PlanRandom* random) {
  Problem recorded = random->OneIn(2) ? LayeredProblem(random) : RandomProblem(random).Make();
  AddTraits(random, &recorded);
  const Problem problem = Unroll(recorded);
  const Rewriter rewriter(problem, 0);
  std::vector<bool> dropped(rewriter.gaps().size());
  const std::int64_t share = random->Between(1, 3);
  for (std::size_t g = 0; g < dropped.size(); ++g) {
    dropped[g] = rewriter.CanDrop(g) && random->OneIn(share);
  }
  RewriteOptions options{.most_replays = 60};
  if (random->OneIn(3)) options.horizon = static_cast<OpIndex>(random->Between(0, 6));
  if (random->OneIn(2)) {
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      options.lingers.push_back(random->OneIn(2));
    }
  }
  const std::optional<Rewritten> rewritten = rewriter.Rewrite(dropped, options);
  if (!rewritten || rewritten->problem.ops.size() == problem.ops.size()) return std::nullopt;
  return Replayed{rewritten->problem, ToRewriting(problem, *rewritten)};
}

/// A plan in which everything has a place of its own.
inline Plan PlainPlan(const Replayed& replayed) {
  Plan plan;
  plan.problem = replayed.problem;
  plan.rewriting = replayed.rewriting;
  for (std::size_t v = 0; v < plan.problem.variables.size(); ++v) {
    const Variable& x = plan.problem.variables[v];
    const Bytes offset = plan.limit_bytes;
    plan.residencies.push_back({static_cast<VariableIndex>(v), x.begin, x.end, offset, -1, -1});
    plan.limit_bytes += x.size_bytes;
  }
  plan.footprint_bytes = plan.limit_bytes;
  for (std::size_t i = 0; i < plan.problem.ops.size(); ++i) {
    plan.commands.push_back({Queue::kCompute, static_cast<OpIndex>(i), -1, 0, {}});
    plan.queues[0].push_back(static_cast<CommandIndex>(i));
  }
  return plan;
}

/// Runs a problem, op after op, on contents that are numbers: whatever an op leaves depends on all
/// that it finds. Notes what recorded ops find.
class ContentRunner {
 public:
  /// Of the problem as recorded.
  explicit ContentRunner(const Problem& problem) : problem_(problem), original_(problem) {
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      op_source_.push_back(static_cast<OpIndex>(i));
    }
    is_replay_.assign(problem.ops.size(), 0);
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      variable_source_.push_back(static_cast<VariableIndex>(v));
    }
  }
  explicit ContentRunner(const Replayed& replayed)
      : problem_(replayed.problem),
        original_(replayed.rewriting.original),
        op_source_(replayed.rewriting.op_source),
        is_replay_(replayed.rewriting.is_replay),
        variable_source_(replayed.rewriting.variable_source) {}

  /// Returns all that recorded ops find, in order, and what is left in the end.
  std::vector<std::uint64_t> Run(std::int64_t iterations) {
    ListScratch();
    contents_.resize(problem_.variables.size());
    for (std::size_t v = 0; v < contents_.size(); ++v) contents_[v] = Unwritten(v);
    for (std::int64_t k = 0; k < (problem_.cyclic ? iterations : 1); ++k) RunIteration(k);
    std::map<VariableIndex, std::uint64_t> left;
    for (std::size_t v = 0; v < contents_.size(); ++v) {
      const Variable& x = problem_.variables[v];
      if (x.persistent() || x.end > problem_.period) left[variable_source_[v]] = contents_[v];
    }
    for (const auto& [v, content] : left) log_.push_back(content);
    return std::move(log_);
  }

 private:
  static std::uint64_t Mix(std::uint64_t sum, std::uint64_t more) {
    sum = (sum ^ (more + 0x9e3779b97f4a7c15U + (sum << 6) + (sum >> 2))) * 0xbf58476d1ce4e5b9U;
    return sum ^ (sum >> 31);
  }
  /// What is there before the first write; a scratch in place of what is persistent is not it.
  std::uint64_t Unwritten(std::size_t v) const {
    const VariableIndex source = variable_source_[v];
    const bool own = problem_.variables[v].persistent();
    const bool theirs = original_.variables[At(source)].persistent();
    return Mix(own == theirs ? 1 : 2, static_cast<std::uint64_t>(source));
  }

  static std::vector<std::vector<VariableIndex>> ScratchOf(const Problem& problem) {
    std::vector<std::vector<VariableIndex>> all(problem.ops.size());
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      bool named = problem.variables[v].persistent();
      for (const Operand& x : problem.operands) named = named || At(x.variable) == v;
      std::size_t i = 0;
      while (i < problem.ops.size() && problem.ops[i].position < problem.variables[v].begin) ++i;
      if (named || (i == problem.ops.size() && !problem.cyclic)) continue;
      all[i % problem.ops.size()].push_back(static_cast<VariableIndex>(v));
    }
    return all;
  }

  /// An op whose recorded scratch is not all there computes something else.
  void ListScratch() {
    const std::vector<std::vector<VariableIndex>> recorded = ScratchOf(original_);
    const std::vector<std::vector<VariableIndex>> now = ScratchOf(problem_);
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      std::set<VariableIndex> there;
      for (const VariableIndex v : now[i]) there.insert(variable_source_[At(v)]);
      const std::vector<VariableIndex>& needed = recorded[At(op_source_[i])];
      is_whole_.push_back(std::all_of(needed.begin(), needed.end(),
                                      [&](VariableIndex v) { return there.contains(v); }));
    }
  }

  void RunIteration(std::int64_t iteration) {
    Position done = -1;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      Malloc(done, problem_.ops[i].position);
      done = problem_.ops[i].position;
      RunOp(i, iteration);
    }
    Malloc(done, problem_.period);
  }

  /// Takes all mallocs between two positions.
  void Malloc(Position from, Position to) {
    for (std::size_t v = 0; v < contents_.size(); ++v) {
      const Variable& x = problem_.variables[v];
      if (!x.persistent() && from < x.begin && x.begin < to) contents_[v] = Unwritten(v);
    }
  }

  void RunOp(std::size_t i, std::int64_t iteration) {
    const Op& op = problem_.ops[i];
    // What it does is what its source does.
    const Op& source = original_.ops[At(op_source_[i])];
    std::set<VariableIndex> state;
    for (std::int32_t k = 0; k < std::min(op.read_count, 32); ++k) {
      if ((source.traits.state_reads >> k & 1) != 0)
        state.insert(problem_.reads(op)[At(k)].variable);
    }
    for (std::int32_t k = 0; k < op.read_count; ++k) {
      const bool marked = k < 32 && (source.traits.state_reads >> k & 1) != 0;
      if (!marked) state.erase(problem_.reads(op)[At(k)].variable);
    }
    std::uint64_t sum = Mix(is_whole_[i] ? 3 : 4, static_cast<std::uint64_t>(op_source_[i]));
    if (source.traits.random) sum = Mix(sum, static_cast<std::uint64_t>(iteration));
    // What may not run again gives something else each time.
    if (is_replay_[i] != 0 && !source.traits.replayable) sum = Mix(sum, 5);
    std::set<VariableIndex> changed = state;
    for (std::int32_t k = 0; k < op.read_count + op.write_count; ++k) {
      const VariableIndex v = problem_.operands[At(op.first_operand + k)].variable;
      if (is_replay_[i] == 0) log_.push_back(contents_[At(v)]);
      if (!state.contains(v)) sum = Mix(sum, contents_[At(v)]);
      if (k >= op.read_count) changed.insert(v);
    }
    for (const VariableIndex v : changed) {
      const auto own = Mix(sum, static_cast<std::uint64_t>(variable_source_[At(v)]));
      contents_[At(v)] = state.contains(v) ? Mix(own, contents_[At(v)]) : own;
    }
  }

  const Problem& problem_;
  const Problem& original_;
  std::vector<OpIndex> op_source_;
  std::vector<std::uint8_t> is_replay_;
  std::vector<VariableIndex> variable_source_;
  std::vector<bool> is_whole_;           // By op.
  std::vector<std::uint64_t> contents_;  // By variable.
  std::vector<std::uint64_t> log_;
};

/// Whether recorded ops find, over several iterations, what they found when recorded.
inline bool ComputesTheSame(const Replayed& replayed) {
  return ContentRunner(replayed).Run(4) == ContentRunner(replayed.rewriting.original).Run(4);
}

/// Makes a plan of a random problem with replays, decision and limit; nothing if none fits.
inline std::optional<Plan> RandomReplayPlan(PlanRandom* random) {
  const std::optional<Replayed> replayed = RandomReplayed(random);
  if (!replayed) return std::nullopt;
  std::optional<Plan> plan = RandomPlanOf(replayed->problem, random);
  if (plan) plan->rewriting = replayed->rewriting;
  return plan;
}

}  // namespace plimsoll::plan::replays

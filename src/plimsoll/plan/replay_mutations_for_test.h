// SPDX-License-Identifier: Apache-2.0
//
// Changes that make most problems with replays wrong. For tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/plan/replays_for_test.h"

namespace plimsoll::plan::replays {

/// Puts ops into another order, or leaves some out: `order` has the old numbers. Positions and
/// lifetimes become those of the new order; what no op names stays with its op.
inline void Reorder(const std::vector<std::size_t>& order, Replayed* replayed) {
  Problem& problem = replayed->problem;
  const Problem old = problem;
  const Rewriting& from = replayed->rewriting;
  std::vector<OpIndex> op_source;
  std::vector<std::uint8_t> is_replay;
  std::vector<std::int64_t> place(old.ops.size(), -1);
  problem.ops.clear();
  for (std::size_t k = 0; k < order.size(); ++k) {
    problem.ops.push_back(old.ops[order[k]]);
    problem.ops.back().position = static_cast<Position>(4 * k + 7);
    op_source.push_back(from.op_source[order[k]]);
    is_replay.push_back(from.is_replay[order[k]]);
    place[order[k]] = static_cast<std::int64_t>(k);
  }
  problem.period = static_cast<Position>(4 * order.size() + 6);
  replayed->rewriting.op_source = std::move(op_source);
  replayed->rewriting.is_replay = std::move(is_replay);

  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    Variable& x = problem.variables[v];
    if (x.persistent()) {
      x.end = problem.period;
      continue;
    }
    const bool around = x.end > old.period;
    std::array<std::vector<std::int64_t>, 2> uses;  // By age.
    for (std::size_t k = 0; k < problem.ops.size(); ++k) {
      const Op& op = problem.ops[k];
      for (std::int32_t o = 0; o < op.read_count + op.write_count; ++o) {
        const Operand& operand = problem.operands[At(op.first_operand + o)];
        if (At(operand.variable) == v) {
          uses[At(operand.age)].push_back(static_cast<std::int64_t>(k));
        }
      }
    }
    std::size_t owner = 0;
    while (owner < old.ops.size() && old.ops[owner].position < x.begin) ++owner;
    const bool named = !uses[0].empty() || !uses[1].empty();
    x.begin = problem.period - 2;
    x.end = problem.period - 1;
    if (!named && owner < old.ops.size() && place[owner] >= 0) {
      x.begin = 4 * place[owner] + 5;
      x.end = x.begin + 3;
    } else if (!uses[0].empty()) {
      x.begin = 4 * uses[0].front() + 4;
      x.end = 4 * uses[0].back() + 8;
    }
    const Position last = uses[1].empty() ? (named ? 0 : 7) : 4 * uses[1].back() + 7;
    if (around) x.end = problem.period + last + 1;
    if (around) x.end = std::min(x.end, x.begin + problem.period);
  }
}

inline std::vector<std::size_t> SameOrder(const Replayed& replayed) {
  std::vector<std::size_t> order(replayed.problem.ops.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

inline void MoveOp(std::size_t from, std::size_t to, Replayed* replayed) {
  std::vector<std::size_t> order = SameOrder(*replayed);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), from);
  Reorder(order, replayed);
}

inline void RemoveOp(std::size_t op, Replayed* replayed) {
  std::vector<std::size_t> order = SameOrder(*replayed);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(op));
  Reorder(order, replayed);
}

inline void ExchangeOps(std::size_t a, std::size_t b, Replayed* replayed) {
  std::vector<std::size_t> order = SameOrder(*replayed);
  std::swap(order[a], order[b]);
  Reorder(order, replayed);
}

/// Where the recorded op runs that an op is or replays.
inline std::size_t RecordedPlace(const Replayed& replayed, std::size_t op) {
  const Rewriting& rewriting = replayed.rewriting;
  std::size_t i = 0;
  while (rewriting.is_replay[i] != 0 || rewriting.op_source[i] != rewriting.op_source[op]) ++i;
  return i;
}

/// Gives an op another variable in the place of one, wherever it names it.
inline void Rename(std::size_t index, VariableIndex from, VariableIndex to, Replayed* replayed) {
  const Op& op = replayed->problem.ops[index];
  for (std::int32_t k = 0; k < op.read_count + op.write_count; ++k) {
    Operand& operand = replayed->problem.operands[At(op.first_operand + k)];
    if (operand.variable == from) operand.variable = to;
  }
  Reorder(SameOrder(*replayed), replayed);
}

enum class ReplayMutation {
  kNone,
  kOtherOp,
  kMoveReplay,
  kMoveBefore,
  kOperand,
  kRecordedOperand,
  kOneOperand,
  kRealState,
  kForbid,
  kVariableSource,
  kDropRecorded,
  kExchange,
  kExchangeRecorded,
  kFlip,
  kRemoveReplay,
  kRemoveVariable,
  kMarkState,
};

/// How many mutants are right.
enum class Accepted { kNone, kFewOrNone, kSome };

struct ReplayMutationInfo {
  ReplayMutation mutation = ReplayMutation::kNone;
  const char* name = "";
  Accepted accepted = Accepted::kNone;
  /// How many of those that kReplay refuses compute something else. The rest come too early or
  /// touch what nobody reads again, or what is wrong with them is not a number.
  int seen_percent = 95;
};

inline constexpr std::array<ReplayMutationInfo, 17> kReplayMutations = {{
    {ReplayMutation::kNone, "nothing but positions changes", Accepted::kSome, 0},
    {ReplayMutation::kOtherOp, "a replay is of another op", Accepted::kFewOrNone},
    {ReplayMutation::kMoveReplay, "a replay is moved", Accepted::kSome, 70},
    {ReplayMutation::kMoveBefore, "a replay comes before its op", Accepted::kNone, 30},
    {ReplayMutation::kOperand, "a replay has another operand", Accepted::kSome, 90},
    {ReplayMutation::kRecordedOperand, "a recorded op has another operand", Accepted::kSome},
    {ReplayMutation::kOneOperand, "one operand is another variable", Accepted::kSome, 90},
    {ReplayMutation::kRealState, "a replay updates the real state", Accepted::kNone, 80},
    {ReplayMutation::kForbid, "a replayed op may not run again", Accepted::kNone},
    {ReplayMutation::kVariableSource, "a variable stands for another", Accepted::kFewOrNone, 85},
    {ReplayMutation::kDropRecorded, "a recorded op is left out", Accepted::kNone, 85},
    {ReplayMutation::kExchange, "a recorded op and a replay change places", Accepted::kSome, 90},
    {ReplayMutation::kExchangeRecorded, "two recorded ops change places", Accepted::kNone, 90},
    {ReplayMutation::kFlip, "a replay counts as recorded, or the other way", Accepted::kNone, 90},
    {ReplayMutation::kRemoveReplay, "a replay is left out", Accepted::kFewOrNone},
    {ReplayMutation::kRemoveVariable, "scratch comes after its op", Accepted::kFewOrNone, 70},
    {ReplayMutation::kMarkState, "an op updates what it reads", Accepted::kSome, 85},
}};

/// Returns an op that is a replay, or one that is not.
inline std::optional<std::size_t> AnyOp(const Replayed& replayed, bool replay, PlanRandom* random) {
  std::vector<std::size_t> ops;
  for (std::size_t i = 0; i < replayed.problem.ops.size(); ++i) {
    if ((replayed.rewriting.is_replay[i] != 0) == replay) ops.push_back(i);
  }
  if (ops.empty()) return std::nullopt;
  return ops[random->Index(ops.size())];
}

inline bool OtherOp(std::size_t replay, Replayed* replayed, PlanRandom* random) {
  const Problem& original = replayed->rewriting.original;
  const std::size_t source = random->Index(original.ops.size());
  if (replayed->rewriting.op_source[replay] == static_cast<OpIndex>(source)) return false;
  Op& op = replayed->problem.ops[replay];
  const Op& other = original.ops[source];
  op.name = other.name;
  op.duration_ns = other.duration_ns;
  op.phase = other.phase;
  op.traits = other.traits;
  replayed->rewriting.op_source[replay] = static_cast<OpIndex>(source);
  return true;
}

/// Exchanges a variable of an op for another, of the same source if there is one.
inline bool OtherOperand(std::size_t index, bool all, Replayed* replayed, PlanRandom* random) {
  const Op& op = replayed->problem.ops[index];
  if (op.read_count + op.write_count == 0) return false;
  Operand& operand =
      replayed->problem
          .operands[At(op.first_operand) + random->Index(At(op.read_count + op.write_count))];
  const std::vector<VariableIndex>& sources = replayed->rewriting.variable_source;
  std::vector<VariableIndex> others;
  for (std::size_t v = 0; v < sources.size(); ++v) {
    const auto other = static_cast<VariableIndex>(v);
    if (other != operand.variable && sources[v] == sources[At(operand.variable)]) {
      others.push_back(other);
    }
  }
  if (others.empty()) return false;
  const VariableIndex other = others[random->Index(others.size())];
  if (all) {
    Rename(index, operand.variable, other, replayed);
  } else {
    operand.variable = other;
    Reorder(SameOrder(*replayed), replayed);
  }
  return true;
}

inline bool RealState(std::size_t replay, Replayed* replayed) {
  const Op& op = replayed->problem.ops[replay];
  const Op& real = replayed->problem.ops[RecordedPlace(*replayed, replay)];
  for (std::int32_t k = 0; k < std::min(op.read_count, 32); ++k) {
    if ((op.traits.state_reads >> k & 1) == 0) continue;
    Rename(replay, replayed->problem.reads(op)[At(k)].variable,
           replayed->problem.reads(real)[At(k)].variable, replayed);
    return true;
  }
  return false;
}

/// Changes the traits of an op wherever it is.
inline void ChangeTraits(OpIndex source, const OpTraits& traits, Replayed* replayed) {
  replayed->rewriting.original.ops[At(source)].traits = traits;
  for (std::size_t i = 0; i < replayed->problem.ops.size(); ++i) {
    if (replayed->rewriting.op_source[i] == source) replayed->problem.ops[i].traits = traits;
  }
}

/// Takes what no op names away from its op: it has its malloc behind the op.
inline bool RemoveVariable(Replayed* replayed, PlanRandom* random) {
  const std::size_t v = random->Index(replayed->problem.variables.size());
  Variable& x = replayed->problem.variables[v];
  const Problem& problem = replayed->problem;
  for (const Operand& operand : problem.operands) {
    if (At(operand.variable) == v) return false;
  }
  if (x.persistent() || x.end > problem.period) return false;
  for (const Op& op : problem.ops) {
    if (op.position < x.begin) continue;
    x.begin = op.position + 1;
    x.end = x.begin + 1;
    return x.end <= problem.period;
  }
  return false;
}

/// Changes one thing; returns whether there was anything to change.
inline bool Mutate(ReplayMutation mutation, Replayed* replayed, PlanRandom* random) {
  Rewriting& rewriting = replayed->rewriting;
  const std::size_t replay = *AnyOp(*replayed, true, random);
  const std::optional<std::size_t> recorded = AnyOp(*replayed, false, random);
  const OpIndex source = rewriting.op_source[replay];
  OpTraits traits = replayed->problem.ops[replay].traits;
  switch (mutation) {
    case ReplayMutation::kNone:
      return true;
    case ReplayMutation::kOtherOp:
      return OtherOp(replay, replayed, random);
    case ReplayMutation::kMoveReplay:
      MoveOp(replay, random->Index(replayed->problem.ops.size()), replayed);
      return true;
    case ReplayMutation::kMoveBefore:
      MoveOp(replay, random->Index(RecordedPlace(*replayed, replay) + 1), replayed);
      return true;
    case ReplayMutation::kOperand:
      return OtherOperand(replay, true, replayed, random);
    case ReplayMutation::kRecordedOperand:
      return OtherOperand(*recorded, true, replayed, random);
    case ReplayMutation::kOneOperand:
      return OtherOperand(random->OneIn(2) ? *recorded : replay, false, replayed, random);
    case ReplayMutation::kRealState:
      return RealState(replay, replayed);
    case ReplayMutation::kForbid:
      traits.replayable = false;
      ChangeTraits(source, traits, replayed);
      return true;
    case ReplayMutation::kVariableSource: {
      VariableIndex& of =
          rewriting.variable_source[random->Index(rewriting.variable_source.size())];
      const auto other =
          static_cast<VariableIndex>(random->Index(rewriting.original.variables.size()));
      return std::exchange(of, other) != other;
    }
    case ReplayMutation::kDropRecorded:
      RemoveOp(*recorded, replayed);
      return true;
    case ReplayMutation::kExchange:
      ExchangeOps(replay, random->OneIn(2) ? *recorded : RecordedPlace(*replayed, replay),
                  replayed);
      return true;
    case ReplayMutation::kExchangeRecorded: {
      const std::size_t other = *AnyOp(*replayed, false, random);
      if (other == *recorded) return false;
      ExchangeOps(*recorded, other, replayed);
      return true;
    }
    case ReplayMutation::kFlip:
      rewriting.is_replay[random->OneIn(2) ? replay : *recorded] ^= 1;
      return true;
    case ReplayMutation::kRemoveReplay:
      RemoveOp(replay, replayed);
      return true;
    case ReplayMutation::kRemoveVariable:
      return RemoveVariable(replayed, random);
    case ReplayMutation::kMarkState:
      if (replayed->problem.ops[*recorded].read_count == 0) return false;
      traits = replayed->problem.ops[*recorded].traits;
      traits.state_reads ^=
          1U << random->Index(At(std::min(32, replayed->problem.ops[*recorded].read_count)));
      ChangeTraits(rewriting.op_source[*recorded], traits, replayed);
      return true;
  }
  return false;
}

}  // namespace plimsoll::plan::replays

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/gaps.h"

#include <algorithm>
#include <iterator>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

void AddAccess(const Op& op, OpIndex index, const Problem& problem, const Operand& operand,
               bool writes, std::vector<std::vector<Access>>* accesses) {
  std::vector<Access>& own = (*accesses)[At(operand.variable)];
  // Persistent variables have no age: their axis is the iteration itself.
  const Position time = op.position + operand.age * problem.period;
  // Accesses of one op follow each other closely, but not always: a list is sorted later.
  for (auto access = own.rbegin(); access != own.rend() && access - own.rbegin() < 4; ++access) {
    if (access->op != index || access->time != time) continue;
    access->reads = access->reads || !writes;
    access->writes = access->writes || writes;
    return;
  }
  own.push_back({index, time, !writes, writes});
}

/// Of the size from which on variables count, that of moments.
constexpr Bytes kMomentShare = 16;
/// In longer iterations there are too many of them to look at.
constexpr std::size_t kMostOpsWithMoments = 8'000;

/// Gaps of large variables, and those of moments that are not that large.
std::vector<Gap> ListGaps(const Problem& problem, Bytes least_bytes, Bytes least_moment_bytes) {
  std::vector<Gap> gaps;
  const std::vector<std::vector<Access>> accesses = ListAccesses(problem);
  const auto last = static_cast<OpIndex>(problem.ops.size()) - 1;
  for (std::size_t v = 0; v < accesses.size(); ++v) {
    const Variable& variable = problem.variables[v];
    const std::vector<Access>& own = accesses[v];
    if (variable.size_bytes == 0 || own.empty()) continue;
    const bool large = variable.size_bytes >= least_bytes;
    const bool moment =
        variable.size_bytes >= least_moment_bytes &&
        IsMoment(problem, static_cast<VariableIndex>(v), own.front().op, own.back().op);
    if (!large && !moment) continue;
    const auto add = [&](const Access& from, const Access& to, Position end) {
      const Position begin = from.time + 1;
      const Position shift = begin / (problem.period + 1) * problem.period;
      // The next op in program order follows at once: there is no gap to speak of.
      const bool around = end - shift >= problem.period;
      const bool adjacent = around ? from.op == last && to.op == 0 : to.op == from.op + 1;
      if (adjacent || begin >= end) return;
      gaps.push_back({static_cast<VariableIndex>(v), from.op, to.op, begin - shift, end - shift});
    };
    for (std::size_t k = 0; large && k + 1 < own.size(); ++k) {
      add(own[k], own[k + 1], own[k + 1].time);
    }
    if (variable.persistent() && problem.cyclic) {
      add(own.back(), own.front(), own.front().time + problem.period);
    }
  }
  return gaps;
}

}  // namespace

std::vector<std::vector<Access>> ListAccesses(const Problem& problem) {
  std::vector<std::vector<Access>> accesses(problem.variables.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const Op& op = problem.ops[i];
    const auto index = static_cast<OpIndex>(i);
    for (const Operand& o : problem.reads(op)) AddAccess(op, index, problem, o, false, &accesses);
    for (const Operand& o : problem.writes(op)) AddAccess(op, index, problem, o, true, &accesses);
  }
  for (std::size_t v = 0; v < accesses.size(); ++v) {
    std::vector<Access>& own = accesses[v];
    const Variable& variable = problem.variables[v];
    if (own.empty() && !variable.persistent() && !problem.ops.empty()) {
      const auto op =
          std::lower_bound(problem.ops.begin(), problem.ops.end(), variable.begin,
                           [](const Op& x, Position position) { return x.position < position; });
      const bool wraps = op == problem.ops.end();
      const Op& owner = wraps ? problem.ops.front() : *op;
      own.push_back({static_cast<OpIndex>(wraps ? 0 : op - problem.ops.begin()),
                     owner.position + (wraps ? problem.period : 0), true, true});
    }
    std::sort(own.begin(), own.end(),
              [](const Access& a, const Access& b) { return a.time < b.time; });
  }
  return accesses;
}

std::vector<Gap> ListGaps(const Problem& problem, Bytes least_bytes) {
  return ListGaps(problem, least_bytes, /*least_moment_bytes=*/kMaxBytes);
}

std::vector<Gap> ListGapsAndMoments(const Problem& problem, Bytes least_bytes) {
  if (problem.ops.size() > kMostOpsWithMoments) return ListGaps(problem, least_bytes);
  return ListGaps(problem, least_bytes, least_bytes / kMomentShare);
}

bool IsMoment(const Problem& problem, VariableIndex variable, OpIndex first, OpIndex last) {
  if (!problem.variables[At(variable)].persistent() || !problem.cyclic) return false;
  return last - first < static_cast<OpIndex>(problem.ops.size() / 4);
}

std::vector<OpIndex> FindLastWriters(const Problem& problem, const std::vector<Gap>& gaps) {
  std::vector<bool> wanted(problem.variables.size());
  // Per variable: the first gap of the iteration; 0 if one goes around its end.
  std::vector<Position> first_begin(problem.variables.size(), problem.period + 1);
  for (const Gap& gap : gaps) {
    wanted[At(gap.variable)] = true;
    Position& first = first_begin[At(gap.variable)];
    first = std::min(first, gap.end >= problem.period ? 0 : gap.begin);
  }
  std::vector<std::vector<OpIndex>> writers(problem.variables.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const Operand& x : problem.writes(problem.ops[i])) {
      if (wanted[At(x.variable)]) writers[At(x.variable)].push_back(static_cast<OpIndex>(i));
    }
  }
  std::vector<OpIndex> last;
  last.reserve(gaps.size());
  for (const Gap& gap : gaps) {
    const std::vector<OpIndex>& own = writers[At(gap.variable)];
    const Position begin = problem.variables[At(gap.variable)].begin;
    const auto behind = std::upper_bound(own.begin(), own.end(), gap.after);
    if (behind == own.begin()) {
      // Nobody has written it in this iteration: it came from the one before, in which it was made.
      const bool was_there = gap.begin <= begin || problem.variables[At(gap.variable)].persistent();
      const bool is_first = gap.begin == first_begin[At(gap.variable)];
      last.push_back(was_there && is_first ? -1 : gap.after);
      continue;
    }
    const OpIndex writer = *std::prev(behind);
    // What is written before the malloc is of the iteration before, unless the gap is, too.
    const bool other = gap.begin > begin && problem.ops[At(writer)].position < begin;
    last.push_back(other ? gap.after : writer);
  }
  return last;
}

Problem Unroll(const Problem& problem) {
  std::int32_t copies = 1;
  for (const Variable& variable : problem.variables) copies = std::max(copies, variable.instances);
  if (copies == 1) return problem;
  Problem unrolled = problem;
  unrolled.period = problem.period * copies;
  unrolled.laps = problem.laps * copies;
  unrolled.variables.clear();
  unrolled.ops.clear();
  unrolled.operands.clear();
  // Copy r of variable v is at first[v] + r; persistent variables have one.
  std::vector<VariableIndex> first;
  for (const Variable& variable : problem.variables) {
    first.push_back(static_cast<VariableIndex>(unrolled.variables.size()));
    for (std::int32_t r = 0; r < (variable.persistent() ? 1 : copies); ++r) {
      Variable copy = variable;
      copy.instances = 1;
      copy.begin += r * problem.period;
      copy.end += r * problem.period;
      if (variable.persistent()) copy.end = unrolled.period;
      unrolled.variables.push_back(copy);
    }
  }
  for (std::int32_t r = 0; r < copies; ++r) {
    for (Op op : problem.ops) {
      const std::int64_t old_first = op.first_operand;
      op.position += r * problem.period;
      op.first_operand = static_cast<std::int64_t>(unrolled.operands.size());
      for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
        const Operand& operand = problem.operands[At(old_first + k)];
        if (problem.variables[At(operand.variable)].persistent()) {
          unrolled.operands.push_back({first[At(operand.variable)], 0});
          continue;
        }
        // Iterations ago, in copies: before the first copy lies the last one, a cycle earlier.
        const std::int32_t source = r - operand.age;
        const std::int32_t age = source < 0 ? (-source + copies - 1) / copies : 0;
        unrolled.operands.push_back({first[At(operand.variable)] + source + age * copies, age});
      }
      unrolled.ops.push_back(op);
    }
  }
  return unrolled;
}

}  // namespace plimsoll::plan

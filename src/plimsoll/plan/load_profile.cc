// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/load_profile.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plimsoll::plan {
namespace {

/// How many instances of a variable are live right after the event at `position`.
std::int32_t LiveInstances(const Problem& problem, const Variable& variable, Position position) {
  if (!problem.cyclic) return variable.begin <= position && position < variable.end ? 1 : 0;
  // Instances of earlier iterations are at position, position + period, ... of their own time.
  std::int32_t count = 0;
  for (Position age = position; age < variable.end; age += problem.period) {
    if (age >= variable.begin) ++count;
  }
  return count;
}

Spread QuantilesOf(std::vector<std::int64_t> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t last = values.size() - 1;
  return {values.front(), values[last / 2], values[last * 9 / 10], values.back()};
}

}  // namespace

LoadProfile ProfileLoad(const Problem& problem) {
  LoadProfile profile;
  const auto period = static_cast<std::size_t>(problem.period);
  std::vector<Bytes> change(period + 1, 0);
  for (const Variable& variable : problem.variables) {
    // Cut a life that goes around the end into pieces of one iteration each.
    for (Position shift = 0; shift < variable.end; shift += problem.period) {
      const Position begin = std::max<Position>(variable.begin - shift, 0);
      const Position end = std::min(variable.end - shift, problem.period);
      if (begin >= end) continue;
      change[static_cast<std::size_t>(begin)] += variable.size_bytes;
      change[static_cast<std::size_t>(end)] -= variable.size_bytes;
    }
  }
  change.pop_back();
  std::partial_sum(change.begin(), change.end(), change.begin());
  profile.load_bytes = std::move(change);
  const auto peak = std::max_element(profile.load_bytes.begin(), profile.load_bytes.end());
  if (peak != profile.load_bytes.end()) {
    profile.peak_bytes = *peak;
    profile.peak_position = peak - profile.load_bytes.begin();
  }
  profile.start_ns.assign(period, 0);
  for (const Op& op : problem.ops) {
    const auto next = static_cast<std::size_t>(op.position) + 1;
    if (next < period) profile.start_ns[next] += op.duration_ns;
  }
  std::partial_sum(profile.start_ns.begin(), profile.start_ns.end(), profile.start_ns.begin());
  return profile;
}

std::vector<LiveVariable> LiveAt(const Problem& problem, Position position) {
  std::vector<LiveVariable> live;
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const std::int32_t instances = LiveInstances(problem, problem.variables[v], position);
    if (instances > 0) live.push_back({static_cast<VariableIndex>(v), instances});
  }
  std::stable_sort(live.begin(), live.end(), [&](const LiveVariable& a, const LiveVariable& b) {
    return problem.variables[static_cast<std::size_t>(a.variable)].size_bytes * a.instances >
           problem.variables[static_cast<std::size_t>(b.variable)].size_bytes * b.instances;
  });
  return live;
}

Breakdown BreakDown(const Problem& problem, const LoadProfile& profile) {
  Breakdown breakdown;
  const auto add = [&](Group* group, const Variable& variable) {
    ++group->count;
    group->total_bytes += variable.size_bytes;
    group->at_peak_bytes +=
        variable.size_bytes * LiveInstances(problem, variable, profile.peak_position);
  };
  for (const Variable& variable : problem.variables) {
    add(&breakdown.kinds[static_cast<std::size_t>(variable.kind)], variable);
    if (!variable.persistent()) {
      add(&breakdown.phases[static_cast<std::size_t>(variable.phase)], variable);
    }
  }
  for (const Op& op : problem.ops) {
    ++breakdown.phase_ops[static_cast<std::size_t>(op.phase)];
    breakdown.phase_ns[static_cast<std::size_t>(op.phase)] += op.duration_ns;
  }
  return breakdown;
}

Spreads SpreadOf(const Problem& problem, const LoadProfile& profile) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> events;
  std::vector<std::int64_t> times;
  const Nanoseconds total = problem.iteration_ns();
  const auto moment = [&](Position position) {
    return profile.start_ns[static_cast<std::size_t>(position % problem.period)] +
           position / problem.period * total;
  };
  for (const Variable& variable : problem.variables) {
    if (variable.persistent()) continue;
    sizes.push_back(variable.size_bytes);
    events.push_back(variable.end - variable.begin);
    times.push_back(moment(variable.end) - moment(variable.begin));
  }
  return {QuantilesOf(std::move(sizes)), QuantilesOf(std::move(events)),
          QuantilesOf(std::move(times))};
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
//
// Plans that use a host copy more than once, made of plans that do not. For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::plan::host_copies {

/// One host copy of a variable: who saves it, and who reads it, in the order of their stays.
struct HostCopyForTest {
  CommandIndex out = -1;
  std::vector<CommandIndex> ins;
};

/// Returns the residencies of each variable in the order of its life. A ring begins with a stay
/// that is saved, if there is one.
inline std::vector<std::vector<ResidencyIndex>> StaysInOrder(const Plan& plan) {
  std::vector<std::vector<ResidencyIndex>> stays(plan.problem.variables.size());
  for (std::size_t r = 0; r < plan.residencies.size(); ++r) {
    stays[At(plan.residencies[r].variable)].push_back(static_cast<ResidencyIndex>(r));
  }
  const auto at = [&](ResidencyIndex r) -> const Residency& { return plan.residencies[At(r)]; };
  for (std::size_t v = 0; v < stays.size(); ++v) {
    const Variable& variable = plan.problem.variables[v];
    const auto time = [&](ResidencyIndex r) {
      const bool later = !variable.persistent() && at(r).begin < variable.begin;
      return at(r).begin + (later ? plan.problem.period : 0);
    };
    std::sort(stays[v].begin(), stays[v].end(),
              [&](ResidencyIndex a, ResidencyIndex b) { return time(a) < time(b); });
    if (!variable.persistent()) continue;
    const auto saved = std::find_if(stays[v].begin(), stays[v].end(),
                                    [&](ResidencyIndex r) { return at(r).copy_out >= 0; });
    if (saved != stays[v].end()) std::rotate(stays[v].begin(), saved, stays[v].end());
  }
  return stays;
}

inline std::vector<HostCopyForTest> ListHostCopies(const Plan& plan) {
  std::vector<HostCopyForTest> copies;
  for (const std::vector<ResidencyIndex>& stays : StaysInOrder(plan)) {
    std::optional<std::size_t> current;
    for (std::size_t k = 0; k < 2 * stays.size(); ++k) {
      // Around the ring once more: what comes before the first copy out reads the last one.
      const Residency& r = plan.residencies[At(stays[k % stays.size()])];
      const bool again = k >= stays.size();
      if (again && !plan.problem.variables[At(r.variable)].persistent()) break;
      if (r.copy_in >= 0 && current) copies[*current].ins.push_back(r.copy_in);
      if (r.copy_out >= 0 && again) break;
      if (r.copy_out < 0) continue;
      current = copies.size();
      copies.push_back({r.copy_out, {}});
    }
  }
  return copies;
}

/// Whether some op writes a variable while it is in this residency.
inline bool IsWritten(const Plan& plan, const Residency& residency) {
  for (const Op& op : plan.problem.ops) {
    const Position later = op.position + plan.problem.period;
    const bool here =
        (op.position >= residency.begin && op.position < residency.end) || later < residency.end;
    for (const Operand& x : plan.problem.writes(op)) {
      if (here && x.variable == residency.variable) return true;
    }
  }
  return false;
}

/// Returns the residencies that nobody saves although another one of their variable follows.
inline std::vector<ResidencyIndex> ListDrops(const Plan& plan) {
  std::vector<ResidencyIndex> drops;
  for (const std::vector<ResidencyIndex>& stays : StaysInOrder(plan)) {
    for (const ResidencyIndex index : stays) {
      const Residency& r = plan.residencies[At(index)];
      const bool last =
          index == stays.back() && !plan.problem.variables[At(r.variable)].persistent();
      if (r.copy_in >= 0 && r.copy_out < 0 && !last) drops.push_back(index);
    }
  }
  return drops;
}

/// What a command waits for, by its edges and in its queue.
inline std::vector<Wait> AllWaits(const Plan& plan, CommandIndex c) {
  const Command& command = plan.commands[At(c)];
  const auto& queue = plan.queues[static_cast<std::size_t>(command.queue)];
  const auto place = std::find(queue.begin(), queue.end(), c);
  std::vector<Wait> waits = command.waits;
  if (place != queue.begin()) {
    waits.push_back({*(place - 1), 0});
  } else if (plan.problem.cyclic) {
    waits.push_back({queue.back(), 1});
  }
  return waits;
}

/// Replaces each wait for a command by waits for all that it waited for, of as many iterations
/// more.
inline std::vector<Wait> WaitPast(CommandIndex removed, const std::vector<Wait>& inherited,
                                  const std::vector<Wait>& waits) {
  std::vector<Wait> result;
  for (const Wait& wait : waits) {
    if (wait.command != removed) {
      result.push_back(wait);
      continue;
    }
    for (const Wait& more : inherited) {
      // Of itself it needs nothing: what its twins waited for is over before what it waits for.
      if (more.command != removed) result.push_back({more.command, more.lag + wait.lag});
    }
  }
  return result;
}

/// Takes a command out of a plan. Every path between two others remains.
inline void RemoveCommand(CommandIndex removed, Plan* plan) {
  const std::vector<Wait> inherited = AllWaits(*plan, removed);
  const auto renumber = [&](CommandIndex* c) { *c -= *c > removed ? 1 : 0; };
  for (auto& queue : plan->queues) {
    queue.erase(std::remove(queue.begin(), queue.end(), removed), queue.end());
    for (CommandIndex& c : queue) renumber(&c);
  }
  plan->commands.erase(plan->commands.begin() + removed);
  for (Command& command : plan->commands) {
    command.waits = WaitPast(removed, inherited, command.waits);
    for (Wait& wait : command.waits) renumber(&wait.command);
  }
  for (Residency& r : plan->residencies) {
    if (r.copy_out == removed) r.copy_out = -1;
    if (r.copy_in == removed) r.copy_in = -1;
    renumber(&r.copy_in);
    renumber(&r.copy_out);
  }
}

/// Gives every host copy bytes of its own.
inline void SpreadHostCopies(Plan* plan) {
  Bytes top = 0;
  for (const HostCopyForTest& copy : ListHostCopies(*plan)) {
    Command& out = plan->commands[At(copy.out)];
    out.host_offset = top;
    for (const CommandIndex in : copy.ins) {
      plan->commands[At(in)].host_offset = top;
    }
    const Residency& r = plan->residencies[At(out.residency)];
    top += plan->problem.variables[At(r.variable)].size_bytes;
  }
  plan->host_bytes = top;
  plan->host_limit_bytes = std::max(plan->host_limit_bytes, top);
}

/// Turns copies out of what is on the host anyway into drops, most of them: of stays that are
/// filled by a copy and not written. One copy out of every ring remains. Returns how many stays are
/// dropped then, by this or before. REQUIRES: CheckPlan() accepts the plan. It does so afterwards.
inline int ReuseHostCopies(Plan* plan, PlanRandom* random) {
  const std::size_t before = plan->commands.size();
  for (const std::vector<ResidencyIndex>& stays : StaysInOrder(*plan)) {
    int saved = 0;
    for (const ResidencyIndex r : stays) {
      saved += plan->residencies[At(r)].copy_out >= 0 ? 1 : 0;
    }
    for (const ResidencyIndex index : stays) {
      const Residency& r = plan->residencies[At(index)];
      if (r.copy_in < 0 || r.copy_out < 0 || saved == 1 || IsWritten(*plan, r)) continue;
      if (random->OneIn(5)) continue;
      RemoveCommand(r.copy_out, plan);
      --saved;
    }
  }
  if (plan->commands.size() != before) SpreadHostCopies(plan);
  return static_cast<int>(ListDrops(*plan).size());
}

}  // namespace plimsoll::plan::host_copies

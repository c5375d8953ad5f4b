// SPDX-License-Identifier: Apache-2.0
//
// Changes that make most plans wrong. For tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/host_copies_for_test.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::sim::mutations {

using plan::Plan;
using plan::PlanRandom;

enum class Mutation {
  kDropEdge,
  kRetargetEdge,
  kChangeLag,
  kSwapCopies,
  kMove,
  kMoveHost,
  kMoveCopyIn,
  kWriteDropped,
  kNeverSave,
  kReadLater,
  kAddOperand,
  kLongLag,
  kAddEdge,
  kShiftResidency,
  kEmptyVariable,
  kRunOnce,
};

struct MutationInfo {
  Mutation mutation = Mutation::kDropEdge;
  const char* name = "";
  /// The least number of accepted and of refused mutants, one in so many cases; 0: none.
  int accepted_one_in = 40;
  int refused_one_in = 10;
  /// How many of the refused are seen to go wrong, at least. What is refused without going wrong is
  /// wrong only in an order that was not tried, or in bytes that nobody reads again, or it is out
  /// of shape: those are not run at all where this is 0.
  int seen_percent = 95;
};

inline constexpr std::array<MutationInfo, 16> kMutations = {{
    {Mutation::kDropEdge, "an edge is dropped"},
    {Mutation::kRetargetEdge, "an edge is redirected"},
    {Mutation::kChangeLag, "the lag of an edge is changed"},
    {Mutation::kSwapCopies, "two copies change places"},
    {Mutation::kMove, "a residency is moved", 40, 10, 80},
    {Mutation::kMoveHost, "a host copy is moved", 40, 20},
    {Mutation::kMoveCopyIn, "one copy in reads elsewhere", 0, 10},
    {Mutation::kWriteDropped, "what is dropped is written", 0, 40},
    {Mutation::kNeverSave, "a copy out is removed", 0, 10},
    {Mutation::kReadLater, "a copy in of many is put off", 400, 100},
    {Mutation::kAddOperand, "an op touches one more variable", 10, 40},
    {Mutation::kLongLag, "an edge comes from much earlier", 40, 10},
    {Mutation::kAddEdge, "an edge is added", 10, 40, 0},
    {Mutation::kShiftResidency, "a residency begins or ends elsewhere", 40, 10, 0},
    {Mutation::kEmptyVariable, "a variable has no bytes", 10, 0, 0},
    {Mutation::kRunOnce, "the plan runs once", 20, 10, 0},
}};

/// Makes the recorded maxima and the limits those of what a plan says now.
inline void Measure(Plan* plan) {
  plan->footprint_bytes = 0;
  plan->host_bytes = 0;
  const auto size_of = [&](const plan::Residency& r) {
    return plan->problem.variables[At(r.variable)].size_bytes;
  };
  for (const plan::Residency& r : plan->residencies) {
    if (size_of(r) == 0) continue;
    plan->footprint_bytes = std::max(plan->footprint_bytes, r.offset + size_of(r));
  }
  for (const plan::Command& command : plan->commands) {
    if (command.residency < 0) continue;
    const Bytes size = size_of(plan->residencies[At(command.residency)]);
    if (size == 0) continue;
    plan->host_bytes = std::max(plan->host_bytes, command.host_offset + size);
  }
  plan->limit_bytes = std::max(plan->limit_bytes, plan->footprint_bytes);
  plan->host_limit_bytes = std::max(plan->host_limit_bytes, plan->host_bytes);
}

inline void MoveHostCopy(const plan::host_copies::HostCopyForTest& copy, Bytes offset, Plan* plan) {
  plan->commands[At(copy.out)].host_offset = offset;
  for (const plan::CommandIndex in : copy.ins) plan->commands[At(in)].host_offset = offset;
}

inline plan::Wait* AnyWait(Plan* plan, PlanRandom* random) {
  std::vector<plan::Wait*> all;
  for (plan::Command& command : plan->commands) {
    for (plan::Wait& wait : command.waits) all.push_back(&wait);
  }
  return all.empty() ? nullptr : all[random->Index(all.size())];
}

inline bool DropEdge(Plan* plan, PlanRandom* random) {
  const plan::Wait* chosen = AnyWait(plan, random);
  if (chosen == nullptr) return false;
  for (plan::Command& command : plan->commands) {
    for (std::size_t k = 0; k < command.waits.size(); ++k) {
      if (&command.waits[k] != chosen) continue;
      command.waits.erase(command.waits.begin() + static_cast<std::ptrdiff_t>(k));
      return true;
    }
  }
  return false;
}

inline bool SwapCopies(Plan* plan, PlanRandom* random) {
  auto& queue = plan->queues[random->OneIn(2) ? 1 : 2];
  if (queue.size() < 2) return false;
  const std::size_t first = random->Index(queue.size() - 1);
  std::swap(queue[first], queue[first + 1 + random->Index(queue.size() - first - 1)]);
  return true;
}

/// Moves a host copy; now and then, the copies in stay behind.
inline bool MoveHost(Plan* plan, PlanRandom* random) {
  std::vector<plan::host_copies::HostCopyForTest> copies = plan::host_copies::ListHostCopies(*plan);
  if (copies.empty()) return false;
  plan::host_copies::HostCopyForTest& copy = copies[random->Index(copies.size())];
  if (random->OneIn(8)) copy.ins.clear();
  MoveHostCopy(copy, random->Between(0, plan->host_bytes), plan);
  return true;
}

inline bool MoveCopyIn(Plan* plan, PlanRandom* random) {
  if (plan->queues[2].empty()) return false;
  const plan::CommandIndex c = plan->queues[2][random->Index(plan->queues[2].size())];
  plan::Command& command = plan->commands[At(c)];
  const Bytes offset = random->Between(0, plan->host_bytes);
  const bool moved = command.host_offset != offset;
  command.host_offset = offset;
  return moved;
}

inline void InsertOperand(plan::Operand operand, bool writes, plan::Op* op,
                          plan::Problem* problem) {
  const std::int64_t behind = op->first_operand + op->read_count + (writes ? op->write_count : 0);
  problem->operands.insert(problem->operands.begin() + behind, operand);
  ++(writes ? op->write_count : op->read_count);
  for (plan::Op& later : problem->ops) {
    if (&later > op) ++later.first_operand;
  }
}

/// Makes an op that reads a dropped residency write it, too.
inline bool WriteDropped(Plan* plan, PlanRandom* random) {
  const std::vector<plan::ResidencyIndex> drops = plan::host_copies::ListDrops(*plan);
  if (drops.empty()) return false;
  const plan::Residency& r = plan->residencies[At(drops[random->Index(drops.size())])];
  plan::Problem& problem = plan->problem;
  for (plan::Op& op : problem.ops) {
    const bool here =
        (r.begin <= op.position && op.position < r.end) || op.position + problem.period < r.end;
    const auto reads = problem.reads(op);
    const auto read = std::find_if(reads.begin(), reads.end(), [&](const plan::Operand& x) {
      return x.variable == r.variable;
    });
    if (!here || read == reads.end()) continue;
    InsertOperand(*read, true, &op, &problem);
    return true;
  }
  return false;
}

/// Removes a copy out whose content is not on the host otherwise.
inline bool NeverSave(Plan* plan, PlanRandom* random) {
  if (plan->queues[1].empty()) return false;
  const plan::CommandIndex c = plan->queues[1][random->Index(plan->queues[1].size())];
  const plan::Residency& r = plan->residencies[At(plan->commands[At(c)].residency)];
  if (r.copy_in >= 0 && !plan::host_copies::IsWritten(*plan, r)) return false;
  plan::host_copies::RemoveCommand(c, plan);
  return true;
}

/// Takes a copy in of a host copy with several to the end of the queue, with no other edges.
inline bool ReadLater(Plan* plan, PlanRandom* random) {
  std::vector<plan::CommandIndex> shared;
  for (const plan::host_copies::HostCopyForTest& copy : plan::host_copies::ListHostCopies(*plan)) {
    if (copy.ins.size() > 1) shared.insert(shared.end(), copy.ins.begin(), copy.ins.end());
  }
  if (shared.empty()) return false;
  const plan::CommandIndex c = shared[random->Index(shared.size())];
  auto& queue = plan->queues[2];
  const auto place = std::find(queue.begin(), queue.end(), c);
  std::rotate(place, place + 1, queue.end());
  return true;
}

/// Lets any op read or write any variable that is alive then.
inline bool AddOperand(Plan* plan, PlanRandom* random) {
  plan::Problem& problem = plan->problem;
  plan::Op& op = problem.ops[random->Index(problem.ops.size())];
  const auto v = static_cast<plan::VariableIndex>(random->Index(problem.variables.size()));
  const plan::Variable& variable = problem.variables[At(v)];
  const std::int32_t age = op.position < variable.begin ? 1 : 0;
  if (op.position + age * problem.period >= variable.end) return false;
  InsertOperand({v, age}, random->OneIn(2), &op, &problem);
  return true;
}

inline bool AddEdge(Plan* plan, PlanRandom* random) {
  plan::Command& command = plan->commands[random->Index(plan->commands.size())];
  const auto other = static_cast<plan::CommandIndex>(random->Index(plan->commands.size()));
  const std::int64_t lag = plan->problem.cyclic ? random->Between(0, 3) : 0;
  command.waits.push_back({other, static_cast<std::int32_t>(lag)});
  return true;
}

inline bool ShiftResidency(Plan* plan, PlanRandom* random) {
  plan::Residency& r = plan->residencies[random->Index(plan->residencies.size())];
  (random->OneIn(2) ? r.begin : r.end) += random->OneIn(2) ? random->Between(1, 4) : -1;
  return true;
}

inline bool RunOnce(Plan* plan) {
  if (!plan->problem.cyclic) return false;
  plan->problem.cyclic = false;
  for (plan::Command& command : plan->commands) {
    auto& waits = command.waits;
    waits.erase(std::remove_if(waits.begin(), waits.end(),
                               [](const plan::Wait& wait) { return wait.lag > 0; }),
                waits.end());
  }
  return true;
}

inline bool ChangeEdge(Mutation mutation, Plan* plan, PlanRandom* random) {
  plan::Wait* wait = AnyWait(plan, random);
  if (wait == nullptr || !plan->problem.cyclic) return false;
  if (mutation == Mutation::kLongLag) {
    wait->lag += static_cast<std::int32_t>(random->Between(2, 5));
  } else if (mutation == Mutation::kRetargetEdge) {
    wait->command = static_cast<plan::CommandIndex>(random->Index(plan->commands.size()));
  } else {
    wait->lag = wait->lag == 0 || random->OneIn(2) ? wait->lag + 1 : wait->lag - 1;
  }
  return true;
}

inline bool Move(Plan* plan, PlanRandom* random) {
  plan::Residency& r = plan->residencies[random->Index(plan->residencies.size())];
  r.offset = random->Between(0, plan->footprint_bytes);
  return true;
}

/// Changes one thing; returns whether there was anything to change.
inline bool Mutate(Mutation mutation, Plan* plan, PlanRandom* random) {
  switch (mutation) {
    case Mutation::kDropEdge:
      return DropEdge(plan, random);
    case Mutation::kRetargetEdge:
    case Mutation::kChangeLag:
    case Mutation::kLongLag:
      return ChangeEdge(mutation, plan, random);
    case Mutation::kSwapCopies:
      return SwapCopies(plan, random);
    case Mutation::kMove:
      return Move(plan, random);
    case Mutation::kMoveHost:
      return MoveHost(plan, random);
    case Mutation::kMoveCopyIn:
      return MoveCopyIn(plan, random);
    case Mutation::kWriteDropped:
      return WriteDropped(plan, random);
    case Mutation::kNeverSave:
      return NeverSave(plan, random);
    case Mutation::kReadLater:
      return ReadLater(plan, random);
    case Mutation::kAddOperand:
      return AddOperand(plan, random);
    case Mutation::kAddEdge:
      return AddEdge(plan, random);
    case Mutation::kShiftResidency:
      return ShiftResidency(plan, random);
    case Mutation::kEmptyVariable:
      plan->problem.variables[random->Index(plan->problem.variables.size())].size_bytes = 0;
      return true;
    case Mutation::kRunOnce:
      return RunOnce(plan);
  }
  return false;
}

}  // namespace plimsoll::sim::mutations

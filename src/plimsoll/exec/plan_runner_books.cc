// SPDX-License-Identifier: Apache-2.0
//
// The books of a runner: where every content is, once what was issued has run.
#include <algorithm>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/exec/plan_runner.h"

namespace plimsoll::exec {
namespace {

using plan::OpIndex;
using plan::Queue;
using plan::ResidencyIndex;
using plan::VariableIndex;

}  // namespace

std::vector<VariableIndex> WrittenBy(const plan::Problem& problem, const plan::Op& op) {
  std::vector<VariableIndex> written;
  for (const plan::Operand& operand : problem.writes(op)) written.push_back(operand.variable);
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  return written;
}

/// A content is on the device at this offset from now on.
void PlanRunner::Arrive(VariableIndex variable, Bytes offset) {
  Whereabouts& where = now_[At(variable)];
  if (where.device_offset == offset) return;
  // The stay before may not be over yet; from here on the new one is what counts.
  if (where.device_offset >= 0) Depart(variable);
  where.device_offset = offset;
  if (memory_.ledger == nullptr || rehearsing_) return;
  memory_.ledger->Enter(offset, plan_.problem.variables[At(variable)].size_bytes, variable);
}

void PlanRunner::Depart(VariableIndex variable) {
  Whereabouts& where = now_[At(variable)];
  const Bytes offset = std::exchange(where.device_offset, -1);
  if (memory_.ledger == nullptr || rehearsing_) return;
  memory_.ledger->Leave(offset, plan_.problem.variables[At(variable)].size_bytes, variable);
}

void PlanRunner::NoteOp(OpIndex index) {
  const plan::Problem& problem = plan_.problem;
  const plan::Op& op = problem.ops[At(index)];
  for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
    const std::size_t operand = At(op.first_operand + k);
    const VariableIndex w = problem.operands[operand].variable;
    Whereabouts& where = now_[At(w)];
    if (first_op_[At(w)] == index && !problem.variables[At(w)].persistent() &&
        where.device_offset < 0) {
      where = {};
    }
    Arrive(w, plan_.residencies[At(operand_residencies_[operand])].offset);
  }
  for (const VariableIndex w : WrittenBy(problem, op)) {
    now_[At(w)].host_offset = -1;
    ++now_[At(w)].version;
  }
  for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
    const ResidencyIndex r = operand_residencies_[At(op.first_operand + k)];
    Stay& stay = stays_[At(r)];
    if (stay.last_op != index || stay.eternal) continue;
    stay.used_up = true;
    EndIfOver(r);
  }
}

void PlanRunner::NoteRecorded(OpIndex source) {
  const plan::Op& op = original_.ops[At(source)];
  for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
    const VariableIndex v = original_.operands[At(op.first_operand + k)].variable;
    const bool begins =
        first_recorded_op_[At(v)] == source && !original_.variables[At(v)].persistent();
    if (begins) versions_[At(v)] = 0;
  }
  for (const VariableIndex v : WrittenBy(original_, op)) ++versions_[At(v)];
}

void PlanRunner::NoteCopy(const plan::Command& command) {
  const plan::Residency& residency = plan_.residencies[At(command.residency)];
  Whereabouts& where = now_[At(residency.variable)];
  Stay& stay = stays_[At(command.residency)];
  if (command.queue == Queue::kCopyIn) {
    Arrive(residency.variable, residency.offset);
    if (stay.frees_host_copy) where.host_offset = -1;
    return;
  }
  where.host_offset = command.host_offset;
  stay.saved = true;
  EndIfOver(command.residency);
}

/// Nobody needs what is there any more, and nobody who comes next has been issued yet.
void PlanRunner::Discard(ResidencyIndex index) {
  if (rehearsing_ || fence_ < 0) return;
  Issue({.kind = Call::Kind::kDiscard, .index = index});
}

/// A residency is over once its last op and its copy out, if it has one, have been issued; unless
/// it is the last of its variable's.
void PlanRunner::EndIfOver(ResidencyIndex index) {
  Stay& stay = stays_[At(index)];
  const plan::Residency& residency = plan_.residencies[At(index)];
  if (stay.leaves_for_good) return;
  if (!stay.used_up || (residency.copy_out >= 0 && !stay.saved)) return;
  stay.used_up = false;
  stay.saved = false;
  Discard(index);
  // The next stay may have begun already, elsewhere.
  if (now_[At(residency.variable)].device_offset == residency.offset) Depart(residency.variable);
}

/// The program has freed what this was the last residency of.
void PlanRunner::Expire(ResidencyIndex index) {
  Stay& stay = stays_[At(index)];
  if (!std::exchange(stay.used_up, false)) return;
  stay.saved = false;
  Discard(index);
  const plan::Residency& residency = plan_.residencies[At(index)];
  if (now_[At(residency.variable)].device_offset >= 0) Depart(residency.variable);
  now_[At(residency.variable)].host_offset = -1;
}

}  // namespace plimsoll::exec

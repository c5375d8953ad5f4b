// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rehearsal.h"

#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/plan/script.h"

namespace plimsoll::plan {
namespace {

/// The load of every slot with all that can be away being away.
std::vector<Bytes> Needs(const Problem& problem, const std::vector<Absence>& absences,
                         Bytes alignment) {
  Decision decision;
  for (const Absence& absence : absences) decision.swapped.push_back(absence.gap);
  const std::vector<Bytes> load = LeastLoad(problem, decision, alignment);
  std::vector<Bytes> needs(problem.ops.size(), 0);
  Position position = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    for (; position <= problem.ops[i].position; ++position) {
      needs[i] = std::max(needs[i], load[At(position)]);
    }
  }
  // What follows the last op belongs to the first slot of the next lap.
  for (; position < problem.period; ++position) {
    needs[0] = std::max(needs[0], load[At(position)]);
  }
  return needs;
}

Script ToScript(const Problem& problem, const std::vector<Absence>& absences, Bytes alignment) {
  Script script;
  script.cyclic = problem.cyclic;
  for (const Op& op : problem.ops) script.durations_ns.push_back(op.duration_ns);
  script.needs_bytes = Needs(problem, absences, alignment);
  for (const Absence& absence : absences) {
    const Gap& gap = absence.gap;
    const Bytes size = problem.variables[At(gap.variable)].size_bytes;
    script.exits.push_back({gap.after, gap.before, gap.end >= problem.period, absence.saves, size,
                            AlignUp(size, alignment), absence.written});
  }
  return script;
}

/// The position at which a slot begins.
Position Begin(const Problem& problem, Slot slot) {
  const auto ops = static_cast<Slot>(problem.ops.size());
  const Slot op = slot - 1;
  return problem.ops[At(op % ops)].position + 1 + op / ops * problem.period;
}

/// Notes when the absence was away. Returns whether that was of use.
bool Note(const Problem& problem, const Outcome& outcome, Absence* absence) {
  const Position end = AbsenceEnd(problem, absence->gap);
  absence->released = absence->gap.begin;
  absence->acquired = end;
  if (outcome.timed) {
    absence->released = std::clamp(Begin(problem, outcome.released), absence->gap.begin, end);
    absence->acquired = std::clamp(Begin(problem, outcome.acquired), absence->released, end);
  }
  return !outcome.cancelled && absence->released < absence->acquired;
}

}  // namespace

Nanoseconds Rehearse(const Problem& problem, const Machine& machine,
                     const RehearsalOptions& options, std::vector<Absence>* absences) {
  if (absences->empty() || problem.ops.empty()) return problem.iteration_ns();
  std::vector<Outcome> outcomes;
  const Nanoseconds iteration_ns = Perform(ToScript(problem, *absences, options.alignment), machine,
                                           options.load_limit_bytes, options.prefetch, &outcomes);
  std::size_t kept = 0;
  for (std::size_t k = 0; k < absences->size(); ++k) {
    if (Note(problem, outcomes[k], &(*absences)[k])) (*absences)[kept++] = (*absences)[k];
  }
  absences->resize(kept);
  return iteration_ns;
}

}  // namespace plimsoll::plan

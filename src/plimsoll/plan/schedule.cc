// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/schedule.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/edges.h"

namespace plimsoll::plan {
namespace {

/// Adds `bytes` to a cyclic load over [begin, end), begin in [0, period], end - begin <= period.
void AddCyclic(std::vector<Bytes>* change, Position period, Position begin, Position end,
               Bytes bytes) {
  if (begin >= end) return;
  if (begin >= period) {
    begin -= period;
    end -= period;
  }
  (*change)[At(begin)] += bytes;
  (*change)[At(std::min(end, period))] -= bytes;
  if (end > period) {
    (*change)[0] += bytes;
    (*change)[At(end - period)] -= bytes;
  }
}

/// Turns the changes at every position, and one behind the last, into sums.
std::vector<Bytes> SumUp(std::vector<Bytes> change) {
  change.pop_back();
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

class Scheduler {
 public:
  Scheduler(const Problem& problem, const Decision& decision, const Machine& machine,
            const ScheduleOptions& options)
      : problem_(problem), machine_(machine), options_(options) {
    for (const Gap& gap : decision.swapped) {
      all_.push_back({gap, gap.begin, AbsenceEnd(problem, gap), true});
    }
    std::sort(all_.begin(), all_.end(), GoesFirst);
    NoteWriters(&all_);
  }

  std::variant<Plan, Misfit> Run() {
    MarkReuse(&all_);
    absences_ = all_;
    Misfit misfit;
    if (!HoldLoad(&misfit)) return misfit;
    NoteWriters(&absences_);
    Bytes host_bytes = 0;
    const std::vector<Bytes> host_offsets = PlaceHost(&host_bytes);
    if (host_bytes > options_.host_limit_bytes) {
      return Misfit{.needed_bytes = host_bytes, .position = 0, .host = true};
    }
    Plan plan = Assemble(problem_, absences_, host_offsets);
    plan.host_bytes = host_bytes;
    plan.machine = machine_;
    plan.limit_bytes = options_.limit_bytes;
    plan.host_limit_bytes = options_.host_limit_bytes;
    if (!PlaceDevice(&plan)) return Misfit{plan.footprint_bytes, misfit.position, false};
    DrawEdges(&plan);
    return plan;
  }

  std::optional<Nanoseconds> Predict() {
    MarkReuse(&all_);
    absences_ = all_;
    Misfit misfit;
    if (!HoldLoad(&misfit)) return std::nullopt;
    return predicted_ns_;
  }

 private:
  Bytes SizeOf(const Absence& absence) const {
    // What a residency takes of the arena: its size, aligned.
    return AlignUp(problem_.variables[At(absence.gap.variable)].size_bytes, options_.alignment);
  }

  /// Which op each waits for depends on which others there are.
  void NoteWriters(std::vector<Absence>* absences) const {
    std::vector<Gap> gaps;
    for (const Absence& absence : *absences) gaps.push_back(absence.gap);
    const std::vector<OpIndex> writers = FindLastWriters(problem_, gaps);
    for (std::size_t k = 0; k < gaps.size(); ++k) (*absences)[k].written = writers[k];
  }

  /// Finds the absences whose variable was not written since it came back from the one before: they
  /// need not save it. Returns whether some that did not save must do so now.
  bool MarkReuse(std::vector<Absence>* absences) {
    std::map<VariableIndex, std::vector<Absence*>> of_variable;
    bool changed = false;
    for (Absence& absence : *absences) of_variable[absence.gap.variable].push_back(&absence);
    for (auto& [v, own] : of_variable) {
      const std::vector<bool> saves = FindSaving(v, &own);
      for (std::size_t k = 0; k < own.size(); ++k) {
        changed = changed || (saves[k] && !own[k]->saves);
        own[k]->saves = saves[k];
      }
    }
    return changed;
  }

  /// Sorts the absences of a variable by time, and returns which of them must save it.
  std::vector<bool> FindSaving(VariableIndex v, std::vector<Absence*>* absences) {
    std::vector<Absence*>& own = *absences;
    std::vector<bool> saves(own.size(), true);
    if (own.size() < 2) return saves;
    if (accesses_.empty()) accesses_ = ListAccesses(problem_);
    const Variable& variable = problem_.variables[At(v)];
    const auto begin = [&](const Absence* absence) {
      return absence->gap.begin + (absence->gap.begin <= variable.begin ? problem_.period : 0);
    };
    std::sort(own.begin(), own.end(),
              [&](const Absence* a, const Absence* b) { return begin(a) < begin(b); });
    for (std::size_t k = variable.persistent() ? 0 : 1; k < own.size(); ++k) {
      const Gap& before = own[k == 0 ? own.size() - 1 : k - 1]->gap;
      saves[k] = IsWritten(accesses_[At(v)], before.before, own[k]->gap.after);
    }
    // Around the cycle, somebody must.
    if (std::find(saves.begin(), saves.end(), true) == saves.end()) saves[0] = true;
    return saves;
  }

  /// Whether an access from that of op `first` to that of op `last`, around the end if need be,
  /// writes.
  static bool IsWritten(const std::vector<Access>& accesses, OpIndex first, OpIndex last) {
    auto access = std::find_if(accesses.begin(), accesses.end(),
                               [&](const Access& x) { return x.op == first; });
    for (std::size_t k = 0; k < accesses.size() && access != accesses.end(); ++k) {
      if (access->writes) return true;
      if (access->op == last) return false;
      if (++access == accesses.end()) access = accesses.begin();
    }
    return true;
  }

  /// Decides when memory changes hands, so that the load is within the limit everywhere.
  bool HoldLoad(Misfit* misfit) {
    const Bytes limit = options_.load_limit_bytes.value_or(options_.limit_bytes);
    *misfit = FindLeast();
    if (misfit->needed_bytes > limit) return false;
    const RehearsalOptions rehearsal = {limit, options_.alignment, options_.prefetch};
    for (int k = 0; k < kMostRehearsals; ++k) {
      const std::size_t count = absences_.size();
      predicted_ns_ = Rehearse(problem_, machine_, rehearsal, &absences_);
      // What a useless absence would have saved, the next one must: that takes time. And without
      // its copies, the others may do better, if there is room for it to stay.
      const bool changed = MarkReuse(&absences_);
      if (!changed && absences_.size() == count) break;
      if (FindLeast().needed_bytes > limit) break;
    }
    std::vector<Bytes> load = Load();
    bool restored = false;
    for (Position p = 0; p < problem_.period; ++p) {
      if (load[At(p)] <= limit || MakeRoom(p, limit, &load)) continue;
      Restore(p, limit, &load);
      restored = true;
    }
    if (restored) {
      std::sort(absences_.begin(), absences_.end(), GoesFirst);
      MarkReuse(&absences_);
    }
    return true;
  }

  /// The order of the copy-out queue.
  static bool GoesFirst(const Absence& a, const Absence& b) {
    return std::pair(a.gap.after, a.gap.variable) < std::pair(b.gap.after, b.gap.variable);
  }

  /// Whether a variable is away at the position, of this iteration or the next, if it is away for
  /// all of its gap.
  bool MayBeAwayAt(Position position, const Gap& gap) const {
    const Position end = AbsenceEnd(problem_, gap);
    const Position lapped = position + problem_.period;
    return (gap.begin <= position && position < end) || (gap.begin <= lapped && lapped < end);
  }

  /// Brings back absences that turned out to be useless, but are not, until the load at the
  /// position is within the limit. Nothing will hide their copies.
  void Restore(Position position, Bytes limit, std::vector<Bytes>* load) {
    std::set<std::pair<VariableIndex, Position>> kept;
    for (const Absence& absence : absences_) kept.insert({absence.gap.variable, absence.gap.begin});
    for (const Absence& absence : all_) {
      if ((*load)[At(position)] <= limit) return;
      if (!MayBeAwayAt(position, absence.gap)) continue;
      if (kept.contains({absence.gap.variable, absence.gap.begin})) continue;
      absences_.push_back(absence);
      absences_.back().acquired = absence.released;
      const Bytes size = problem_.variables[At(absence.gap.variable)].size_bytes;
      predicted_ns_ += machine_.out_ns(size) + machine_.in_ns(size);
      Widen(&absences_.back(), absence.released, absence.acquired, load);
    }
  }

  std::vector<Bytes> Load() const {
    std::vector<Bytes> change(At(problem_.period) + 1, 0);
    for (const Variable& variable : problem_.variables) {
      AddCyclic(&change, problem_.period, variable.begin, variable.end,
                AlignUp(variable.size_bytes, options_.alignment));
    }
    for (const Absence& absence : absences_) {
      AddCyclic(&change, problem_.period, absence.released, absence.acquired, -SizeOf(absence));
    }
    return SumUp(std::move(change));
  }

  /// Where the load is highest with every absence that is left as long as it can be.
  Misfit FindLeast() const {
    Decision decision;
    for (const Absence& absence : absences_) decision.swapped.push_back(absence.gap);
    return FindWorst(LeastLoad(problem_, decision, options_.alignment));
  }

  static Misfit FindWorst(const std::vector<Bytes>& load) {
    const auto worst = std::max_element(load.begin(), load.end());
    return {.needed_bytes = worst == load.end() ? 0 : *worst, .position = worst - load.begin()};
  }

  /// The first position at or after `position` that is right behind an op. Copies in begin there
  /// only, so that they meet the scratch of the next op, even if that is freed before the op runs.
  Position BehindNextOp(Position position) const {
    const Position lap = (position - 1) / problem_.period * problem_.period;
    const auto op = std::lower_bound(problem_.ops.begin(), problem_.ops.end(), position - lap - 1,
                                     [](const Op& x, Position p) { return x.position < p; });
    if (op != problem_.ops.end()) return op->position + 1 + lap;
    return problem_.ops.front().position + 1 + lap + problem_.period;
  }

  /// Makes one absence longer, and lowers the load with it.
  void Widen(Absence* absence, Position released, Position acquired, std::vector<Bytes>* load) {
    const Bytes size = SizeOf(*absence);
    const auto subtract = [&](Position begin, Position end) {
      for (Position p = begin; p < end; ++p) (*load)[At(p % problem_.period)] -= size;
    };
    subtract(released, absence->released);
    subtract(absence->acquired, acquired);
    absence->released = released;
    absence->acquired = acquired;
  }

  /// Takes memory back earlier and gives it later until the load at the position is within the
  /// limit.
  bool MakeRoom(Position position, Bytes limit, std::vector<Bytes>* load) {
    for (const Position p : {position, position + problem_.period}) {
      for (Absence& absence : absences_) {  // The first to be gone, first.
        if (absence.gap.begin > p || p >= absence.released) continue;
        Widen(&absence, p, absence.acquired, load);
        if ((*load)[At(position)] <= limit) return true;
      }
    }
    std::vector<Absence*> arriving;
    for (Absence& absence : absences_) {
      for (const Position p : {position, position + problem_.period}) {
        if (absence.acquired <= p && p < AbsenceEnd(problem_, absence.gap)) {
          arriving.push_back(&absence);
        }
      }
    }
    std::sort(arriving.begin(), arriving.end(), [&](const Absence* a, const Absence* b) {
      return a->gap.end > b->gap.end;  // Whoever is needed last can wait longest.
    });
    for (Absence* absence : arriving) {
      const Position p =
          absence->acquired <= position && position < AbsenceEnd(problem_, absence->gap)
              ? position
              : position + problem_.period;
      Widen(absence, absence->released, BehindNextOp(p + 1), load);
      if ((*load)[At(position)] <= limit) return true;
    }
    return false;
  }

  place::PlannerOptions PlaceOptions(Bytes capacity) const {
    place::PlannerOptions place_options;
    place_options.capacity_bytes = capacity;
    place_options.node_budget = options_.place_nodes;
    place_options.seed = options_.seed;
    return place_options;
  }

  /// Gives every residency its offset; false if the footprint is over the limit.
  bool PlaceDevice(Plan* plan) const {
    place::Problem problem;
    problem.buffers.reserve(plan->residencies.size());
    for (const Residency& residency : plan->residencies) {
      problem.buffers.push_back(ToBuffer(problem_, residency, options_.alignment));
    }
    const Bytes capacity = options_.minimise ? -1 : options_.limit_bytes;
    const place::Placement placed = place::PlaceTight(problem, PlaceOptions(capacity));
    for (std::size_t r = 0; r < plan->residencies.size(); ++r) {
      plan->residencies[r].offset = placed.offsets[r];
    }
    plan->footprint_bytes = placed.footprint_bytes;
    return placed.footprint_bytes <= options_.limit_bytes;
  }

  /// Lays out the host slab and returns the offset of each absence. A copy is there from the op
  /// that it waits for to the last op that needs it back; by then it has been read, so that the
  /// next one at its place need not wait for it.
  std::vector<Bytes> PlaceHost(Bytes* host_bytes) const {
    std::map<VariableIndex, std::vector<std::size_t>> of_variable;
    for (std::size_t k = 0; k < absences_.size(); ++k) {
      of_variable[absences_[k].gap.variable].push_back(k);
    }
    place::Problem problem;
    std::vector<std::size_t> buffer_of(absences_.size());
    for (auto& [v, own] : of_variable) {
      // From one that saves, around the cycle.
      const auto saves = [&](std::size_t k) { return absences_[k].saves; };
      std::sort(own.begin(), own.end(), [&](std::size_t a, std::size_t b) {
        return absences_[a].gap.begin < absences_[b].gap.begin;
      });
      std::rotate(own.begin(), std::find_if(own.begin(), own.end(), saves), own.end());
      Residency away;
      for (std::size_t i = 0; i < own.size(); ++i) {
        const Gap& gap = absences_[own[i]].gap;
        const OpIndex written = absences_[own[i]].written;
        const Op& behind = written < 0 ? problem_.ops.back() : problem_.ops[At(written)];
        if (saves(own[i])) away = {v, behind.position, gap.end, 0, -1, -1};
        away.end = gap.end + (gap.end <= away.begin ? problem_.period : 0);
        buffer_of[own[i]] = problem.buffers.size();
        if (i + 1 < own.size() && !saves(own[i + 1])) continue;
        problem.buffers.push_back(ToBuffer(problem_, away, options_.alignment));
      }
    }
    const place::Placement placed =
        place::PlaceTight(problem, PlaceOptions(options_.host_limit_bytes));
    *host_bytes = placed.footprint_bytes;
    std::vector<Bytes> offsets(absences_.size());
    for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] = placed.offsets[buffer_of[k]];
    return offsets;
  }

  static constexpr int kMostRehearsals = 4;

  const Problem& problem_;
  const Machine& machine_;
  const ScheduleOptions& options_;
  std::vector<Absence> all_;       // In the order of the copy-out queue, as long as they can be.
  std::vector<Absence> absences_;  // Those that are of use, as long as they are.
  std::vector<std::vector<Access>> accesses_;  // By variable; once they are needed.
  Nanoseconds predicted_ns_ = 0;
};

}  // namespace

Position AbsenceEnd(const Problem& problem, const Gap& gap) {
  if (gap.before > 0) {
    const Position lap = gap.end - problem.ops[At(gap.before)].position;
    return std::max(gap.begin, problem.ops[At(gap.before) - 1].position + 1 + lap);
  }
  return std::max(gap.begin, problem.ops.back().position + 1);
}

std::vector<Bytes> LeastLoad(const Problem& problem, const Decision& decision, Bytes alignment) {
  std::vector<Bytes> change(At(problem.period) + 1, 0);
  const auto size = [&](VariableIndex v) {
    return AlignUp(problem.variables[At(v)].size_bytes, alignment);
  };
  for (std::size_t v = 0; v < problem.variables.size(); ++v) {
    const Variable& variable = problem.variables[v];
    AddCyclic(&change, problem.period, variable.begin, variable.end,
              size(static_cast<VariableIndex>(v)));
  }
  for (const Gap& gap : decision.swapped) {
    AddCyclic(&change, problem.period, gap.begin, AbsenceEnd(problem, gap), -size(gap.variable));
  }
  return SumUp(std::move(change));
}

std::variant<Plan, Misfit> MakePlan(const Problem& problem, const Decision& decision,
                                    const Machine& machine, const ScheduleOptions& options) {
  return Scheduler(problem, decision, machine, options).Run();
}

std::optional<Nanoseconds> PredictIteration(const Problem& problem, const Decision& decision,
                                            const Machine& machine,
                                            const ScheduleOptions& options) {
  return Scheduler(problem, decision, machine, options).Predict();
}

}  // namespace plimsoll::plan

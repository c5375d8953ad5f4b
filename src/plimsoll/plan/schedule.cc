// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/schedule.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "plimsoll/place/planner.h"
#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/edges.h"

namespace plimsoll::plan {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

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

class Scheduler {
 public:
  Scheduler(const Problem& problem, const Decision& decision, const Machine& machine,
            const ScheduleOptions& options)
      : problem_(problem), machine_(machine), options_(options) {
    for (const Gap& gap : decision.swapped) {
      absences_.push_back({gap, gap.begin, AbsenceEnd(problem, gap)});
    }
    std::sort(absences_.begin(), absences_.end(), [](const Absence& a, const Absence& b) {
      return std::pair(a.gap.after, a.gap.variable) < std::pair(b.gap.after, b.gap.variable);
    });
    PredictStarts();
  }

  std::variant<Plan, Misfit> Run() {
    Bytes load_limit = options_.limit_bytes;
    Misfit misfit;
    misfit.needed_bytes = kMaxBytes;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      SpreadOut();
      Misfit overload;
      if (!HoldLoad(load_limit, &overload)) return attempt == 0 ? overload : misfit;
      Plan plan = Assemble(problem_, absences_);
      plan.machine = machine_;
      plan.limit_bytes = options_.limit_bytes;
      plan.host_limit_bytes = options_.host_limit_bytes;
      if (!PlaceHost(&plan, &misfit)) return misfit;
      if (PlaceDevice(&plan)) {
        DrawEdges(&plan);
        return plan;
      }
      // Fragmentation: hold the load to less by half of what is missing.
      misfit.needed_bytes = std::min(misfit.needed_bytes, plan.footprint_bytes);
      const Bytes missing = plan.footprint_bytes - options_.limit_bytes;
      load_limit -= missing / 2 + options_.alignment;
    }
    return misfit;
  }

 private:
  static constexpr int kMostAttempts = 4;

  Bytes SizeOf(const Absence& absence) const {
    // What a residency takes of the arena: its size, aligned.
    return AlignUp(problem_.variables[At(absence.gap.variable)].size_bytes, options_.alignment);
  }

  /// When each op starts if nothing ever waits; one more entry for the end.
  void PredictStarts() {
    start_ns_.assign(1, 0);
    for (const Op& op : problem_.ops) start_ns_.push_back(start_ns_.back() + op.duration_ns);
  }

  /// The first position at or after which ops start no earlier than `moment_ns`, which may lie in
  /// the next iteration.
  Position PositionAt(Nanoseconds moment_ns) const {
    const Nanoseconds total = std::max<Nanoseconds>(start_ns_.back(), 1);
    const Nanoseconds lap = moment_ns / total;
    const auto op = std::lower_bound(start_ns_.begin(), start_ns_.end() - 1, moment_ns % total);
    const auto index = static_cast<std::size_t>(op - start_ns_.begin());
    const Position position =
        index < problem_.ops.size() ? problem_.ops[index].position : problem_.period;
    return position + lap * problem_.period;
  }

  /// The first position at or after `position`, or the last one at or before it, that is right
  /// behind an op. Copies in begin there only, so that they meet the scratch of the next op, even
  /// if that is freed before the op runs.
  Position BehindNextOp(Position position) const {
    const Position lap = (position - 1) / problem_.period * problem_.period;
    const auto op = std::lower_bound(problem_.ops.begin(), problem_.ops.end(), position - lap - 1,
                                     [](const Op& x, Position p) { return x.position < p; });
    if (op != problem_.ops.end()) return op->position + 1 + lap;
    return problem_.ops.front().position + 1 + lap + problem_.period;
  }
  Position BehindLastOp(Position position) const {
    const Position lap = (position - 1) / problem_.period * problem_.period;
    const auto op = std::upper_bound(problem_.ops.begin(), problem_.ops.end(), position - lap - 1,
                                     [](Position p, const Op& x) { return p < x.position; });
    if (op != problem_.ops.begin()) return std::prev(op)->position + 1 + lap;
    return problem_.ops.back().position + 1 + lap - problem_.period;
  }

  /// Lets every copy take the time it needs: out as soon as possible, in as late as possible.
  void SpreadOut() {
    const Nanoseconds total = start_ns_.back();
    Nanoseconds free_at = 0;
    for (int lap = 0; lap < 2; ++lap) {  // The second lap knows what the first leaves behind.
      for (Absence& absence : absences_) {
        const Nanoseconds ready = start_ns_[At(absence.gap.after) + 1];
        free_at = std::max(free_at, ready) + machine_.out_ns(SizeOf(absence));
        absence.released =
            std::clamp(PositionAt(free_at), absence.gap.begin, AbsenceEnd(problem_, absence.gap));
      }
      free_at = std::max<Nanoseconds>(0, free_at - total);
    }
    std::vector<Absence*> by_need;
    for (Absence& absence : absences_) by_need.push_back(&absence);
    std::sort(by_need.begin(), by_need.end(), [](const Absence* a, const Absence* b) {
      return std::pair(a->gap.end, a->gap.variable) > std::pair(b->gap.end, b->gap.variable);
    });
    Nanoseconds taken_from = std::numeric_limits<Nanoseconds>::max();
    for (int lap = 0; lap < 2; ++lap) {
      for (Absence* absence : by_need) {
        const Gap& gap = absence->gap;
        const Nanoseconds lapped = gap.end > problem_.period ? total : 0;
        const Nanoseconds deadline = start_ns_[At(gap.before)] + lapped;
        taken_from = std::min(taken_from, deadline) - machine_.in_ns(SizeOf(*absence));
        // The op before which it may begin: the last one that starts by then.
        const Nanoseconds begin = std::max<Nanoseconds>(taken_from, 0);
        Position acquired = PositionAt(begin);
        if (taken_from < 0) acquired = gap.begin;
        absence->acquired = std::clamp(BehindLastOp(acquired), BehindNextOp(absence->released),
                                       AbsenceEnd(problem_, gap));
      }
      if (taken_from < std::numeric_limits<Nanoseconds>::max() - total) taken_from += total;
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
    change.pop_back();
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  /// Takes memory back earlier and gives it later until the load is within the limit everywhere.
  bool HoldLoad(Bytes limit, Misfit* misfit) {
    std::vector<Bytes> load = Load();
    for (Position p = 0; p < problem_.period; ++p) {
      if (load[At(p)] <= limit) continue;
      if (!MakeRoom(p, limit, &load)) {
        *misfit = FindWorst();
        return false;
      }
    }
    return true;
  }

  /// Where the load is highest with every absence as long as it can be.
  Misfit FindWorst() {
    for (Absence& absence : absences_) {
      absence.released = absence.gap.begin;
      absence.acquired = AbsenceEnd(problem_, absence.gap);
    }
    const std::vector<Bytes> load = Load();
    const auto worst = std::max_element(load.begin(), load.end());
    return {.needed_bytes = *worst, .position = worst - load.begin()};
  }

  /// Changes one absence and the load with it.
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

  bool MakeRoom(Position position, Bytes limit, std::vector<Bytes>* load) {
    for (const Position p : {position, position + problem_.period}) {
      for (Absence& absence :
           absences_) {  // In the order of the copy-out queue: the first to be gone.
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

  /// Gives every residency its offset; false if the footprint is over the limit.
  bool PlaceDevice(Plan* plan) const {
    place::Problem problem;
    for (const Residency& residency : plan->residencies) {
      problem.buffers.push_back(ToBuffer(problem_, residency, options_.alignment));
    }
    place::PlannerOptions place_options;
    place_options.capacity_bytes = options_.limit_bytes;
    place_options.time_budget_seconds = options_.place_seconds;
    place_options.seed = options_.seed;
    const place::Placement placed = place::PlaceTight(problem, place_options);
    for (std::size_t r = 0; r < plan->residencies.size(); ++r) {
      plan->residencies[r].offset = placed.offsets[r];
    }
    plan->footprint_bytes = placed.footprint_bytes;
    return placed.footprint_bytes <= options_.limit_bytes;
  }

  /// Lays out the host slab. A copy is there from the op that it follows to the op that needs it
  /// back; by then it has been read, so that the next one at its place need not wait for it.
  bool PlaceHost(Plan* plan, Misfit* misfit) const {
    place::Problem problem;
    for (const Absence& absence : absences_) {
      const Residency away{absence.gap.variable, absence.gap.begin - 1, absence.gap.end, 0, -1, -1};
      problem.buffers.push_back(ToBuffer(problem_, away, options_.alignment));
    }
    place::PlannerOptions place_options;
    place_options.capacity_bytes = options_.host_limit_bytes;
    place_options.time_budget_seconds = options_.place_seconds;
    place_options.seed = options_.seed;
    const place::Placement placed = place::PlaceTight(problem, place_options);
    plan->host_bytes = placed.footprint_bytes;
    for (std::size_t k = 0; k < absences_.size(); ++k) {
      // Assemble() adds the two commands of each absence behind the ops, in order.
      const std::size_t out = problem_.ops.size() + 2 * k;
      plan->commands[out].host_offset = placed.offsets[k];
      plan->commands[out + 1].host_offset = placed.offsets[k];
    }
    if (placed.footprint_bytes <= options_.host_limit_bytes) return true;
    misfit->host = true;
    misfit->needed_bytes = placed.footprint_bytes;
    return false;
  }

  const Problem& problem_;
  const Machine& machine_;
  const ScheduleOptions& options_;
  std::vector<Absence> absences_;  // In the order of the copy-out queue.
  std::vector<Nanoseconds> start_ns_;
};

}  // namespace

Position AbsenceEnd(const Problem& problem, const Gap& gap) {
  if (gap.before > 0) {
    const Position lap = gap.end - problem.ops[At(gap.before)].position;
    return std::max(gap.begin, problem.ops[At(gap.before) - 1].position + 1 + lap);
  }
  return std::max(gap.begin, problem.ops.back().position + 1);
}

std::vector<Bytes> LeastLoad(const Problem& problem, const Decision& decision) {
  std::vector<Bytes> change(At(problem.period) + 1, 0);
  for (const Variable& variable : problem.variables) {
    AddCyclic(&change, problem.period, variable.begin, variable.end, variable.size_bytes);
  }
  for (const Gap& gap : decision.swapped) {
    AddCyclic(&change, problem.period, gap.begin, AbsenceEnd(problem, gap),
              -problem.variables[At(gap.variable)].size_bytes);
  }
  change.pop_back();
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

std::variant<Plan, Misfit> MakePlan(const Problem& problem, const Decision& decision,
                                    const Machine& machine, const ScheduleOptions& options) {
  return Scheduler(problem, decision, machine, options).Run();
}

}  // namespace plimsoll::plan

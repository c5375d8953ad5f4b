// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/joint_rebuild_internal.h"
#include "plimsoll/planners/swap_bound.h"

namespace plimsoll::planners {
namespace {

constexpr double kNsPerS = 1e9;

/// A variable that is away while an op runs, or may be.
struct Candidate {
  double bytes = 0;
  plan::OpIndex written = 0;  ///< By whom it is first written, or touched if by nobody.
  plan::OpIndex needed = 0;   ///< Who touches it next.
};

/// What the proof knows about one op.
struct Slot {
  double excess_bytes = 0;     ///< E
  double free_bytes = 0;       ///< F
  double later_bytes = 0;      ///< L
  double clean_bytes = 0;      ///< Of both, what need not go out.
  double candidate_bytes = 0;  ///< What may be away besides.
  double before_ns = 0;
  double behind_ns = 0;
  double out_lead_ns = 0;  ///< The largest of (ops up to o - candidates up to o / bandwidth).
  double in_lead_ns = 0;
  RebuildTime rebuild{{}};
};

/// T(x): the least time if x bytes of what is away come in by the link.
double IterationNs(const Slot& slot, const plan::Machine& machine, double x) {
  const double in_bytes = std::max(x - slot.free_bytes, 0.0);
  const double out_bytes = std::max(in_bytes - slot.later_bytes, 0.0);
  const double before =
      std::max(slot.before_ns, slot.out_lead_ns + out_bytes * kNsPerS / machine.out_bytes_per_s);
  const double behind = std::max(slot.behind_ns + slot.rebuild(slot.excess_bytes - x),
                                 slot.in_lead_ns + in_bytes * kNsPerS / machine.in_bytes_per_s);
  const auto in = static_cast<Bytes>(x);
  const auto out = static_cast<Bytes>(std::max(x - slot.clean_bytes, 0.0));
  return std::max(before + behind, LinkSeconds(machine, in, out) * kNsPerS);
}

/// Returns the least T(x), by ternary search.
double LeastIterationNs(const Slot& slot, const plan::Machine& machine) {
  double high =
      std::min(slot.excess_bytes, slot.free_bytes + slot.later_bytes + slot.candidate_bytes);
  double low = std::min(std::max(slot.excess_bytes - slot.rebuild.total_bytes(), 0.0), high);
  double least = std::min(IterationNs(slot, machine, low), IterationNs(slot, machine, high));
  constexpr int kSteps = 120;  // (2/3)^120 is far below a double's precision.
  for (int k = 0; k < kSteps; ++k) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    const double at_a = IterationNs(slot, machine, a);
    const double at_b = IterationNs(slot, machine, b);
    least = std::min({least, at_a, at_b});
    // The link counts whole bytes: where T is flat, the least lies inside or before.
    (at_a <= at_b ? high : low) = at_a <= at_b ? b : a;
  }
  return least;
}

class Bounder {
 public:
  Bounder(const plan::Problem& problem, const plan::Machine& machine, Bytes limit_bytes,
          bool may_recompute)
      : problem_(problem),
        machine_(machine),
        limit_bytes_(limit_bytes),
        may_recompute_(may_recompute),
        loads_(plan::LoadOps(problem)) {
    for (const plan::Op& op : problem.ops) {
      until_ns_.push_back(until_ns_.back() + static_cast<double>(op.duration_ns));
    }
    ListVariables();
  }

  double Run() {
    double bound = 0;
    Rebuilder rebuilder(problem_, inside_, inside_index_);
    for (const plan::OpIndex op : ChooseOps()) {
      for (const bool inputs : {false, true}) {
        if (inputs && !may_recompute_) continue;
        bound = std::max(bound, LeastIterationNs(MakeSlot(op, inputs, &rebuilder), machine_));
      }
    }
    return bound;
  }

 private:
  void ListVariables() {
    const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem_);
    inside_index_.assign(accesses.size(), -1);
    for (std::size_t v = 0; v < accesses.size(); ++v) {
      const plan::Variable& variable = problem_.variables[v];
      if (variable.persistent() && accesses[v].empty()) stuck_bytes_ += variable.size_bytes;
      if (accesses[v].empty() || variable.size_bytes == 0) continue;
      if (!variable.persistent() && variable.end > problem_.period) continue;
      Touched touched{variable.size_bytes, {}, {}};
      for (const plan::Access& access : accesses[v]) {
        touched.touched.push_back(access.op);
        if (access.writes) touched.writers.push_back(access.op);
      }
      if (!variable.persistent()) inside_index_[v] = static_cast<std::int32_t>(inside_.size());
      (variable.persistent() ? persistent_ : inside_).push_back(std::move(touched));
    }
  }

  Bytes Excess(plan::OpIndex op) const {
    const plan::OpLoad& load = loads_[At(op)];
    return load.held_bytes + load.new_bytes - limit_bytes_;
  }

  /// Returns the ops with the largest excess, and as many of the others, spread evenly.
  std::vector<plan::OpIndex> ChooseOps() const {
    std::vector<plan::OpIndex> over;
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (Excess(static_cast<plan::OpIndex>(i)) > 0) over.push_back(static_cast<plan::OpIndex>(i));
    }
    std::vector<plan::OpIndex> chosen = over;
    if (over.size() <= 2 * kJointBoundSlots) return chosen;
    std::partial_sort(chosen.begin(), chosen.begin() + kJointBoundSlots, chosen.end(),
                      [this](plan::OpIndex a, plan::OpIndex b) { return Excess(a) > Excess(b); });
    chosen.resize(kJointBoundSlots);
    for (std::size_t k = 0; k < kJointBoundSlots; ++k) {
      chosen.push_back(over[k * over.size() / kJointBoundSlots]);
    }
    return chosen;
  }

  /// With `inputs`, dead inputs of what is recomputed may be moved, too, and have their price.
  Slot MakeSlot(plan::OpIndex op, bool inputs, Rebuilder* rebuilder) const {
    const plan::OpLoad& load = loads_[At(op)];
    const std::vector<std::size_t> away = ListAway(op);
    Slot slot;
    slot.excess_bytes = static_cast<double>(Excess(op));
    slot.clean_bytes = static_cast<double>(load.clean_bytes);
    slot.before_ns = until_ns_[At(op)];
    slot.behind_ns = until_ns_.back() - until_ns_[At(op)];
    std::vector<Candidate> moved;
    for (const std::size_t v : away) moved.push_back(ToCandidate(inside_[v], op));
    for (const Candidate& x : moved) slot.candidate_bytes += x.bytes;
    const double candidate_bytes = slot.candidate_bytes;
    if (may_recompute_) slot.rebuild = RebuildTime(rebuilder->List(away, op, inputs));
    if (inputs) AddDeadInputs(rebuilder->dead_inputs(), &moved, &slot);
    slot.out_lead_ns = OutLead(&moved);
    for (const Touched& touched : persistent_) {
      if (touched.touched.back() <= op || Touches(touched, op)) continue;
      moved.push_back(ToCandidate(touched, op));
      slot.later_bytes += moved.back().bytes;
    }
    slot.in_lead_ns = InLead(&moved);
    slot.free_bytes =
        std::max(static_cast<double>(load.held_bytes - load.touched_bytes - stuck_bytes_) -
                     candidate_bytes - slot.later_bytes,
                 0.0);
    return slot;
  }

  void AddDeadInputs(const std::vector<DeadInput>& dead, std::vector<Candidate>* moved,
                     Slot* slot) const {
    for (const DeadInput& x : dead) {
      const Touched& inside = inside_[x.variable];
      moved->push_back({static_cast<double>(inside.size_bytes), inside.writers.front(), x.needed});
      slot->candidate_bytes += moved->back().bytes;
    }
  }

  static bool Touches(const Touched& variable, plan::OpIndex op) {
    return std::binary_search(variable.touched.begin(), variable.touched.end(), op);
  }

  /// Returns the variables of the iteration that are held at an op which does not touch them.
  std::vector<std::size_t> ListAway(plan::OpIndex op) const {
    std::vector<std::size_t> away;
    for (std::size_t v = 0; v < inside_.size(); ++v) {
      const Touched& inside = inside_[v];
      if (inside.touched.front() >= op || inside.touched.back() <= op) continue;
      if (!Touches(inside, op)) away.push_back(v);
    }
    return away;
  }

  static Candidate ToCandidate(const Touched& inside, plan::OpIndex op) {
    const bool is_written = !inside.writers.empty() && inside.writers.front() < op;
    return {static_cast<double>(inside.size_bytes),
            is_written ? inside.writers.front() : inside.touched.front(),
            *std::upper_bound(inside.touched.begin(), inside.touched.end(), op)};
  }

  /// Returns the largest, over the candidates in the order of writing, of the ops up to the one
  /// that writes it less the time in which those before it go out.
  double OutLead(std::vector<Candidate>* candidates) const {
    std::sort(candidates->begin(), candidates->end(),
              [](const Candidate& a, const Candidate& b) { return a.written < b.written; });
    double lead = 0;
    double bytes = 0;
    for (const Candidate& x : *candidates) {
      const double moved_ns = bytes * kNsPerS / machine_.out_bytes_per_s;
      lead = std::max(lead, until_ns_[At(x.written) + 1] - moved_ns);
      bytes += x.bytes;
    }
    return candidates->empty() ? 0 : lead;
  }

  /// The same from the end backwards: the ops from the one that needs it on.
  double InLead(std::vector<Candidate>* candidates) const {
    std::sort(candidates->begin(), candidates->end(),
              [](const Candidate& a, const Candidate& b) { return a.needed > b.needed; });
    double lead = 0;
    double bytes = 0;
    for (const Candidate& x : *candidates) {
      const double moved_ns = bytes * kNsPerS / machine_.in_bytes_per_s;
      lead = std::max(lead, until_ns_.back() - until_ns_[At(x.needed)] - moved_ns);
      bytes += x.bytes;
    }
    return lead;
  }

  const plan::Problem& problem_;
  const plan::Machine& machine_;
  const Bytes limit_bytes_;
  const bool may_recompute_;
  const std::vector<plan::OpLoad> loads_;
  std::vector<double> until_ns_{0};  // Per op, and at the end: the time of all ops before it.
  std::vector<Touched> inside_;
  std::vector<std::int32_t> inside_index_;  // Per variable: its place there, or -1.
  std::vector<Touched> persistent_;
  Bytes stuck_bytes_ = 0;  // Of what no op touches: it stays.
};

}  // namespace

Nanoseconds JointBound(const plan::Problem& problem, const plan::Machine& machine,
                       Bytes limit_bytes, bool may_recompute) {
  const double bound_ns = Bounder(problem, machine, limit_bytes, may_recompute).Run();
  // Rounded down, and a little further than sums of doubles are off.
  return std::max(problem.iteration_ns(),
                  static_cast<Nanoseconds>(std::floor(bound_ns * (1 - 1e-9))));
}

}  // namespace plimsoll::planners

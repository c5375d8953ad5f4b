// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/op_load.h"
#include "plimsoll/planners/swap_bound.h"

namespace plimsoll::planners {
namespace {

constexpr double kNsPerS = 1e9;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// A variable that comes and goes within the iteration, or is persistent.
struct Touched {
  Bytes size_bytes = 0;
  std::vector<plan::OpIndex> touched;  ///< In program order.
  std::vector<plan::OpIndex> writers;
};

/// One of them that is away while an op runs, or may be.
struct Candidate {
  double bytes = 0;
  plan::OpIndex written = 0;  ///< By whom it is first written, or touched if by nobody.
  plan::OpIndex needed = 0;   ///< Who touches it next.
};

/// Bytes that can be rebuilt, and the time per byte.
struct Rebuildable {
  double ns_per_byte = 0;
  double bytes = 0;
};

/// R(r): the least time of replays that rebuild r bytes.
class RebuildTime {
 public:
  explicit RebuildTime(std::vector<Rebuildable> parts) {
    std::sort(parts.begin(), parts.end(), [](const Rebuildable& a, const Rebuildable& b) {
      return a.ns_per_byte < b.ns_per_byte;
    });
    for (const Rebuildable& part : parts) {
      bytes_.push_back(bytes_.back() + part.bytes);
      ns_.push_back(ns_.back() + part.bytes * part.ns_per_byte);
    }
  }

  double total_bytes() const { return bytes_.back(); }
  double operator()(double bytes) const {
    if (bytes >= bytes_.back()) return ns_.back();
    const auto above = static_cast<std::size_t>(
        std::upper_bound(bytes_.begin(), bytes_.end(), bytes) - bytes_.begin());
    if (above == 0) return 0;
    const double share = (bytes - bytes_[above - 1]) / (bytes_[above] - bytes_[above - 1]);
    return ns_[above - 1] + share * (ns_[above] - ns_[above - 1]);
  }

 private:
  std::vector<double> bytes_{0};  // Of the parts so far, cheapest first.
  std::vector<double> ns_{0};
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
        loads_(plan::LoadOps(problem)),
        written_bytes_(problem.ops.size(), 0) {
    for (const plan::Op& op : problem.ops) {
      until_ns_.push_back(until_ns_.back() + static_cast<double>(op.duration_ns));
    }
    ListVariables();
  }

  double Run() {
    double bound = 0;
    for (const plan::OpIndex op : ChooseOps()) {
      bound = std::max(bound, LeastIterationNs(MakeSlot(op), machine_));
    }
    return bound;
  }

 private:
  void ListVariables() {
    const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem_);
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

  Slot MakeSlot(plan::OpIndex op) {
    const plan::OpLoad& load = loads_[At(op)];
    const std::vector<const Touched*> away = ListAway(op);
    Slot slot;
    slot.excess_bytes = static_cast<double>(Excess(op));
    slot.clean_bytes = static_cast<double>(load.clean_bytes);
    slot.before_ns = until_ns_[At(op)];
    slot.behind_ns = until_ns_.back() - until_ns_[At(op)];
    std::vector<Candidate> moved;
    for (const Touched* touched : away) moved.push_back(ToCandidate(*touched, op));
    for (const Candidate& x : moved) slot.candidate_bytes += x.bytes;
    slot.out_lead_ns = OutLead(&moved);
    for (const Touched& touched : persistent_) {
      if (touched.touched.back() <= op || Touches(touched, op)) continue;
      moved.push_back(ToCandidate(touched, op));
      slot.later_bytes += moved.back().bytes;
    }
    slot.in_lead_ns = InLead(&moved);
    slot.free_bytes =
        std::max(static_cast<double>(load.held_bytes - load.touched_bytes - stuck_bytes_) -
                     slot.candidate_bytes - slot.later_bytes,
                 0.0);
    if (may_recompute_) slot.rebuild = RebuildTime(ListRebuildable(away, op));
    return slot;
  }

  static bool Touches(const Touched& variable, plan::OpIndex op) {
    return std::binary_search(variable.touched.begin(), variable.touched.end(), op);
  }

  /// Returns the variables of the iteration that are held at an op which does not touch them.
  std::vector<const Touched*> ListAway(plan::OpIndex op) const {
    std::vector<const Touched*> away;
    for (const Touched& inside : inside_) {
      if (inside.touched.front() >= op || inside.touched.back() <= op) continue;
      if (Touches(inside, op)) continue;
      away.push_back(&inside);
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

  /// Calls `visit` for every op that has written the variable before `op`.
  template <typename Visit>
  static void ForWriters(const Touched& inside, plan::OpIndex op, Visit visit) {
    for (const plan::OpIndex writer : inside.writers) {
      if (writer >= op) return;
      visit(At(writer));
    }
  }

  std::vector<Rebuildable> ListRebuildable(const std::vector<const Touched*>& away,
                                           plan::OpIndex op) {
    std::fill(written_bytes_.begin(), written_bytes_.end(), 0);
    for (const Touched* inside : away) {
      ForWriters(*inside, op, [&](std::size_t writer) {
        written_bytes_[writer] += static_cast<double>(inside->size_bytes);
      });
    }
    std::vector<Rebuildable> parts;
    for (const Touched* inside : away) {
      Rebuildable part{0, static_cast<double>(inside->size_bytes)};
      bool possible = true;
      ForWriters(*inside, op, [&](std::size_t writer) {
        possible = possible && problem_.ops[writer].traits.replayable;
        part.ns_per_byte +=
            static_cast<double>(problem_.ops[writer].duration_ns) / written_bytes_[writer];
      });
      if (possible) parts.push_back(part);
    }
    return parts;
  }

  const plan::Problem& problem_;
  const plan::Machine& machine_;
  const Bytes limit_bytes_;
  const bool may_recompute_;
  const std::vector<plan::OpLoad> loads_;
  std::vector<double> written_bytes_;  // Per op: of the candidates at hand.
  std::vector<double> until_ns_{0};    // Per op, and at the end: the time of all ops before it.
  std::vector<Touched> inside_;
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

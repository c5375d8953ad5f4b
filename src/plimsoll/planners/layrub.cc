// SPDX-License-Identifier: Apache-2.0
//
// Layrub (paper 003), by what a trace shows of it:
//
//   layrub-intra   the gradient of a layer's input takes the place of that input, which the weight
//                  gradient was the last to need (section 3.2): it falls out of when the program
//                  frees, and of placement. Nothing is swapped.
//   layrub-inter   every feature map that no later layer refers to leaves, and is back before
//                  backward needs it (section 3.3). Compute and migration meet at a barrier after
//                  each layer (algorithm 1), so that at most one layer hides a copy:
//
//                    compute    │ F1 │ F2   │ F3 │ ...  │ B3   │ B2 │
//                    migration  │    │ x1 ▶ │    │      │ ▶ x2 │    │
//                               └────┴──────┴────┘      └──────┴────┴ barriers
//
//                  What a layer's backward reads keeps its place until that layer is done.
//   layrub-hybrid  both.
//
// Ops of forward are layers. In backward the op that makes a weight gradient and the next one that
// reads the same gradient are one. None of the three looks at the limit.
#include <algorithm>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/edges.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {
namespace {

using plan::Absence;
using plan::CommandIndex;
using plan::OpIndex;
using plan::Position;
using plan::VariableIndex;

/// What is smaller costs as much to copy as if it were this large, and all of it together is
/// little.
constexpr Bytes kLeastBytes = Bytes{64} << 10;

/// Whether an op and the one before it are parts of one layer's backward: both read a variable, and
/// the first leaves it as it is.
bool IsSameLayer(const plan::Problem& problem, const plan::Op& before, const plan::Op& op) {
  if (before.phase != trace::Phase::kBackward || op.phase != trace::Phase::kBackward) return false;
  const auto touches = [](std::span<const plan::Operand> operands, VariableIndex v) {
    return std::any_of(operands.begin(), operands.end(),
                       [&](const plan::Operand& x) { return x.variable == v; });
  };
  const auto reads = problem.reads(op);
  return std::any_of(reads.begin(), reads.end(), [&](const plan::Operand& x) {
    return !problem.variables[At(x.variable)].persistent() &&
           touches(problem.reads(before), x.variable) &&
           !touches(problem.writes(before), x.variable);
  });
}

struct LayerOps {
  OpIndex first = 0;
  OpIndex last = 0;
};

class Layrub {
 public:
  Layrub(const Question& question, bool intra, bool inter)
      : question_(question),
        problem_(question.problem),
        intra_(intra),
        absence_of_(question.problem.variables.size(), -1) {
    FindLayers();
    if (inter) FindAbsences();
  }

  Attempt Run() {
    Attempt attempt;
    for (const Absence& absence : absences_) attempt.decision.swapped.push_back(absence.gap);
    attempt.load_limit_bytes = question_.options.limit_bytes;
    attempt.made = Make();
    return attempt;
  }

 private:
  void FindLayers() {
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const auto op = static_cast<OpIndex>(i);
      if (i > 0 && IsSameLayer(problem_, problem_.ops[i - 1], problem_.ops[i])) {
        layers_.back().last = op;
      } else {
        layers_.push_back({op, op});
      }
      layer_of_.push_back(std::ssize(layers_) - 1);
    }
  }

  /// The position at the barrier behind a layer.
  Position Behind(std::int64_t layer) const {
    return problem_.ops[At(layers_[At(layer)].last)].position + 1;
  }

  /// A map leaves while the layer behind its last one in forward runs, and comes back while the one
  /// before that which needs it does.
  void FindAbsences() {
    const Bytes least = std::min(question_.options.least_bytes, kLeastBytes);
    for (const plan::Gap& gap : plan::ListGaps(problem_, least)) {
      if (problem_.variables[At(gap.variable)].persistent() || gap.end >= problem_.period) continue;
      if (problem_.ops[At(gap.after)].phase != trace::Phase::kForward) continue;
      if (problem_.ops[At(gap.before)].phase == trace::Phase::kForward) continue;
      const std::int64_t out = layer_of_[At(gap.after)] + 1;
      const std::int64_t in = layer_of_[At(gap.before)] - 2;
      if (out >= in) continue;
      absences_.push_back({gap, Behind(out), Behind(in), true});
    }
    std::sort(absences_.begin(), absences_.end(), [](const Absence& a, const Absence& b) {
      return std::pair(a.gap.after, a.gap.variable) < std::pair(b.gap.after, b.gap.variable);
    });
    for (std::size_t k = 0; k < absences_.size(); ++k) {
      absence_of_[At(absences_[k].gap.variable)] = static_cast<std::int64_t>(k);
    }
  }

  std::variant<plan::Plan, plan::Misfit> Make() const {
    Bytes host_bytes = 0;
    const std::vector<Bytes> host_offsets = PlaceHost(&host_bytes);
    if (host_bytes > question_.options.host_limit_bytes) return plan::Misfit{host_bytes, 0, true};
    plan::Plan plan = plan::Assemble(problem_, absences_, host_offsets);
    plan.host_bytes = host_bytes;
    plan.machine = question_.machine;
    plan.limit_bytes = question_.options.limit_bytes;
    plan.host_limit_bytes = question_.options.host_limit_bytes;
    PlaceDevice(&plan);
    if (plan.footprint_bytes > plan.limit_bytes) return plan::Misfit{plan.footprint_bytes, 0};
    plan::DrawEdges(&plan);
    DrawBarriers(&plan);
    return plan;
  }

  place::PlannerOptions PlaceOptions() const {
    place::PlannerOptions options;
    options.node_budget = question_.options.place_nodes;
    options.seed = question_.options.seed;
    return options;
  }

  /// A map is on the host from the op that it leaves after to the one that needs it back.
  std::vector<Bytes> PlaceHost(Bytes* host_bytes) const {
    place::Problem problem;
    for (const Absence& absence : absences_) {
      const plan::Gap& gap = absence.gap;
      const plan::Residency away{gap.variable, gap.begin - 1, gap.end, 0, -1, -1};
      problem.buffers.push_back(plan::ToBuffer(problem_, away, question_.options.alignment));
    }
    if (problem.buffers.empty()) return {};
    const place::Placement placed = place::PlaceTight(problem, PlaceOptions());
    *host_bytes = placed.footprint_bytes;
    return placed.offsets;
  }

  void PlaceDevice(plan::Plan* plan) const {
    std::vector<Position> done;
    if (!intra_) done = FindDone();
    place::Problem problem;
    for (const plan::Residency& residency : plan->residencies) {
      place::Buffer buffer = plan::ToBuffer(problem_, residency, question_.options.alignment);
      const bool is_last = residency.end == problem_.variables[At(residency.variable)].end;
      if (!intra_ && is_last && residency.end <= problem_.period) {
        buffer.lifetime.upper = std::max(buffer.lifetime.upper, done[At(residency.variable)]);
      }
      problem.buffers.push_back(std::move(buffer));
    }
    const place::Placement placed = place::PlaceTight(problem, PlaceOptions());
    for (std::size_t r = 0; r < plan->residencies.size(); ++r) {
      plan->residencies[r].offset = placed.offsets[r];
    }
    plan->footprint_bytes = placed.footprint_bytes;
  }

  /// For each variable that backward is the last to read: the barrier behind the layer that does.
  std::vector<Position> FindDone() const {
    std::vector<Position> done(problem_.variables.size(), 0);
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const plan::Op& op = problem_.ops[i];
      if (op.phase != trace::Phase::kBackward) continue;
      for (const plan::Operand& operand : problem_.reads(op)) {
        if (operand.age == 0) done[At(operand.variable)] = Behind(layer_of_[i]);
      }
    }
    return done;
  }

  /// Makes each layer wait for what was to leave during the layer before, and to come back by now;
  /// and a copy for the barrier that it begins at.
  void DrawBarriers(plan::Plan* plan) const {
    std::vector<std::int64_t> rank(plan->commands.size(), 0);
    for (const auto& queue : plan->queues) {
      for (std::size_t k = 0; k < queue.size(); ++k) {
        rank[At(queue[k])] = static_cast<std::int64_t>(k);
      }
    }
    const auto draw = [&](CommandIndex waiting, CommandIndex earlier) {
      std::vector<plan::Wait>& waits = plan->commands[At(waiting)].waits;
      const plan::Queue queue = plan->commands[At(earlier)].queue;
      const auto known = std::find_if(waits.begin(), waits.end(), [&](const plan::Wait& wait) {
        return plan->commands[At(wait.command)].queue == queue;
      });
      if (known == waits.end()) {
        waits.push_back({earlier, 0});
      } else if (known->lag > 0 || rank[At(known->command)] < rank[At(earlier)]) {
        *known = {earlier, 0};
      }
    };
    for (const plan::Residency& residency : plan->residencies) {
      const Absence* absence = FindAbsence(residency.variable);
      if (absence == nullptr) continue;
      const std::int64_t out = layer_of_[At(absence->gap.after)];
      const std::int64_t in = layer_of_[At(absence->gap.before)];
      if (residency.copy_out >= 0) {
        draw(residency.copy_out, layers_[At(out)].last);
        draw(layers_[At(out + 2)].first, residency.copy_out);
      }
      if (residency.copy_in < 0) continue;
      draw(layers_[At(in)].first, residency.copy_in);
      draw(residency.copy_in, layers_[At(in - 2)].last);
    }
  }

  /// A variable has one at most: from its last use in forward to its first behind it.
  const Absence* FindAbsence(VariableIndex v) const {
    const std::int64_t k = absence_of_[At(v)];
    return k < 0 ? nullptr : &absences_[At(k)];
  }

  const Question& question_;
  const plan::Problem& problem_;
  const bool intra_;
  std::vector<LayerOps> layers_;
  std::vector<std::int64_t> layer_of_;  // By op.
  std::vector<Absence> absences_;
  std::vector<std::int64_t> absence_of_;  // By variable; -1 if it stays.
};

}  // namespace

Attempt PlanLayrubIntra(const Question& question) { return Layrub(question, true, false).Run(); }
Attempt PlanLayrubInter(const Question& question) { return Layrub(question, false, true).Run(); }
Attempt PlanLayrubHybrid(const Question& question) { return Layrub(question, true, true).Run(); }

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/chain_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/chain/order.h"
#include "plimsoll/chain/to_trace.h"
#include "plimsoll/place/planner.h"
#include "plimsoll/plan/assemble.h"
#include "plimsoll/plan/rewrite_row.h"
#include "plimsoll/planners/chain_order.h"

namespace plimsoll::planners {
namespace {

using chain::Direction;
using plan::CommandIndex;
using plan::Position;
using plan::Queue;

/// The ops that touch a variable first and last before it leaves, or after it has come back.
struct Uses {
  plan::OpIndex first = -1;
  plan::OpIndex last = -1;
};

class Builder {
 public:
  Builder(const chain::Question& question, const chain::Schedule& schedule,
          const ChainPlanOptions& options)
      : question_(question),
        schedule_(schedule),
        options_(options),
        layout_{question.model.stages},
        model_(chain::ModelOf(question.chain, question.model, schedule)),
        order_(model_, schedule) {
    const trace::Trace trace = chain::ToTrace(question.chain, 1);
    problem_ = plan::TakeStretch(trace, 0, static_cast<trace::EventIndex>(trace.events.size()));
    if (!schedule.order.empty()) Rewrite();
  }

  std::variant<plan::Plan, plan::Misfit> Run() {
    const std::vector<plan::Absence> absences = ListAbsences();
    plan_ = plan::Assemble(problem_, absences, std::vector<Bytes>(absences.size(), 0));
    plan_.rewriting = std::move(rewriting_);
    plan_.machine = ChainMachine(question_.model);
    plan_.limit_bytes = question_.limit_bytes;
    plan_.host_limit_bytes = options_.host_limit_bytes;
    QueueCopies();
    FindUses();
    if (const Bytes needed = PlaceDevice(); needed > plan_.limit_bytes) {
      return plan::Misfit{.needed_bytes = needed};
    }
    if (const Bytes needed = PlaceHost(); needed > plan_.host_limit_bytes) {
      return plan::Misfit{.needed_bytes = needed, .host = true};
    }
    DrawEdges();
    return std::move(plan_);
  }

 private:
  /// Puts the problem of the schedule's order in the place of the recorded one.
  void Rewrite() {
    const auto op = [this](std::size_t model_op) {
      return static_cast<plan::OpIndex>(layout_.Op(model_op));
    };
    std::vector<plan::OpIndex> row = {0};
    for (std::size_t k = 0; k < schedule_.order.size(); ++k) {
      if (k == layout_.stages) row.push_back(op(layout_.stages) - 1);  // The loss.
      row.push_back(op(At(schedule_.order[k])));
    }
    const std::optional<plan::Rewritten> rewritten = plan::RewriteRow(problem_, row);
    PLIMSOLL_CHECK(rewritten, "a chain's order is always a row of its problem");
    if (rewritten->replay_ns > 0 || rewritten->problem.ops.size() > problem_.ops.size()) {
      rewriting_ = plan::ToRewriting(problem_, *rewritten);
    }
    problem_ = rewritten->problem;
  }

  Position BehindOp(std::size_t op) const { return problem_.ops[op].position + 1; }

  /// The two parts of every activation that leaves, in the order in which they do.
  std::vector<plan::Absence> ListAbsences() {
    std::vector<std::size_t> in_of(layout_.stages, 0);
    for (std::size_t t = 0; t < schedule_.transfers.size(); ++t) {
      const chain::Transfer& transfer = schedule_.transfers[t].transfer;
      if (transfer.direction == Direction::kIn) in_of[At(transfer.activation)] = t;
    }
    std::vector<plan::Absence> absences;
    for (std::size_t t = 0; t < schedule_.transfers.size(); ++t) {
      const chain::Transfer& transfer = schedule_.transfers[t].transfer;
      if (transfer.direction == Direction::kIn) continue;
      const auto i = At(transfer.activation);
      // The output, gone from F_i to its next reader; and the inside, from F_{i-1} to B_{i-1}.
      const std::size_t read = layout_.Op(i);
      absences.push_back(MakeAbsence({t, in_of[i]}, read, layout_.Op(model_.return_op[i])));
      if (model_.activation_bytes[i] == question_.chain.OutputBytes(i)) continue;
      absences.push_back(MakeAbsence({t, in_of[i]}, read - 1, BackwardOp(i - 1)));
      absences.back().gap.variable =
          static_cast<plan::VariableIndex>(problem_.writes(problem_.ops[read - 1])[1].variable);
    }
    return absences;
  }

  /// An activation's two transfers, of which a part of it takes part in both.
  struct Trip {
    std::size_t out = 0;
    std::size_t in = 0;
  };

  /// Where B_i stands in the problem.
  std::size_t BackwardOp(std::size_t i) const {
    const auto op = static_cast<std::int32_t>(2 * layout_.stages - 1 - i);
    const auto place = std::find(model_.order.begin(), model_.order.end(), op);
    return layout_.Op(model_.order.empty() ? At(op) : At(place - model_.order.begin()));
  }

  /// Of the first variable that `after` reads, until `before`.
  plan::Absence MakeAbsence(const Trip& trip, std::size_t after, std::size_t before) {
    trips_.push_back(trip);
    plan::Absence absence;
    absence.gap = {problem_.reads(problem_.ops[after])[0].variable,
                   static_cast<plan::OpIndex>(after), static_cast<plan::OpIndex>(before),
                   BehindOp(after), problem_.ops[before].position};
    // It has bytes under every op that begins before its way out ends, or ends after its way in
    // has begun.
    std::size_t released = after;
    std::size_t acquired = after;
    for (std::size_t op = after; op < before; ++op) {
      if (order_.op(op).begin < order_.transfer(trip.out).end) released = op;
      if (order_.op(op).end < order_.transfer(trip.in).begin) acquired = op;
    }
    absence.released = BehindOp(released);
    absence.acquired = BehindOp(std::max(released, acquired));
    return absence;
  }

  CommandIndex OutCommand(std::size_t trip) const {
    return static_cast<CommandIndex>(problem_.ops.size() + 2 * trip);
  }
  CommandIndex InCommand(std::size_t trip) const { return OutCommand(trip) + 1; }

  /// Gives the copies their order on the link, and every command its ranks.
  void QueueCopies() {
    ranks_.resize(plan_.commands.size());
    std::vector<std::vector<CommandIndex>> copies(schedule_.transfers.size());
    for (std::size_t op = 0; op < problem_.ops.size(); ++op) ranks_[op] = order_.op(op);
    for (std::size_t k = 0; k < trips_.size(); ++k) {
      copies[trips_[k].out].push_back(OutCommand(k));
      copies[trips_[k].in].push_back(InCommand(k));
    }
    plan_.queues[1].clear();
    plan_.queues[2].clear();
    for (std::size_t t = 0; t < copies.size(); ++t) {
      for (const CommandIndex copy : copies[t]) {
        link_.push_back(copy);
        ranks_[At(copy)] = order_.transfer(t);
        plan_.queues[At(static_cast<int>(plan_.commands[At(copy)].queue))].push_back(copy);
      }
    }
    place_in_queue_.resize(plan_.commands.size());
    for (const std::vector<CommandIndex>& queue : plan_.queues) {
      for (std::size_t k = 0; k < queue.size(); ++k) {
        place_in_queue_[At(queue[k])] = static_cast<std::int64_t>(k);
      }
    }
  }

  void FindUses() {
    const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem_);
    for (const plan::Residency& residency : plan_.residencies) {
      Uses uses;
      const bool scratch =
          problem_.variables[At(residency.variable)].kind == plan::VariableKind::kWorkspace;
      for (const plan::Access& access : accesses[At(residency.variable)]) {
        if (!scratch && (access.time < residency.begin || access.time >= residency.end)) continue;
        if (uses.first < 0) uses.first = access.op;
        uses.last = access.op;
      }
      uses_.push_back(uses);
    }
  }

  /// Who must be over before others have a residency's bytes; -1 for nobody.
  std::array<CommandIndex, 2> LastCommands(std::size_t r) const {
    return {uses_[r].last, plan_.residencies[r].copy_out};
  }
  CommandIndex FirstCommand(std::size_t r) const {
    const CommandIndex copy = plan_.residencies[r].copy_in;
    return copy >= 0 ? copy : uses_[r].first;
  }
  Ranks StayOf(std::size_t r) const {
    Ranks stay{ranks_[At(FirstCommand(r))].begin, 0};
    for (const CommandIndex last : LastCommands(r)) {
      if (last >= 0) stay.end = std::max(stay.end, ranks_[At(last)].end);
    }
    return stay;
  }
  Bytes SizeOf(std::size_t r) const {
    return problem_.variables[At(plan_.residencies[r].variable)].size_bytes;
  }

  place::Placement Place(const place::Problem& problem, Bytes capacity) const {
    place::PlannerOptions options;
    options.capacity_bytes = capacity;
    options.time_budget_seconds = options_.place_seconds;
    options.seed = options_.seed;
    return place::PlaceTight(problem, options);
  }

  Bytes PlaceDevice() {
    place::Problem problem;
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      const Ranks stay = StayOf(r);
      place::Buffer buffer;
      buffer.lifetime = {stay.begin, stay.end};
      buffer.size_bytes = SizeOf(r);
      buffer.alignment = options_.alignment;
      problem.buffers.push_back(buffer);
    }
    const place::Placement placed = Place(problem, plan_.limit_bytes);
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      plan_.residencies[r].offset = placed.offsets[r];
    }
    plan_.footprint_bytes = placed.footprint_bytes;
    return placed.footprint_bytes;
  }

  /// On the host, an activation has bytes from the beginning of its way out to the end of its way
  /// in.
  Bytes PlaceHost() {
    place::Problem problem;
    for (std::size_t k = 0; k < trips_.size(); ++k) {
      place::Buffer buffer;
      buffer.lifetime = {ranks_[At(OutCommand(k))].begin, ranks_[At(InCommand(k))].end};
      buffer.size_bytes = SizeOf(At(plan_.commands[At(OutCommand(k))].residency));
      buffer.alignment = options_.alignment;
      problem.buffers.push_back(buffer);
    }
    const place::Placement placed = Place(problem, plan_.host_limit_bytes);
    for (std::size_t k = 0; k < trips_.size(); ++k) {
      plan_.commands[At(OutCommand(k))].host_offset = placed.offsets[k];
      plan_.commands[At(InCommand(k))].host_offset = placed.offsets[k];
    }
    plan_.host_bytes = placed.footprint_bytes;
    return placed.footprint_bytes;
  }

  /// Makes `waiting` wait for `earlier`: of each other queue, the latest one only.
  void Draw(CommandIndex waiting, CommandIndex earlier) {
    const Queue queue = plan_.commands[At(earlier)].queue;
    plan::Command& command = plan_.commands[At(waiting)];
    if (queue == command.queue) return;
    for (plan::Wait& wait : command.waits) {
      if (plan_.commands[At(wait.command)].queue != queue) continue;
      if (place_in_queue_[At(earlier)] > place_in_queue_[At(wait.command)]) wait.command = earlier;
      return;
    }
    command.waits.push_back({earlier, 0});
  }

  void DrawEdges() {
    for (std::size_t k = 0; k < trips_.size(); ++k) {
      const std::size_t stays = At(plan_.commands[At(OutCommand(k))].residency);
      const std::size_t returns = At(plan_.commands[At(InCommand(k))].residency);
      Draw(OutCommand(k), uses_[stays].first);  // The op that makes it.
      Draw(InCommand(k), OutCommand(k));
      Draw(uses_[returns].first, InCommand(k));
    }
    for (std::size_t t = 1; options_.half_duplex && t < link_.size(); ++t) {
      Draw(link_[t], link_[t - 1]);
    }
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) DrawAddressEdges(r);
    DrawHostEdges();
  }

  static bool Overlap(Bytes offset, Bytes size, Bytes other_offset, Bytes other_size) {
    return offset < other_offset + other_size && other_offset < offset + size;
  }

  /// Makes everybody who has some of the residency's bytes after it wait for it.
  void DrawAddressEdges(std::size_t r) {
    for (std::size_t later = 0; later < plan_.residencies.size(); ++later) {
      if (StayOf(r).end > StayOf(later).begin ||
          !Overlap(plan_.residencies[r].offset, SizeOf(r), plan_.residencies[later].offset,
                   SizeOf(later))) {
        continue;
      }
      for (const CommandIndex last : LastCommands(r)) {
        if (last >= 0) Draw(FirstCommand(later), last);
      }
    }
  }

  void DrawHostEdges() {
    const auto size_of = [this](std::size_t k) {
      return SizeOf(At(plan_.commands[At(OutCommand(k))].residency));
    };
    for (std::size_t k = 0; k < trips_.size(); ++k) {
      for (std::size_t later = 0; later < trips_.size(); ++later) {
        if (ranks_[At(InCommand(k))].end < ranks_[At(OutCommand(later))].begin &&
            Overlap(plan_.commands[At(OutCommand(k))].host_offset, size_of(k),
                    plan_.commands[At(OutCommand(later))].host_offset, size_of(later))) {
          Draw(OutCommand(later), InCommand(k));
        }
      }
    }
  }

  const chain::Question& question_;
  const chain::Schedule& schedule_;
  const ChainPlanOptions& options_;
  const chain::TraceLayout layout_;
  const chain::Model model_;  // Of the schedule's order.
  const ChainOrder order_;
  plan::Problem problem_;
  std::optional<plan::Rewriting> rewriting_;
  plan::Plan plan_;
  std::vector<Trip> trips_;                   // In the order of the absences.
  std::vector<CommandIndex> link_;            // The copies in the link's order.
  std::vector<Ranks> ranks_;                  // By command.
  std::vector<std::int64_t> place_in_queue_;  // By command.
  std::vector<Uses> uses_;                    // By residency.
};

}  // namespace

plan::Machine ChainMachine(const chain::Model& model) {
  const auto rate = static_cast<double>(model.bandwidth_bytes_per_s);
  return {.name = "chain",
          .out_bytes_per_s = rate,
          .in_bytes_per_s = rate,
          .both_out_bytes_per_s = rate,
          .both_in_bytes_per_s = rate};
}

std::variant<plan::Plan, plan::Misfit> ToPlan(const chain::Question& question,
                                              const chain::Schedule& schedule,
                                              const ChainPlanOptions& options) {
  return Builder(question, schedule, options).Run();
}

std::variant<plan::Plan, plan::Misfit> PlanChain(const chain::Planner& planner,
                                                 const chain::Question& question,
                                                 const chain::PlannerOptions& planner_options,
                                                 const ChainPlanOptions& options) {
  constexpr int kMostAttempts = 6;
  plan::Misfit misfit{.needed_bytes = kMaxBytes};
  Bytes load_limit = question.limit_bytes;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (load_limit < question.model.smallest_limit_bytes) break;
    const auto schedule =
        planner.plan({question.chain, question.model, load_limit}, planner_options);
    if (!schedule) break;
    std::variant<plan::Plan, plan::Misfit> made = ToPlan(question, *schedule, options);
    if (auto* plan = std::get_if<plan::Plan>(&made)) {
      plan->planner = planner.name;
      return made;
    }
    const auto& needs = std::get<plan::Misfit>(made);
    if (needs.host) return needs;
    misfit.needed_bytes = std::min(misfit.needed_bytes, needs.needed_bytes);
    load_limit -= (needs.needed_bytes - question.limit_bytes) / 2 + options.alignment;
  }
  if (misfit.needed_bytes == kMaxBytes) {
    misfit.needed_bytes = question.model.smallest_limit_bytes;
  }
  return misfit;
}

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/memory_view.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/load_profile.h"

namespace plimsoll::report {
namespace {

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Says when a residency is used, and from when to when its bytes are its own.
class ResidencyClock {
 public:
  ResidencyClock(const plan::Plan& plan, const CommandTimes& times)
      : plan_(plan),
        times_(times),
        commands_(CommandsOfOps(plan)),
        accesses_(plan::ListAccesses(plan.problem)) {}

  /// From the first of its commands to the last, on an axis without an end.
  std::pair<Nanoseconds, Nanoseconds> SpanOf(const plan::Residency& residency) const {
    const Uses uses = FindUses(residency);
    std::pair<Nanoseconds, Nanoseconds> span = {uses.first_start_ns, uses.last_end_ns};
    if (residency.copy_in >= 0) {
      // The last of its runs, one in each iteration, that ends before the first use.
      const auto c = At(residency.copy_in);
      span.first = times_.start_ns[c] - LapsAbove(times_.end_ns[c] - uses.first_start_ns);
    }
    if (residency.copy_out >= 0) {
      // The first of its runs that begins behind the last write.
      const auto c = At(residency.copy_out);
      const Nanoseconds end = times_.end_ns[c] + LapsAbove(uses.written_ns - times_.start_ns[c]);
      span.second = std::max(span.second, end);
    }
    return span;
  }

 private:
  struct Uses {
    Nanoseconds first_start_ns = 0;
    Nanoseconds last_end_ns = 0;
    Nanoseconds written_ns = 0;  ///< The end of the last write, or the first start.
  };

  Uses FindUses(const plan::Residency& residency) const {
    Uses uses;
    bool any = false;
    for (const plan::Access& access : accesses_[At(residency.variable)]) {
      // A persistent variable is used at the same positions in each iteration.
      for (const Nanoseconds lap : {0, 1}) {
        const plan::Position time = access.time + lap * plan_.problem.period;
        if (time < residency.begin || time >= residency.end) continue;
        const auto c = At(commands_[At(access.op)]);
        const Nanoseconds shift =
            time / std::max<plan::Position>(plan_.problem.period, 1) * times_.iteration_ns;
        const Nanoseconds start = times_.start_ns[c] + shift;
        const Nanoseconds end = times_.end_ns[c] + shift;
        uses.first_start_ns = any ? std::min(uses.first_start_ns, start) : start;
        uses.last_end_ns = any ? std::max(uses.last_end_ns, end) : end;
        if (!any) uses.written_ns = start;
        if (access.writes) uses.written_ns = std::max(uses.written_ns, end);
        any = true;
      }
    }
    return uses;
  }

  /// The time of as few iterations as take so much, or more; negative if they are to be taken away.
  Nanoseconds LapsAbove(Nanoseconds ns) const {
    if (!plan_.problem.cyclic || times_.iteration_ns <= 0) return 0;
    const Nanoseconds t = times_.iteration_ns;
    return (ns >= 0 ? (ns + t - 1) / t : -(-ns / t)) * t;
  }

  const plan::Plan& plan_;
  const CommandTimes& times_;
  const std::vector<plan::CommandIndex> commands_;
  const std::vector<std::vector<plan::Access>> accesses_;
};

/// A rectangle that is added or taken away at a moment.
struct Edge {
  Nanoseconds time_ns = 0;
  bool begins = false;
  Bytes size_bytes = 0;
  Bytes top_bytes = 0;
};

std::vector<Edge> ListEdges(const plan::Plan& plan, const std::vector<Rectangle>& rectangles,
                            Nanoseconds iteration_ns) {
  std::vector<Edge> edges;
  for (const Rectangle& r : rectangles) {
    const Bytes size = plan.problem.variables[At(r.variable)].size_bytes;
    if (size == 0 || r.end_ns <= r.begin_ns) continue;
    const auto add = [&](Nanoseconds begin_ns, Nanoseconds end_ns) {
      edges.push_back({begin_ns, true, size, r.offset + size});
      edges.push_back({end_ns, false, size, r.offset + size});
    };
    add(r.begin_ns, std::min(r.end_ns, iteration_ns));
    if (r.end_ns > iteration_ns) add(0, r.end_ns - iteration_ns);
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.begins < b.begins;
  });
  return edges;
}

}  // namespace

std::vector<plan::CommandIndex> CommandsOfOps(const plan::Plan& plan) {
  std::vector<plan::CommandIndex> commands(plan.problem.ops.size(), 0);
  for (const plan::CommandIndex c : plan.queues[0]) commands[At(plan.commands[At(c)].op)] = c;
  return commands;
}

plan::OpIndex SourceOf(const plan::Plan& plan, plan::OpIndex op) {
  return plan.rewriting ? plan.rewriting->op_source[At(op)] : op;
}

bool IsReplay(const plan::Plan& plan, plan::OpIndex op) {
  return plan.rewriting && plan.rewriting->is_replay[At(op)] != 0;
}

std::vector<plan::OpIndex> FindMakers(const plan::Problem& problem) {
  std::vector<plan::OpIndex> makers(problem.variables.size(), -1);
  const auto note = [&](std::span<const plan::Operand> operands, std::size_t op) {
    for (const plan::Operand& operand : operands) {
      plan::OpIndex& maker = makers[At(operand.variable)];
      if (maker < 0) maker = static_cast<plan::OpIndex>(op);
    }
  };
  for (std::size_t k = 0; k < problem.ops.size(); ++k) note(problem.writes(problem.ops[k]), k);
  for (std::size_t k = 0; k < problem.ops.size(); ++k) note(problem.reads(problem.ops[k]), k);
  return makers;
}

std::vector<Rectangle> ListRectangles(const plan::Plan& plan, const CommandTimes& times) {
  const ResidencyClock clock(plan, times);
  const Nanoseconds iteration = times.iteration_ns;
  std::vector<Rectangle> rectangles;
  for (const plan::Residency& residency : plan.residencies) {
    Rectangle r{residency.variable, 0, iteration, residency.offset};
    const bool always = residency.copy_in < 0 && residency.copy_out < 0 &&
                        plan.problem.variables[At(residency.variable)].persistent();
    if (!always) {
      std::tie(r.begin_ns, r.end_ns) = clock.SpanOf(residency);
      if (plan.problem.cyclic && iteration > 0) {
        const Nanoseconds begin = ((r.begin_ns % iteration) + iteration) % iteration;
        r.end_ns = begin + std::min(r.end_ns - r.begin_ns, iteration);
        r.begin_ns = begin;
      }
    }
    rectangles.push_back(r);
  }
  return rectangles;
}

std::vector<MemoryStep> ListSteps(const plan::Plan& plan, const std::vector<Rectangle>& rectangles,
                                  Nanoseconds iteration_ns) {
  const std::vector<Edge> edges = ListEdges(plan, rectangles, iteration_ns);
  std::multiset<Bytes> tops;
  Bytes load = 0;
  std::vector<MemoryStep> steps = {{}};
  for (std::size_t k = 0; k < edges.size(); ++k) {
    const Edge& edge = edges[k];
    load += edge.begins ? edge.size_bytes : -edge.size_bytes;
    if (edge.begins) {
      tops.insert(edge.top_bytes);
    } else {
      tops.erase(tops.find(edge.top_bytes));
    }
    if (k + 1 < edges.size() && edges[k + 1].time_ns == edge.time_ns) continue;
    if (edge.time_ns >= iteration_ns) break;
    const MemoryStep step{edge.time_ns, load, tops.empty() ? 0 : *tops.rbegin()};
    if (step.time_ns == 0) {
      steps.back() = step;
    } else if (step.load_bytes != steps.back().load_bytes ||
               step.top_bytes != steps.back().top_bytes) {
      steps.push_back(step);
    }
  }
  return steps;
}

std::vector<Bytes> LoadByOp(const plan::Problem& recorded) {
  const plan::LoadProfile profile = plan::ProfileLoad(recorded);
  std::vector<Bytes> loads;
  plan::Position from = 0;
  for (const plan::Op& op : recorded.ops) {
    Bytes most = profile.load_bytes[At(op.position)];
    for (; from < op.position; ++from) most = std::max(most, profile.load_bytes[At(from)]);
    from = op.position + 1;
    loads.push_back(most);
  }
  return loads;
}

std::vector<MemoryStep> ListStepsWithout(const Subject& subject) {
  const std::vector<Bytes> loads = LoadByOp(subject.recorded);
  std::vector<MemoryStep> steps;
  for (const plan::CommandIndex c : subject.plan.queues[0]) {
    const plan::OpIndex op = subject.plan.commands[At(c)].op;
    if (IsReplay(subject.plan, op)) continue;
    const Bytes load = loads[At(SourceOf(subject.plan, op))];
    const Nanoseconds start = steps.empty() ? 0 : subject.predicted.times.start_ns[At(c)];
    if (steps.empty() || steps.back().load_bytes != load) steps.push_back({start, load, load});
  }
  return steps;
}

}  // namespace plimsoll::report

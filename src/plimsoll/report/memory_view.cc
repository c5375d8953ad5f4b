// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/report/memory_view.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/load_profile.h"

namespace plimsoll::report {
namespace {

/// Says when a residency is used, and from when to when its bytes are its own.
class ResidencyClock {
 public:
  ResidencyClock(const Subject& subject, const CommandTimes& times)
      : plan_(subject.plan),
        predicted_(subject.predicted.times),
        times_(times),
        whole_lives_(!subject.figures.planned()),
        commands_(CommandsOfOps(plan_)),
        accesses_(plan::ListAccesses(plan_.problem)) {}

  /// From the first of its commands to the last, on an axis without an end.
  std::pair<Nanoseconds, Nanoseconds> SpanOf(const plan::Residency& residency) const {
    const Uses uses = FindUses(residency, times_);
    // In which iteration a copy runs is told by predicted times, which are exact: clocks of queues
    // may differ by a little, and a copy that seems to end behind its op is not a lap too late.
    const Uses predicted = FindUses(residency, predicted_);
    std::pair<Nanoseconds, Nanoseconds> span = {uses.first_start_ns, uses.last_end_ns};
    if (whole_lives_) {
      const Nanoseconds begin = TimeOf(residency.begin, times_);
      const Nanoseconds end = TimeOf(residency.end, times_);
      // Scratch that is freed before its op runs is drawn as if it were freed behind it.
      span = {std::min(begin, uses.first_start_ns), std::max(end, uses.last_end_ns)};
    }
    if (residency.copy_in >= 0) {
      // The last of its runs, one in each iteration, that ends before the first use.
      const auto c = At(residency.copy_in);
      const std::int64_t laps = LapsAbove(predicted_.end_ns[c] - predicted.first_start_ns);
      span.first = std::min(span.first, times_.start_ns[c] - laps * times_.iteration_ns);
    }
    if (residency.copy_out >= 0) {
      // The first of its runs that begins behind the last write.
      const auto c = At(residency.copy_out);
      const std::int64_t laps = LapsAbove(predicted.written_ns - predicted_.start_ns[c]);
      span.second = std::max(span.second, times_.end_ns[c] + laps * times_.iteration_ns);
    }
    return span;
  }

 private:
  struct Uses {
    Nanoseconds first_start_ns = 0;
    Nanoseconds last_end_ns = 0;
    Nanoseconds written_ns = 0;  ///< The end of the last write, or the first start.
  };

  Uses FindUses(const plan::Residency& residency, const CommandTimes& times) const {
    const std::vector<plan::Access>& accesses = accesses_[At(residency.variable)];
    const bool around =
        plan_.problem.cyclic && plan_.problem.variables[At(residency.variable)].persistent();
    std::optional<Uses> uses;
    for (const plan::Access& access : accesses) {
      // A persistent variable is used at the same positions in each iteration.
      for (Nanoseconds lap = 0; lap < (around ? 2 : 1); ++lap) {
        const plan::Position time = access.time + lap * plan_.problem.period;
        if (time >= residency.begin && time < residency.end) AddUse(access, time, times, &uses);
      }
    }
    // Scratch may be freed before the op runs that it is for.
    if (!uses && !accesses.empty()) AddUse(accesses.front(), accesses.front().time, times, &uses);
    return uses.value_or(Uses{TimeOf(residency.begin, times), TimeOf(residency.end, times), 0});
  }

  void AddUse(const plan::Access& access, plan::Position time, const CommandTimes& times,
              std::optional<Uses>* uses) const {
    const auto c = At(commands_[At(access.op)]);
    const Nanoseconds shift =
        time / std::max<plan::Position>(plan_.problem.period, 1) * times.iteration_ns;
    const Nanoseconds start = times.start_ns[c] + shift;
    const Nanoseconds end = times.end_ns[c] + shift;
    if (!*uses) *uses = Uses{start, end, start};
    Uses& all = **uses;
    all.first_start_ns = std::min(all.first_start_ns, start);
    all.last_end_ns = std::max(all.last_end_ns, end);
    if (access.writes) all.written_ns = std::max(all.written_ns, end);
  }

  /// When the first op at a position or behind it begins.
  Nanoseconds TimeOf(plan::Position position, const CommandTimes& times) const {
    const plan::Position period = std::max<plan::Position>(plan_.problem.period, 1);
    const plan::Position lap = plan_.problem.cyclic ? position / period : 0;
    const auto& ops = plan_.problem.ops;
    const auto found = std::lower_bound(
        ops.begin(), ops.end(), position - lap * period,
        [](const plan::Op& op, plan::Position sought) { return op.position < sought; });
    if (found == ops.end()) return (lap + 1) * times.iteration_ns;
    return lap * times.iteration_ns + times.start_ns[At(commands_[At(found - ops.begin())])];
  }

  /// The fewest iterations that take so much predicted time, or more; negative if they are to be
  /// taken away.
  std::int64_t LapsAbove(Nanoseconds ns) const {
    if (!plan_.problem.cyclic || predicted_.iteration_ns <= 0) return 0;
    const Nanoseconds t = predicted_.iteration_ns;
    return ns >= 0 ? (ns + t - 1) / t : -(-ns / t);
  }

  const plan::Plan& plan_;
  const CommandTimes& predicted_;
  const CommandTimes& times_;  // Those that are drawn.
  const bool whole_lives_;     // Whether bytes are taken from malloc to free, used or not.
  const std::vector<plan::CommandIndex> commands_;
  const std::vector<std::vector<plan::Access>> accesses_;
};

/// A rectangle that is added or taken away at a moment.
struct Edge {
  Nanoseconds time_ns = 0;
  bool begins = false;
  Bytes low_bytes = 0;
  Bytes high_bytes = 0;
};

/// How many bytes of an arena some rectangles cover, as they come and go: a tree over all offsets
/// at which one begins or ends, with how often each stretch is covered as a whole.
class Coverage {
 public:
  explicit Coverage(std::vector<Bytes> offsets) : offsets_(std::move(offsets)) {
    std::sort(offsets_.begin(), offsets_.end());
    offsets_.erase(std::unique(offsets_.begin(), offsets_.end()), offsets_.end());
    nodes_.resize(4 * std::max<std::size_t>(offsets_.size(), 1));
  }

  void Add(Bytes low, Bytes high, int count) {
    const auto place = [&](Bytes offset) {
      return At(std::lower_bound(offsets_.begin(), offsets_.end(), offset) - offsets_.begin());
    };
    Add(1, 0, offsets_.size() - 1, place(low), place(high), count);
  }
  Bytes covered_bytes() const { return nodes_[1].covered_bytes; }

 private:
  struct Node {
    int count = 0;
    Bytes covered_bytes = 0;
  };

  /// Of the node for the stretches [begin, end), those in [from, to).
  void Add(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, std::size_t to,
           int count) {
    if (to <= begin || end <= from) return;
    if (from <= begin && end <= to) {
      nodes_[node].count += count;
    } else {
      const std::size_t middle = (begin + end) / 2;
      Add(2 * node, begin, middle, from, to, count);
      Add(2 * node + 1, middle, end, from, to, count);
    }
    if (nodes_[node].count > 0) {
      nodes_[node].covered_bytes = offsets_[end] - offsets_[begin];
    } else if (end - begin == 1) {
      nodes_[node].covered_bytes = 0;
    } else {
      nodes_[node].covered_bytes =
          nodes_[2 * node].covered_bytes + nodes_[2 * node + 1].covered_bytes;
    }
  }

  std::vector<Bytes> offsets_;
  std::vector<Node> nodes_;
};

std::vector<Edge> ListEdges(const plan::Plan& plan, const std::vector<Rectangle>& rectangles,
                            Nanoseconds iteration_ns) {
  std::vector<Edge> edges;
  for (const Rectangle& r : rectangles) {
    const Bytes size = plan.problem.variables[At(r.variable)].size_bytes;
    if (size == 0 || r.end_ns <= r.begin_ns) continue;
    const auto add = [&](Nanoseconds begin_ns, Nanoseconds end_ns) {
      edges.push_back({begin_ns, true, r.offset, r.offset + size});
      edges.push_back({end_ns, false, r.offset, r.offset + size});
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
  const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem);
  for (std::size_t v = 0; v < makers.size(); ++v) {
    if (makers[v] < 0 && !accesses[v].empty()) makers[v] = accesses[v].front().op;
  }
  return makers;
}

std::vector<Rectangle> ListRectangles(const Subject& subject, const CommandTimes& times) {
  const plan::Plan& plan = subject.plan;
  const ResidencyClock clock(subject, times);
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

std::vector<MemoryStep> ListSteps(const plan::Plan& plan, const CommandTimes& times,
                                  const std::vector<Rectangle>& rectangles) {
  const Nanoseconds iteration_ns = times.iteration_ns;
  const std::vector<Edge> edges = ListEdges(plan, rectangles, iteration_ns);
  std::vector<MemoryStep> steps = {{}};
  if (edges.empty()) return steps;
  std::vector<Bytes> offsets;
  for (const Edge& edge : edges) offsets.insert(offsets.end(), {edge.low_bytes, edge.high_bytes});
  Coverage coverage(std::move(offsets));
  std::multiset<Bytes> tops;
  for (std::size_t k = 0; k < edges.size(); ++k) {
    const Edge& edge = edges[k];
    coverage.Add(edge.low_bytes, edge.high_bytes, edge.begins ? 1 : -1);
    if (edge.begins) {
      tops.insert(edge.high_bytes);
    } else {
      tops.erase(tops.find(edge.high_bytes));
    }
    if (k + 1 < edges.size() && edges[k + 1].time_ns == edge.time_ns) continue;
    if (edge.time_ns >= iteration_ns) break;
    const MemoryStep step{edge.time_ns, coverage.covered_bytes(),
                          tops.empty() ? 0 : *tops.rbegin()};
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
  const std::vector<Bytes> load = plan::ProfileLoad(recorded).load_bytes;
  std::vector<Bytes> loads;
  plan::Position from = 0;
  for (const plan::Op& op : recorded.ops) {
    Bytes most = load[At(op.position)];
    for (; from < op.position; ++from) {
      // What is still there of the op before does not count, mallocs do.
      if (from > 0 && load[At(from)] > load[At(from - 1)]) most = std::max(most, load[At(from)]);
    }
    from = op.position + 1;
    loads.push_back(most);
  }
  return loads;
}

std::vector<MemoryStep> ListStepsWithout(const Subject& subject, const CommandTimes& times) {
  const std::vector<Bytes> loads = LoadByOp(subject.recorded);
  std::vector<MemoryStep> steps;
  for (const plan::CommandIndex c : subject.plan.queues[0]) {
    const plan::OpIndex op = subject.plan.commands[At(c)].op;
    if (IsReplay(subject.plan, op)) continue;
    const Bytes load = loads[At(SourceOf(subject.plan, op))];
    const Nanoseconds start = steps.empty() ? 0 : times.start_ns[At(c)];
    if (steps.empty() || steps.back().load_bytes != load) steps.push_back({start, load, load});
  }
  return steps;
}

}  // namespace plimsoll::report

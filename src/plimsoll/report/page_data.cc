// SPDX-License-Identifier: Apache-2.0
// What a page carries: the subject as columns of integers.
#include <nlohmann/json.hpp>

#include "plimsoll/report/columns.h"
#include "plimsoll/report/decisions.h"
#include "plimsoll/report/memory_view.h"
#include "plimsoll/report/page.h"

namespace plimsoll::report {
namespace {

using Values = std::vector<std::int64_t>;

/// Collects columns, and where they are.
class Packer {
 public:
  void Add(const std::string& name, const Values& values) {
    index_.push_back({name, values.size()});
    AppendColumn(values, &bytes_);
  }
  /// Adds a column with a number for each of some items.
  template <typename Items, typename Function>
  void Each(const std::string& name, const Items& items, const Function& number) {
    Values values;
    values.reserve(items.size());
    for (const auto& item : items) values.push_back(static_cast<std::int64_t>(number(item)));
    Add(name, values);
  }

  std::string Finish(const std::vector<std::string>& names) const {
    const nlohmann::ordered_json head = {{"columns", index_}, {"names", names}};
    return head.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n" + bytes_;
  }

 private:
  nlohmann::ordered_json index_ = nlohmann::ordered_json::array();
  std::string bytes_;
};

Values CountUp(std::size_t count) {
  Values values(count);
  for (std::size_t k = 0; k < count; ++k) values[k] = static_cast<std::int64_t>(k);
  return values;
}

void AddProblem(const plan::Plan& plan, Packer* out) {
  const plan::Problem& problem = plan.problem;
  using plan::Variable;
  out->Each("variable.id", problem.variables, [](const Variable& v) { return v.id; });
  out->Each("variable.size", problem.variables, [](const Variable& v) { return v.size_bytes; });
  out->Each("variable.kind", problem.variables, [](const Variable& v) { return v.kind; });
  out->Each("variable.phase", problem.variables, [](const Variable& v) { return v.phase; });
  out->Each("variable.maker", FindMakers(problem), [](plan::OpIndex op) { return op; });
  const auto variables = CountUp(problem.variables.size());
  out->Each("variable.source", variables, [&](std::int64_t v) {
    return plan.rewriting ? plan.rewriting->variable_source[static_cast<std::size_t>(v)] : v;
  });
  out->Each("op.name", problem.ops, [](const plan::Op& op) { return op.name; });
  out->Each("op.phase", problem.ops, [](const plan::Op& op) { return op.phase; });
  const auto ops = CountUp(problem.ops.size());
  out->Each("op.source", ops,
            [&](std::int64_t op) { return SourceOf(plan, static_cast<plan::OpIndex>(op)); });
  out->Each("op.replay", ops,
            [&](std::int64_t op) { return IsReplay(plan, static_cast<plan::OpIndex>(op)); });
}

void AddCommands(const plan::Plan& plan, Packer* out) {
  using plan::Command;
  out->Each("command.queue", plan.commands, [](const Command& c) { return c.queue; });
  out->Each("command.target", plan.commands,
            [](const Command& c) { return c.queue == plan::Queue::kCompute ? c.op : c.residency; });
  out->Each("command.waits", plan.commands, [](const Command& c) { return c.waits.size(); });
  Values awaited;
  Values lags;
  for (const Command& command : plan.commands) {
    for (const plan::Wait& wait : command.waits) {
      awaited.push_back(wait.command);
      lags.push_back(wait.lag);
    }
  }
  out->Add("wait.command", awaited);
  out->Add("wait.lag", lags);
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    out->Each("queue." + std::to_string(q), plan.queues[q], [](plan::CommandIndex c) { return c; });
  }
}

void AddLanes(const std::string& prefix, const plan::Plan& plan, const Lanes& lanes, Packer* out) {
  // In the order of the queues, in which differences are small.
  Values starts;
  Values lengths;
  for (const auto& queue : plan.queues) {
    for (const plan::CommandIndex c : queue) {
      const auto k = static_cast<std::size_t>(c);
      starts.push_back(lanes.times.start_ns[k]);
      lengths.push_back(lanes.times.end_ns[k] - lanes.times.start_ns[k]);
    }
  }
  out->Add(prefix + ".iteration", {lanes.times.iteration_ns});
  out->Add(prefix + ".start", starts);
  out->Add(prefix + ".length", lengths);
  out->Each(prefix + ".stall.command", lanes.stalls, [](const StallMark& s) { return s.command; });
  out->Each(prefix + ".stall.awaited", lanes.stalls, [](const StallMark& s) { return s.awaited; });
  out->Each(prefix + ".stall.start", lanes.stalls, [](const StallMark& s) { return s.start_ns; });
  out->Each(prefix + ".stall.length", lanes.stalls, [](const StallMark& s) { return s.length_ns; });
  out->Each(prefix + ".stall.reason", lanes.stalls,
            [&](const StallMark& s) { return ReasonOf(plan, s); });
}

void AddMemory(const Subject& subject, Packer* out) {
  const CommandTimes& times = subject.drawn();
  const std::vector<Rectangle> rectangles = ListRectangles(subject, times);
  out->Each("rectangle.variable", rectangles, [](const Rectangle& r) { return r.variable; });
  out->Each("rectangle.begin", rectangles, [](const Rectangle& r) { return r.begin_ns; });
  out->Each("rectangle.length", rectangles,
            [](const Rectangle& r) { return r.end_ns - r.begin_ns; });
  out->Each("rectangle.offset", rectangles, [](const Rectangle& r) { return r.offset; });
  const std::vector<MemoryStep> steps = ListSteps(subject.plan, times, rectangles);
  out->Each("step.time", steps, [](const MemoryStep& s) { return s.time_ns; });
  out->Each("step.load", steps, [](const MemoryStep& s) { return s.load_bytes; });
  out->Each("step.top", steps, [](const MemoryStep& s) { return s.top_bytes; });
  const std::vector<MemoryStep> without = ListStepsWithout(subject, times);
  out->Each("without.time", without, [](const MemoryStep& s) { return s.time_ns; });
  out->Each("without.load", without, [](const MemoryStep& s) { return s.load_bytes; });
}

void AddDecisions(const Subject& subject, Packer* out) {
  using Row = DecisionRow;
  const std::vector<Row> rows = ListDecisions(subject);
  out->Each("decision.planned", rows, [](const Row& r) { return r.planned; });
  out->Each("decision.gap", rows, [](const Row& r) { return r.gap_ns; });
  out->Each("decision.choice", rows, [](const Row& r) { return r.choice; });
  out->Each("decision.reason", rows, [](const Row& r) { return r.reason; });
  out->Each("decision.round_trip", rows, [](const Row& r) { return r.round_trip_ns; });
  out->Each("decision.copies", rows, [](const Row& r) { return r.copies_ns; });
  out->Each("decision.replays_ns", rows, [](const Row& r) { return r.replays_ns; });
  out->Each("decision.replays", rows, [](const Row& r) { return r.replays; });
  out->Each("decision.stall", rows, [](const Row& r) { return r.stall_ns; });
}

}  // namespace

std::string PackSubject(const Subject& subject) {
  Packer out;
  AddProblem(subject.plan, &out);
  AddCommands(subject.plan, &out);
  AddLanes("predicted", subject.plan, subject.predicted, &out);
  if (subject.measured) AddLanes("measured", subject.plan, *subject.measured, &out);
  AddMemory(subject, &out);
  AddDecisions(subject, &out);
  return out.Finish(subject.plan.problem.op_names);
}

}  // namespace plimsoll::report

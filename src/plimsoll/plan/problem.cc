// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/problem.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/classify.h"
#include "plimsoll/plan/load_profile.h"

namespace plimsoll::plan {
namespace {

using trace::Event;
using trace::EventIndex;
using trace::EventKind;
using trace::Trace;

constexpr EventIndex kNever = std::numeric_limits<EventIndex>::max();

/// When each variable of a trace is malloc'ed and freed.
struct Lives {
  std::vector<EventIndex> born;   ///< -1: before the first event.
  std::vector<EventIndex> freed;  ///< kNever: not in this trace.
};

Lives FindLives(const Trace& trace) {
  Lives lives;
  lives.born.assign(trace.variables.size(), -1);
  lives.freed.assign(trace.variables.size(), kNever);
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.kind == EventKind::kMalloc) lives.born[At(event.index)] = static_cast<EventIndex>(e);
    if (event.kind == EventKind::kFree) lives.freed[At(event.index)] = static_cast<EventIndex>(e);
  }
  return lives;
}

/// Builds the problem of a window of events.
class Cutter {
 public:
  Cutter(const Trace& trace, EventIndex begin, EventIndex end)
      : trace_(trace), begin_(begin), end_(end), lives_(FindLives(trace)) {
    // What is there before the first event is there for a moment even if no event follows.
    problem_.period = std::max<Position>(end - begin, 1);
    problem_.first_event = begin;
    problem_.op_names = trace.op_names;
    const trace::TraitsByName given = trace::ReadTraits(trace.metadata, "the trace", 2);
    for (const std::string& name : trace.op_names) {
      const auto own = given.find(name);
      traits_.push_back(own != given.end() ? own->second : TraitsOf(name));
    }
  }

  /// Returns nothing if the lives of the window's variables do not add up to a cycle: instances
  /// from before the steady stretch may be out of step with it.
  std::optional<Problem> CutCycle(const trace::Period& period) {
    period_ = period;
    problem_.cyclic = true;
    problem_.iterations = period.iterations();
    FindOldestBirths();
    AddPersistent([&](trace::VariableIndex v) {
      // Whatever is born in the steady stretch and outlives this window is an older instance of a
      // variable that this window allocates as well.
      return lives_.born[At(v)] < period.begin && !IsOlderInstance(v);
    });
    AddAllocated();
    AddCarriedIn();
    AddOps();
    if (!adds_up_) return std::nullopt;
    ClassifyVariables(&problem_);
    return std::move(problem_);
  }

  Problem CutOnce() {
    problem_.cyclic = false;
    AddPersistent([](trace::VariableIndex) { return true; });
    for (std::size_t v = 0; v < trace_.variables.size(); ++v) {
      const EventIndex born = lives_.born[v];
      const EventIndex freed = lives_.freed[v];
      if (born >= end_ || freed <= begin_ || (born < begin_ && freed >= end_)) continue;
      Add(v, std::max<Position>(born - begin_, 0), std::min(freed, end_) - begin_);
    }
    AddOps();
    ClassifyVariables(&problem_);
    return std::move(problem_);
  }

 private:
  VariableIndex Add(std::size_t v, Position begin, Position end) {
    Variable variable;
    variable.id = trace_.variables[v].id;
    variable.size_bytes = trace_.variables[v].size_bytes;
    variable.begin = begin;
    variable.end = end;
    problem_.variables.push_back(variable);
    const auto index = static_cast<VariableIndex>(problem_.variables.size() - 1);
    operand_of_[static_cast<trace::VariableIndex>(v)] = {index, 0};
    return index;
  }

  /// Adds what is alive before, throughout and after the window.
  template <typename Predicate>
  void AddPersistent(Predicate is_persistent) {
    for (std::size_t v = 0; v < trace_.variables.size(); ++v) {
      const bool throughout = lives_.born[v] < begin_ && lives_.freed[v] >= end_;
      if (!throughout || !is_persistent(static_cast<trace::VariableIndex>(v))) continue;
      problem_.variables[At(Add(v, 0, problem_.period))].kind = VariableKind::kPersistent;
    }
  }

  /// Adds what the window mallocs. What it does not free gets its end from AddCarriedIn().
  void AddAllocated() {
    for (EventIndex e = begin_; e < end_; ++e) {
      const Event& event = trace_.events[At(e)];
      if (event.kind != EventKind::kMalloc) continue;
      const EventIndex freed = lives_.freed[At(event.index)];
      const bool freed_here = freed < end_;
      const VariableIndex index =
          Add(At(event.index), e - begin_, freed_here ? freed - begin_ : kNever);
      allocated_at_[e - begin_] = index;
    }
  }

  /// Each free of something older than the window ends the life of the instance that the window
  /// mallocs at the same place of the iteration.
  void AddCarriedIn() {
    std::vector<std::pair<trace::VariableIndex, Position>> unmatched;
    for (EventIndex e = begin_; e < end_; ++e) {
      const Event& event = trace_.events[At(e)];
      if (event.kind != EventKind::kFree || lives_.born[At(event.index)] >= begin_) continue;
      const EventIndex born = BirthOf(event.index, e);
      const std::int64_t age = (begin_ - born + problem_.period - 1) / problem_.period;
      const auto entry = allocated_at_.find(born + age * problem_.period - begin_);
      if (entry == allocated_at_.end() || !CouldEnd(entry->second, event.index)) {
        unmatched.emplace_back(event.index, e - begin_);
        continue;
      }
      End(entry->second, event.index, e - begin_, static_cast<std::int32_t>(age));
    }
    // Born before anything steady: any variable of that size that has no end yet.
    for (const auto& [v, position] : unmatched) {
      const auto entry = std::find_if(
          allocated_at_.begin(), allocated_at_.end(),
          [&, older = v](const auto& allocated) { return CouldEnd(allocated.second, older); });
      if (entry == allocated_at_.end()) {
        adds_up_ = false;
        return;
      }
      End(entry->second, v, position, 1);
    }
    for (const Variable& variable : problem_.variables) {
      adds_up_ = adds_up_ && variable.end != kNever;
    }
  }

  /// Returns when a variable that is freed at event `e` was born. One that was there before the
  /// first event stands for the predecessor of what is freed one iteration later.
  EventIndex BirthOf(trace::VariableIndex v, EventIndex e) const {
    const EventIndex born = lives_.born[At(v)];
    const EventIndex later = e + problem_.period;
    if (born >= 0 || later >= period_.end) return born;
    const Event& successor = trace_.events[At(later)];
    if (successor.kind != EventKind::kFree) return born;
    return lives_.born[At(successor.index)] - problem_.period;
  }

  /// Notes when those that the window frees, but has not malloc'ed, were born.
  void FindOldestBirths() {
    for (EventIndex e = begin_; e < end_; ++e) {
      const Event& event = trace_.events[At(e)];
      if (event.kind != EventKind::kFree || lives_.born[At(event.index)] >= begin_) continue;
      const EventIndex born = BirthOf(event.index, e);
      oldest_birth_[PhaseOf(born)] = {born, trace_.variables[At(event.index)].size_bytes};
    }
  }

  /// Whether a variable that lives through the window is of the same line as one that the window
  /// frees, but younger: malloc'ed whole iterations later, before the stretch was steady.
  bool IsOlderInstance(trace::VariableIndex v) const {
    const EventIndex born = lives_.born[At(v)];
    if (born < 0) return false;
    const auto oldest = oldest_birth_.find(PhaseOf(born));
    return oldest != oldest_birth_.end() && oldest->second.first < born &&
           oldest->second.second == trace_.variables[At(v)].size_bytes;
  }

  /// Returns the position in the iteration of an event, which may be before the first.
  Position PhaseOf(EventIndex event) const {
    const Position remainder = event % problem_.period;
    return remainder < 0 ? remainder + problem_.period : remainder;
  }

  /// Whether the free of an older variable may be that of one that the window mallocs.
  bool CouldEnd(VariableIndex index, trace::VariableIndex older) const {
    const Variable& variable = problem_.variables[At(index)];
    return variable.end == kNever && variable.size_bytes == trace_.variables[At(older)].size_bytes;
  }

  void End(VariableIndex index, trace::VariableIndex older, Position position, std::int32_t age) {
    Variable& variable = problem_.variables[At(index)];
    variable.end = position + age * problem_.period;
    const Position length = variable.end - variable.begin;
    variable.instances =
        static_cast<std::int32_t>((length + problem_.period - 1) / problem_.period);
    operand_of_[older] = {index, age};
  }

  /// Returns what a variable of the trace is in the window.
  Operand OperandOf(trace::VariableIndex v) {
    const auto entry = operand_of_.find(v);
    if (entry != operand_of_.end()) return entry->second;
    // An instance between the youngest and the oldest: neither malloc'ed nor freed in the window.
    const EventIndex born = lives_.born[At(v)];
    const std::int64_t age = (begin_ - born + problem_.period - 1) / problem_.period;
    const auto allocated = allocated_at_.find(born + age * problem_.period - begin_);
    if (allocated == allocated_at_.end()) {
      adds_up_ = false;
      return {};
    }
    return {allocated->second, static_cast<std::int32_t>(age)};
  }

  void AddOps() {
    for (EventIndex e = begin_; e < end_; ++e) {
      const Event& event = trace_.events[At(e)];
      if (event.kind != EventKind::kExec) continue;
      const trace::Op& recorded = trace_.ops[At(event.index)];
      Op op;
      op.name = recorded.name;
      op.phase = recorded.phase;
      op.duration_ns = problem_.cyclic ? SmallestDuration(e) : recorded.duration_ns;
      op.position = e - begin_;
      op.first_operand = static_cast<std::int64_t>(problem_.operands.size());
      op.read_count = recorded.read_count;
      op.write_count = recorded.write_count;
      op.traits = traits_[At(op.name)];
      // A batch norm without weights: which of its operands are state cannot be told by its name.
      if (static_cast<int>(std::bit_width(op.traits.state_reads)) > op.read_count) op.traits = {};
      for (const auto operands : {trace_.reads(recorded), trace_.writes(recorded)}) {
        for (const trace::VariableIndex v : operands) problem_.operands.push_back(OperandOf(v));
      }
      AddStateWrites(&op);
      problem_.ops.push_back(op);
    }
  }

  /// State that an op updates on the side is written, whether the trace says so or not.
  void AddStateWrites(Op* op) {
    for (std::int32_t k = 0; k < std::min(op->read_count, 32); ++k) {
      if ((op->traits.state_reads >> k & 1) == 0) continue;
      const Operand state = problem_.operands[At(op->first_operand + k)];
      const auto writes = problem_.writes(*op);
      const bool said = std::any_of(writes.begin(), writes.end(), [&](const Operand& written) {
        return written.variable == state.variable && written.age == state.age;
      });
      if (said) continue;
      problem_.operands.push_back(state);
      ++op->write_count;
    }
  }

  /// The smallest time of this op over all iterations of the steady stretch.
  Nanoseconds SmallestDuration(EventIndex e) const {
    Nanoseconds smallest = std::numeric_limits<Nanoseconds>::max();
    const EventIndex first = period_.begin + (e - period_.begin) % period_.length;
    for (EventIndex twin = first; twin < period_.end; twin += period_.length) {
      const auto index = At(trace_.events[At(twin)].index);
      smallest = std::min(smallest, trace_.ops[index].duration_ns);
    }
    return smallest;
  }

  const Trace& trace_;
  const EventIndex begin_;
  const EventIndex end_;
  const Lives lives_;
  std::vector<OpTraits> traits_;  // Per op name.
  trace::Period period_;
  Problem problem_;
  bool adds_up_ = true;
  std::map<trace::VariableIndex, Operand> operand_of_;
  std::map<Position, std::pair<EventIndex, Bytes>> oldest_birth_;  // By phase; with the size.
  std::map<Position, VariableIndex> allocated_at_;  // By position of the malloc in the window.
};

/// Returns the first event of the last whole iteration that begins where the fewest bytes are live.
EventIndex ChooseCut(const Trace& trace, const trace::Period& period) {
  Bytes load = 0;
  Bytes least = kMaxBytes;
  EventIndex cut = period.begin;
  for (EventIndex e = period.begin; e < period.begin + period.length; ++e) {
    if (load < least) {
      least = load;
      cut = e;
    }
    const Event& event = trace.events[At(e)];
    if (event.kind == EventKind::kExec) continue;
    const Bytes size = trace.variables[At(event.index)].size_bytes;
    load += event.kind == EventKind::kMalloc ? size : -size;
  }
  return cut + (period.end - cut) / period.length * period.length - period.length;
}

/// Returns the bytes that are live in the trace when the iteration shown ends.
Bytes LoadAfter(const Trace& trace, const Problem& problem) {
  const Lives lives = FindLives(trace);
  const EventIndex end = problem.first_event + problem.period;
  Bytes load = 0;
  for (std::size_t v = 0; v < trace.variables.size(); ++v) {
    if (lives.born[v] < end && lives.freed[v] >= end) load += trace.variables[v].size_bytes;
  }
  return load;
}

}  // namespace

Nanoseconds Problem::iteration_ns() const {
  Nanoseconds sum = 0;
  for (const Op& op : ops) sum += op.duration_ns;
  return sum;
}

std::optional<Problem> CutIteration(const Trace& trace, const trace::Period& period) {
  const EventIndex begin = ChooseCut(trace, period);
  std::optional<Problem> problem = Cutter(trace, begin, begin + period.length).CutCycle(period);
  // What the stretch frees may be older than all of it, by nobody knows how much.
  if (problem && ProfileLoad(*problem).load_bytes.back() != LoadAfter(trace, *problem)) {
    return std::nullopt;
  }
  return problem;
}

Problem TakeStretch(const Trace& trace, EventIndex begin, EventIndex end) {
  return Cutter(trace, begin, end).CutOnce();
}

Problem MakeProblem(const Trace& trace) {
  if (const std::optional<trace::Period> period = trace::FindPeriod(trace)) {
    if (std::optional<Problem> problem = CutIteration(trace, *period)) return *std::move(problem);
  }
  return TakeStretch(trace, 0, static_cast<EventIndex>(trace.events.size()));
}

}  // namespace plimsoll::plan

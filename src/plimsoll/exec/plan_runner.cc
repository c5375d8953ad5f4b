// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/plan_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/exec/plan_runner_internal.h"

namespace plimsoll::exec {
namespace {

using plan::CommandIndex;
using plan::OpIndex;
using plan::Queue;
using plan::ResidencyIndex;
using plan::VariableIndex;

constexpr std::array kCopyQueues = {Queue::kCopyOut, Queue::kCopyIn};

}  // namespace

PlanRunner::PlanRunner(const plan::Plan* plan)
    : plan_(*plan), original_(plan->rewriting ? plan->rewriting->original : plan->problem) {
  rank_.resize(plan_.commands.size());
  for (const auto& queue : plan_.queues) {
    for (std::size_t k = 0; k < queue.size(); ++k) rank_[At(queue[k])] = std::int64_t(k);
  }
  is_awaited_.resize(plan_.commands.size());
  for (const plan::Command& command : plan_.commands) {
    for (const plan::Wait& wait : command.waits) {
      if (plan_.commands[At(wait.command)].queue != command.queue) {
        is_awaited_[At(wait.command)] = true;
      }
    }
  }
  FindSources();
  LinkOperands();
  DescribeStays();
  ListExpiring();
  Rehearse();
}

PlanRunner::~PlanRunner() {
  if (memory_.backend == nullptr) return;
  ForgetGraphs();
  if (fence_ >= 0) memory_.backend->DestroyEvent(fence_);
  for (const device::EventId event : events_) memory_.backend->DestroyEvent(event);
  for (const device::EventId event : times_) memory_.backend->DestroyEvent(event);
}

/// Goes through the plan without running anything, until what it leaves is what it finds.
void PlanRunner::Rehearse() {
  rehearsing_ = true;
  now_.assign(plan_.problem.variables.size(), {});
  versions_.assign(original_.variables.size(), 0);
  for (std::size_t r = 0; r < stays_.size(); ++r) {
    const plan::Residency& residency = plan_.residencies[r];
    if (stays_[r].eternal) now_[At(residency.variable)].device_offset = residency.offset;
  }
  const int laps = plan_.problem.cyclic ? 2 : 1;
  for (int lap = 1; lap <= laps; ++lap) {
    for (const Queue queue : {Queue::kCompute, Queue::kCopyOut, Queue::kCopyIn}) {
      while (Issued(queue) < lap * Length(queue)) IssueNext(queue);
    }
  }
  // What is freed behind the last op is not there when the next iteration begins.
  for (const ResidencyIndex r : expiring_.front()) {
    if (stays_[At(r)].end <= plan_.problem.period) Expire(r);
  }
  rehearsing_ = false;
  scene_ = now_;
  scene_versions_ = versions_;
  scene_stays_ = stays_;
}

void PlanRunner::Enter(const PlanMemory& memory) {
  // Graphs know addresses. What is faster does not depend on them.
  if (!(memory == memory_)) ForgetGraphs();
  const bool elsewhere = memory.backend != memory_.backend || memory.graphs != memory_.graphs;
  memory_ = memory;
  while (events_.size() < plan_.commands.size() * kEventLaps) {
    events_.push_back(memory_.backend->CreateUntimedEvent());
  }
  if (fence_ < 0 && memory_.backend->capabilities().poisons) {
    fence_ = memory_.backend->CreateUntimedEvent();
  }
  held_events_.assign(events_.size(), 0);
  is_steady_.assign(original_.ops.size(), false);
  const bool copies = Length(Queue::kCopyOut) + Length(Queue::kCopyIn) > 0;
  if (elsewhere) {
    trial_ = GraphTrial(copies && memory_.graphs && memory_.backend->capabilities().graphs);
  }
  issued_.fill(0);
  counts_ = {};
  measured_lap_ = -1;
  reached_ = 0;
  now_ = scene_;
  versions_ = scene_versions_;
  stays_ = scene_stays_;
  ops_done_ = 0;
  if (memory_.ledger == nullptr) return;
  for (std::size_t w = 0; w < now_.size(); ++w) {
    if (now_[w].device_offset < 0) continue;
    memory_.ledger->Enter(now_[w].device_offset, plan_.problem.variables[w].size_bytes,
                          std::int64_t(w));
  }
}

void PlanRunner::Leave() {
  for (Function& kept : functions_) kept = nullptr;
  for (std::size_t w = 0; w < now_.size(); ++w) {
    if (now_[w].device_offset >= 0) Depart(static_cast<VariableIndex>(w));
  }
}

void PlanRunner::Run(OpIndex op, Function function, bool steady) {
  PLIMSOLL_CHECK(op == ops_done_, fmt::format("op {} comes instead of op {}", op, ops_done_));
  if (op == 0 && measures_next_) {
    const std::int64_t next = Issued(Queue::kCompute) / Length(Queue::kCompute);
    // Copies of the iteration may have been issued already; then it is the one after it.
    const bool untouched = Issued(Queue::kCopyOut) <= next * Length(Queue::kCopyOut) &&
                           Issued(Queue::kCopyIn) <= next * Length(Queue::kCopyIn);
    measured_lap_ = untouched ? next : next + 1;
    measures_next_ = false;
  }
  // Times are those of commands one by one.
  const bool measuring = measures_next_ || measured_lap_ >= 0;
  // Whoever does not wait for results would be timed at issuing.
  if (op == 0 && !trial_.is_over()) {
    memory_.backend->Synchronize();
    trial_.BeginIteration();
  }
  holds_back_ = steady && !measuring && memory_.graphs && !gives_up_graphs_ &&
                trial_.wants_graphs() && memory_.backend->capabilities().graphs;
  if (!holds_back_) IssueHeld();
  is_steady_[At(op)] = steady;
  if (is_replayed_[At(op)]) functions_[At(op)] = function;
  const std::int64_t lap = Issued(Queue::kCompute) / Length(Queue::kCompute);
  reached_ = lap * plan_.problem.period + recorded_positions_[At(op)];
  // What was freed up to here makes room for copies that are due.
  const auto& compute = plan_.queues[static_cast<std::size_t>(Queue::kCompute)];
  for (std::int64_t k = Issued(Queue::kCompute) % Length(Queue::kCompute);; ++k) {
    const OpIndex next = plan_.commands[At(compute[At(k)])].op;
    for (const ResidencyIndex r : expiring_[At(next)]) Expire(r);
    if (!is_replay_[At(next)]) break;
  }
  IssueReadyCopies();
  current_ = &function;
  while (ops_done_ == op) IssueNext(Queue::kCompute);
  current_ = nullptr;
  IssueReadyCopies();
  holds_back_ = false;
  if (ops_done_ < std::ssize(original_.ops)) return;
  IssueHeld();
  if (!trial_.is_over()) {
    memory_.backend->Synchronize();
    trial_.EndIteration();
  }
  ops_done_ = 0;
  // What the functions hold may be large, and is of no use to the next iteration.
  for (Function& kept : functions_) kept = nullptr;
}

std::vector<PlanRunner::PendingReplay> PlanRunner::PendingReplays() const {
  std::vector<PendingReplay> pending;
  const std::int64_t done = Issued(Queue::kCompute) % Length(Queue::kCompute);
  // At the end of an iteration nothing of it is left to do.
  if (done == 0) return pending;
  const auto& queue = plan_.queues[At(static_cast<std::int64_t>(Queue::kCompute))];
  for (std::int64_t k = done; k < std::ssize(queue); ++k) {
    const OpIndex op = plan_.commands[At(queue[At(k)])].op;
    if (!is_replay_[At(op)] || source_[At(op)] >= ops_done_) continue;
    pending.push_back({op, functions_[At(source_[At(op)])]});
  }
  return pending;
}

std::int64_t PlanRunner::Length(Queue queue) const {
  return std::ssize(plan_.queues[static_cast<std::size_t>(queue)]);
}

bool PlanRunner::IsIssued(const plan::Wait& wait, std::int64_t lap) const {
  const std::int64_t then = lap - wait.lag;
  if (then < 0) return true;
  const Queue queue = plan_.commands[At(wait.command)].queue;
  return Issued(queue) > then * Length(queue) + rank_[At(wait.command)];
}

/// Whether all that the next command of a queue waits for has been issued, and, if it fills memory,
/// whether the program has freed whatever was there.
bool PlanRunner::MayIssue(Queue queue) const {
  const std::int64_t lap = Issued(queue) / Length(queue);
  const CommandIndex command =
      plan_.queues[static_cast<std::size_t>(queue)][At(Issued(queue) % Length(queue))];
  if (queue == Queue::kCopyIn) {
    const ResidencyIndex r = plan_.commands[At(command)].residency;
    const plan::Position begin = plan_.residencies[At(r)].begin + lap * plan_.problem.period;
    if (begin > reached_) return false;
  }
  const auto& waits = plan_.commands[At(command)].waits;
  return std::all_of(waits.begin(), waits.end(),
                     [&](const plan::Wait& wait) { return IsIssued(wait, lap); });
}

void PlanRunner::IssueWaits(CommandIndex command, std::int64_t lap) {
  for (const plan::Wait& wait : plan_.commands[At(command)].waits) {
    const Queue queue = plan_.commands[At(wait.command)].queue;
    while (!IsIssued(wait, lap)) {
      PLIMSOLL_CHECK(queue != Queue::kCompute || rehearsing_,
                     fmt::format("command {} waits for a later op", command));
      IssueNext(queue);
    }
    if (rehearsing_ || lap < wait.lag) continue;
    if (queue == plan_.commands[At(command)].queue) continue;
    Issue({.kind = Call::Kind::kWait,
           .queue = plan_.commands[At(command)].queue,
           .index = wait.command,
           .lap = lap - wait.lag});
  }
}

void PlanRunner::IssueNext(Queue queue) {
  const std::int64_t index = Issued(queue);
  const std::int64_t lap = index / Length(queue);
  const CommandIndex command =
      plan_.queues[static_cast<std::size_t>(queue)][At(index % Length(queue))];
  if (queue == Queue::kCompute) {
    // Before the copies that it waits for: they may need the room.
    for (const ResidencyIndex r : expiring_[At(plan_.commands[At(command)].op)]) Expire(r);
  }
  IssueWaits(command, lap);
  if (queue == Queue::kCompute) {
    IssueOp(command, lap);
  } else {
    IssueCopy(command, lap);
  }
  ++Issued(queue);
}

void PlanRunner::IssueReadyCopies() {
  const std::int64_t lap = Issued(Queue::kCompute) / Length(Queue::kCompute);
  for (bool more = true; more;) {
    more = false;
    for (const Queue queue : kCopyQueues) {
      // One iteration ahead at most: an event is kept for as long.
      while (Length(queue) > 0 && Issued(queue) / Length(queue) <= lap && MayIssue(queue)) {
        IssueNext(queue);
        more = true;
      }
    }
  }
}

device::EventId PlanRunner::EventOf(CommandIndex command, std::int64_t lap) const {
  return events_[At(command * kEventLaps + lap % kEventLaps)];
}

void PlanRunner::IssueOp(CommandIndex command, std::int64_t lap) {
  const OpIndex op = plan_.commands[At(command)].op;
  const bool replay = is_replay_[At(op)];
  const OpIndex source = source_[At(op)];
  if (!rehearsing_) {
    RecordTime(command, lap, true);
    if (!is_steady_[At(source)]) IssueHeld();
    const bool holds_back = std::exchange(holds_back_, holds_back_ && is_steady_[At(source)]);
    Issue({.kind = Call::Kind::kRun,
           .index = op,
           .function = replay ? functions_[At(source)] : std::move(*current_)});
    RecordTime(command, lap, false);
    if (is_awaited_[At(command)]) {
      Issue({.kind = Call::Kind::kRecord, .index = command, .lap = lap});
    }
    holds_back_ = holds_back && !gives_up_graphs_;
    counts_.replays += replay ? 1 : 0;
  }
  NoteOp(op);
  if (replay) return;
  NoteRecorded(source);
  ops_done_ = source + 1;
}

void PlanRunner::IssueCopy(CommandIndex index, std::int64_t lap) {
  const plan::Command& command = plan_.commands[At(index)];
  const plan::Residency& residency = plan_.residencies[At(command.residency)];
  const Bytes size = plan_.problem.variables[At(residency.variable)].size_bytes;
  if (!rehearsing_) {
    RecordTime(index, lap, true);
    Issue({.kind = Call::Kind::kCopy, .queue = command.queue, .index = index});
    if (command.queue == Queue::kCopyOut) {
      ++counts_.copies_out;
      counts_.copied_out_bytes += size;
    } else {
      ++counts_.copies_in;
      counts_.copied_in_bytes += size;
    }
    RecordTime(index, lap, false);
    if (is_awaited_[At(index)]) {
      Issue({.kind = Call::Kind::kRecord, .queue = command.queue, .index = index, .lap = lap});
    }
  }
  NoteCopy(command);
}

void PlanRunner::Measure() {
  if (times_.empty()) {
    for (std::size_t k = 0; k < 2 * plan_.commands.size(); ++k) {
      times_.push_back(memory_.backend->CreateEvent());
    }
  }
  measures_next_ = true;
  measured_lap_ = -1;
}

void PlanRunner::RecordTime(CommandIndex command, std::int64_t lap, bool is_start) {
  if (lap != measured_lap_) return;
  memory_.backend->Record(times_[At(2 * command + (is_start ? 0 : 1))],
                          StreamOf(plan_.commands[At(command)].queue));
}

std::optional<sim::Timeline> PlanRunner::TakeMeasured() {
  if (measured_lap_ < 0) return std::nullopt;
  for (const Queue queue : {Queue::kCompute, Queue::kCopyOut, Queue::kCopyIn}) {
    if (Issued(queue) < (measured_lap_ + 1) * Length(queue)) return std::nullopt;
  }
  memory_.backend->Synchronize();
  const auto& compute = plan_.queues[static_cast<std::size_t>(Queue::kCompute)];
  const auto time_of = [&](CommandIndex command, bool is_start) {
    return memory_.backend->TimeOf(times_[At(2 * command + (is_start ? 0 : 1))]);
  };
  const Nanoseconds origin = time_of(compute.front(), true);
  sim::Timeline timeline;
  timeline.iterations = 1;
  timeline.iteration_ns = time_of(compute.back(), false) - origin;
  for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
    const auto command = static_cast<CommandIndex>(c);
    timeline.spans.push_back({time_of(command, true) - origin, time_of(command, false) - origin});
  }
  measured_lap_ = -1;
  return timeline;
}

}  // namespace plimsoll::exec

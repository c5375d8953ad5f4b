// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/sim/simulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace plimsoll::sim {
namespace {

using plan::Command;
using plan::CommandIndex;
using plan::kQueues;
using plan::Queue;

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr std::int32_t kMostIterations = 12;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// A queue in execution: the command at its head, running or waiting.
struct Head {
  std::size_t next = 0;  ///< Place in the queue.
  std::int32_t iteration = 0;
  bool running = false;
  Nanoseconds start_ns = 0;
  Nanoseconds fixed_end_ns = 0;  ///< Of an op, or of a copy's latency.
  double bytes_left = 0;         ///< Of a copy, once its latency is over.
};

class Simulation {
 public:
  explicit Simulation(const plan::Plan& plan)
      : plan_(plan), most_(plan.problem.cyclic ? kMostIterations : 1) {
    ends_.assign(At(most_) * plan.commands.size(), kNever);
    starts_.assign(ends_.size(), kNever);
  }

  Timeline Run() {
    while (!Finished()) {
      StartWhatCan();
      const Nanoseconds next = NextEvent();
      if (next == kNever) {
        timeline_.deadlocked = true;
        return timeline_;
      }
      Advance(next);
    }
    Summarise();
    return timeline_;
  }

 private:
  const std::vector<CommandIndex>& QueueOf(int q) const { return plan_.queues[At(q)]; }
  Nanoseconds& End(std::int32_t iteration, CommandIndex command) {
    return ends_[At(iteration) * plan_.commands.size() + At(command)];
  }

  /// Whether all queues have done all iterations, or two iterations in a row took equally long.
  bool Finished() {
    if (Done(0) && Done(1) && Done(2)) return true;
    const auto& compute = QueueOf(0);
    if (compute.empty() || heads_[0].iteration < 3 || heads_[0].next != 0) return false;
    const std::int32_t last = heads_[0].iteration - 1;
    if (last == checked_) return false;
    checked_ = last;
    return IsSteady(last);
  }

  bool Done(int q) const { return QueueOf(q).empty() || heads_[At(q)].iteration == most_; }

  /// Whether every op of the iteration started one same period after its twin of the one before.
  bool IsSteady(std::int32_t last) {
    const std::size_t count = plan_.commands.size();
    const auto& compute = QueueOf(0);
    const auto shift = [&](std::int32_t iteration, CommandIndex c) {
      return starts_[At(iteration) * count + At(c)] - starts_[At(iteration - 1) * count + At(c)];
    };
    const Nanoseconds period = shift(last, compute.front());
    for (const CommandIndex c : compute) {
      if (shift(last, c) != period || shift(last - 1, c) != period) return false;
    }
    return true;
  }

  bool IsReady(const Head& head, CommandIndex c) {
    for (const plan::Wait& wait : plan_.commands[At(c)].waits) {
      const std::int32_t iteration = head.iteration - wait.lag;
      // What the first iterations wait for lies before the beginning, and is over.
      if (iteration >= 0 && End(iteration, wait.command) > now_) return false;
    }
    return true;
  }

  void StartWhatCan() {
    for (int q = 0; q < kQueues; ++q) {
      Head& head = heads_[At(q)];
      if (head.running || Done(q)) continue;
      const CommandIndex c = QueueOf(q)[head.next];
      if (!IsReady(head, c)) continue;
      head.running = true;
      head.start_ns = now_;
      starts_[At(head.iteration) * plan_.commands.size() + At(c)] = now_;
      const Command& command = plan_.commands[At(c)];
      const plan::Machine& machine = plan_.machine;
      if (command.queue == Queue::kCompute) {
        head.fixed_end_ns = now_ + plan_.problem.ops[At(command.op)].duration_ns;
        head.bytes_left = 0;
      } else {
        const auto& residency = plan_.residencies[At(command.residency)];
        head.fixed_end_ns = now_ + (command.queue == Queue::kCopyOut ? machine.out_latency_ns
                                                                     : machine.in_latency_ns);
        head.bytes_left =
            static_cast<double>(plan_.problem.variables[At(residency.variable)].size_bytes);
      }
    }
  }

  bool Moving(int q) const {
    const Head& head = heads_[At(q)];
    return head.running && head.fixed_end_ns <= now_ && head.bytes_left > 0;
  }

  /// Bytes per nanosecond of a copy that is moving data.
  double Rate(int q) const {
    const plan::Machine& m = plan_.machine;
    if (q == 1) return (Moving(2) ? m.both_out_bytes_per_s : m.out_bytes_per_s) * 1e-9;
    return (Moving(1) ? m.both_in_bytes_per_s : m.in_bytes_per_s) * 1e-9;
  }

  /// The next moment at which anything ends or a copy's latency is over.
  Nanoseconds NextEvent() const {
    Nanoseconds next = kNever;
    for (int q = 0; q < kQueues; ++q) {
      const Head& head = heads_[At(q)];
      if (!head.running) continue;
      if (Moving(q)) {
        const double wait = std::ceil(head.bytes_left / Rate(q));
        next = std::min(next, now_ + std::max<Nanoseconds>(1, std::llround(wait)));
      } else {
        next = std::min(next, std::max(head.fixed_end_ns, now_));
      }
    }
    return next;
  }

  void Advance(Nanoseconds next) {
    std::array<double, kQueues> moved{};
    for (int q = 1; q < kQueues; ++q) {
      if (Moving(q)) moved[At(q)] = static_cast<double>(next - now_) * Rate(q);
    }
    now_ = next;
    for (int q = 0; q < kQueues; ++q) {
      Head& head = heads_[At(q)];
      if (!head.running) continue;
      head.bytes_left = std::max(0.0, head.bytes_left - moved[At(q)]);
      // Less than a byte is a rounding error of the rates.
      if (head.fixed_end_ns > now_ || head.bytes_left >= 1) continue;
      End(head.iteration, QueueOf(q)[head.next]) = now_;
      head.running = false;
      if (++head.next == QueueOf(q).size()) {
        head.next = 0;
        ++head.iteration;
      }
    }
  }

  void Summarise() {
    const std::size_t count = plan_.commands.size();
    timeline_.spans.resize(count);
    const auto& compute = QueueOf(0);
    if (compute.empty()) return;
    const std::int32_t last = heads_[0].iteration - 1;
    timeline_.iterations = last + 1;
    const Nanoseconds begin = starts_[At(last) * count + At(compute.front())];
    if (last == 0) {
      timeline_.iteration_ns = End(0, compute.back());
    } else {
      timeline_.iteration_ns = begin - starts_[At(last - 1) * count + At(compute.front())];
    }
    for (std::size_t c = 0; c < count; ++c) {
      // A copy of the last iteration may not have run yet: its twin tells.
      std::int32_t iteration = last;
      while (iteration > 0 && ends_[At(iteration) * count + c] == kNever) --iteration;
      const Nanoseconds back = (last - iteration) * timeline_.iteration_ns;
      if (ends_[At(iteration) * count + c] == kNever) continue;
      timeline_.spans[c] = {starts_[At(iteration) * count + c] + back - begin,
                            ends_[At(iteration) * count + c] + back - begin};
    }
  }

  const plan::Plan& plan_;
  const std::int32_t most_;
  std::array<Head, kQueues> heads_;
  std::vector<Nanoseconds> starts_;  // By iteration and command.
  std::vector<Nanoseconds> ends_;
  Nanoseconds now_ = 0;
  std::int32_t checked_ = -1;
  Timeline timeline_;
};

}  // namespace

Timeline Simulate(const plan::Plan& plan) { return Simulation(plan).Run(); }

}  // namespace plimsoll::sim

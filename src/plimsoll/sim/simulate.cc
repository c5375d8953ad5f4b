// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/sim/simulate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/engine.h"

namespace plimsoll::sim {
namespace {

using plan::Command;
using plan::CommandIndex;
using plan::kQueues;
using plan::Queue;

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr std::int32_t kLeastIterations = 2;
constexpr std::int32_t kMostIterations = 12;
constexpr std::size_t kMeanOf = 6;

/// The command at the head of a queue, running or waiting.
struct Head {
  std::size_t next = 0;  ///< Place in the queue.
  std::int32_t iteration = 0;
};

class Simulation {
 public:
  explicit Simulation(const plan::Plan& plan)
      : plan_(plan),
        most_(plan.problem.cyclic ? kMostIterations : 1),
        count_(plan.commands.size()),
        engine_(plan.machine) {}

  Timeline Run() {
    while (!Finished()) {
      for (int q = 0; q < kQueues; ++q) Start(q);
      if (!engine_.Advance()) {
        timeline_.deadlocked = true;
        return timeline_;
      }
      for (int q = 0; q < kQueues; ++q) {
        if (engine_.ended(static_cast<Queue>(q))) End(q);
      }
    }
    Summarise();
    return timeline_;
  }

 private:
  const std::vector<CommandIndex>& QueueOf(int q) const { return plan_.queues[At(q)]; }

  /// Whether all queues have done all iterations, or the last one repeats the one before.
  bool Finished() {
    const bool ops_ended = heads_[0].next == 0 && At(heads_[0].iteration) == ops_end_ns_.size() + 1;
    if (ops_ended) {
      ops_end_ns_.push_back(engine_.now_ns());
      const std::array<CopyState, 2> before = copies_;
      copies_ = {StateOf(Queue::kCopyOut), StateOf(Queue::kCopyIn)};
      // Waits that reach back beyond the first iteration are not felt in the next ones.
      if (heads_[0].iteration > kLeastIterations && copies_ == before) return steady_ = true;
    }
    return Done(0) && Done(1) && Done(2);
  }

  bool Done(int q) const { return QueueOf(q).empty() || heads_[At(q)].iteration == most_; }

  /// Where a queue of copies stands when the ops of an iteration have ended. All that happens from
  /// there on follows from it: if it is as it was an iteration ago, so is all the rest, for ever.
  struct CopyState {
    std::size_t next = 0;
    std::int32_t ahead = 0;  ///< Iterations before the ops, or behind if negative.
    std::optional<plan::Engine::Left> left;

    friend bool operator==(const CopyState&, const CopyState&) = default;
  };
  CopyState StateOf(Queue queue) const {
    const Head& head = heads_[static_cast<std::size_t>(queue)];
    return {head.next, head.iteration - heads_[0].iteration, engine_.left(queue)};
  }

  bool IsReady(const Head& head, CommandIndex c) const {
    for (const plan::Wait& wait : plan_.commands[At(c)].waits) {
      const std::int32_t iteration = head.iteration - wait.lag;
      // What the first iterations wait for lies before the beginning, and is over.
      if (iteration < 0) continue;
      const std::size_t twin = At(iteration) * count_ + At(wait.command);
      if (twin >= ends_.size() || ends_[twin] == kNever) return false;
    }
    return true;
  }

  bool WaitsForCopies(const Command& command) const {
    return std::any_of(command.waits.begin(), command.waits.end(), [&](const plan::Wait& wait) {
      return plan_.commands[At(wait.command)].queue != Queue::kCompute;
    });
  }

  void Start(int q) {
    Head& head = heads_[At(q)];
    const auto queue = static_cast<Queue>(q);
    if (engine_.busy(queue) || Done(q)) return;
    const CommandIndex c = QueueOf(q)[head.next];
    if (!IsReady(head, c)) return;
    if (At(head.iteration) * count_ >= starts_.size()) {
      starts_.resize(starts_.size() + count_, kNever);
      ends_.resize(ends_.size() + count_, kNever);
    }
    starts_[At(head.iteration) * count_ + At(c)] = engine_.now_ns();
    const Command& command = plan_.commands[At(c)];
    if (queue == Queue::kCompute) {
      const Nanoseconds handover = WaitsForCopies(command) ? plan_.machine.handover_ns : 0;
      engine_.StartOp(plan_.problem.ops[At(command.op)].duration_ns + handover);
    } else {
      const auto& residency = plan_.residencies[At(command.residency)];
      engine_.StartCopy(queue, plan_.problem.variables[At(residency.variable)].size_bytes);
    }
  }

  void End(int q) {
    Head& head = heads_[At(q)];
    ends_[At(head.iteration) * count_ + At(QueueOf(q)[head.next])] = engine_.now_ns();
    if (++head.next < QueueOf(q).size()) return;
    head.next = 0;
    ++head.iteration;
  }

  /// The time of the last iteration. If none was steady, the mean of some, of the queue that takes
  /// longest: the others have not come to wait for it yet, but will.
  Nanoseconds Period(std::int32_t last) const {
    if (last == 0) return ends_[At(QueueOf(0).back())];
    if (steady_) return ops_end_ns_[At(last)] - ops_end_ns_[At(last) - 1];
    Nanoseconds period = 0;
    for (int q = 0; q < kQueues; ++q) {
      if (QueueOf(q).empty()) continue;
      const std::size_t end = At(last) * count_ + At(QueueOf(q).back());
      const Nanoseconds passed = ends_[end] - ends_[end - kMeanOf * count_];
      period = std::max<Nanoseconds>(period, passed / Nanoseconds{kMeanOf});
    }
    return period;
  }

  void Summarise() {
    const std::size_t count = count_;
    timeline_.spans.resize(count);
    const auto& compute = QueueOf(0);
    if (compute.empty()) return;
    const std::int32_t last = heads_[0].iteration - 1;
    timeline_.iterations = last + 1;
    timeline_.iteration_ns = Period(last);
    const Nanoseconds begin = starts_[At(last) * count + At(compute.front())];
    for (std::size_t c = 0; c < count; ++c) {
      // A copy of the last iteration may not have run yet: its twin tells.
      std::int32_t iteration = last;
      while (iteration > 0 && (At(iteration) * count >= ends_.size() ||
                               ends_[At(iteration) * count + c] == kNever)) {
        --iteration;
      }
      const Nanoseconds back = (last - iteration) * timeline_.iteration_ns;
      if (ends_[At(iteration) * count + c] == kNever) continue;
      timeline_.spans[c] = {starts_[At(iteration) * count + c] + back - begin,
                            ends_[At(iteration) * count + c] + back - begin};
    }
  }

  const plan::Plan& plan_;
  const std::int32_t most_;
  const std::size_t count_;  // Commands.
  plan::Engine engine_;
  std::array<Head, kQueues> heads_;
  std::vector<Nanoseconds> starts_;  // By iteration and command, as far as it has come.
  std::vector<Nanoseconds> ends_;
  std::vector<Nanoseconds> ops_end_ns_;  // By iteration: when its last op ended.
  std::array<CopyState, 2> copies_;      // Then.
  bool steady_ = false;
  Timeline timeline_;
};

}  // namespace

Timeline Simulate(const plan::Plan& plan) { return Simulation(plan).Run(); }

}  // namespace plimsoll::sim

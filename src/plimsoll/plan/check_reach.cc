// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/check_reach.h"

#include <algorithm>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

/// Nothing of a queue is known to be over. Lags times lengths stay above it.
constexpr std::int64_t kNothing = -(std::int64_t{1} << 62);

std::size_t IndexOf(Queue queue) { return static_cast<std::size_t>(queue); }

}  // namespace

Reach::Reach(const Plan& plan)
    : plan_(plan), rank_(plan.commands.size()), order_(plan.commands.size(), -1) {
  for (const std::vector<CommandIndex>& queue : plan.queues) {
    for (std::size_t k = 0; k < queue.size(); ++k) {
      rank_[At(queue[k])] = static_cast<std::int64_t>(k);
    }
  }
  Sort();
  if (deadlock_) return;
  Clock initial;
  initial.fill(plan.problem.cyclic ? kNothing : -1);  // A barrier: all before is over.
  clocks_.assign(plan.commands.size(), initial);
  while (Pass()) {
  }
}

bool Reach::IsReady(CommandIndex command) const {
  const std::vector<Wait>& waits = plan_.commands[At(command)].waits;
  return std::all_of(waits.begin(), waits.end(), [&](const Wait& wait) {
    return wait.lag > 0 || order_[At(wait.command)] >= 0;
  });
}

/// Runs one iteration of the three queues, all that came before being over.
void Reach::Sort() {
  std::array<std::size_t, kQueues> heads{};
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t q = 0; q < heads.size(); ++q) {
      const std::vector<CommandIndex>& queue = plan_.queues[q];
      for (; heads[q] < queue.size() && IsReady(queue[heads[q]]); ++heads[q]) {
        order_[At(queue[heads[q]])] = static_cast<std::int64_t>(sorted_.size());
        sorted_.push_back(queue[heads[q]]);
        moved = true;
      }
    }
  }
  if (sorted_.size() < plan_.commands.size()) NameDeadlock(heads);
}

/// Every head waits for a command at or behind another head: following them ends in a cycle.
void Reach::NameDeadlock(const std::array<std::size_t, kQueues>& heads) {
  std::size_t q = 0;
  while (heads[q] == plan_.queues[q].size()) ++q;
  // After as many steps as there are queues, the walk is on the cycle.
  for (int step = 0; step <= kQueues; ++step) {
    const CommandIndex head = plan_.queues[q][heads[q]];
    const std::vector<Wait>& waits = plan_.commands[At(head)].waits;
    const auto blocking = std::find_if(waits.begin(), waits.end(), [&](const Wait& wait) {
      return wait.lag == 0 && order_[At(wait.command)] < 0;
    });
    deadlock_ = {head, blocking->command};
    q = IndexOf(plan_.commands[At(blocking->command)].queue);
  }
}

/// Takes over what is over when `earlier`, of `lag` iterations before, has ended.
bool Reach::Join(CommandIndex earlier, std::int64_t lag, Clock* clock) const {
  bool changed = false;
  const auto raise = [&](std::size_t q, std::int64_t number) {
    const std::int64_t shift = lag * static_cast<std::int64_t>(plan_.queues[q].size());
    if (number < kNothing + shift || number - shift <= (*clock)[q]) return;
    (*clock)[q] = number - shift;
    changed = true;
  };
  for (std::size_t q = 0; q < clock->size(); ++q) raise(q, clocks_[At(earlier)][q]);
  raise(IndexOf(plan_.commands[At(earlier)].queue), rank_[At(earlier)]);
  return changed;
}

bool Reach::Pass() {
  bool changed = false;
  for (const CommandIndex c : sorted_) {
    const Command& command = plan_.commands[At(c)];
    const std::vector<CommandIndex>& queue = plan_.queues[IndexOf(command.queue)];
    Clock clock = clocks_[At(c)];
    if (rank_[At(c)] > 0) {
      changed |= Join(queue[At(rank_[At(c)] - 1)], 0, &clock);
    } else {
      changed |= Join(queue.back(), 1, &clock);
    }
    for (const Wait& wait : command.waits) changed |= Join(wait.command, wait.lag, &clock);
    clocks_[At(c)] = clock;
  }
  return changed;
}

bool Reach::HasPath(Moment earlier, Moment later) const {
  const std::size_t q = IndexOf(plan_.commands[At(earlier.command)].queue);
  const auto length = static_cast<std::int64_t>(plan_.queues[q].size());
  const std::int64_t lag = later.iteration - earlier.iteration;
  return rank_[At(earlier.command)] - lag * length <= clocks_[At(later.command)][q];
}

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/plan/check_report.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Says which commands are over, whatever happens, before another one starts: whether a path of
/// queue order and wait edges leads from the one to the other over consecutive iterations.
///
/// What is over in one queue is always a prefix of it. So three numbers per command say it all, one
/// for each queue: how far that queue has come, at least, when the command starts. Commands of a
/// queue are numbered through all iterations, from the first one of the command's own iteration.
///
///     compute    ... -2  -1 │  0   1   2   3       clock of X, which is copy out 1:
///                           │      ╰─────╮           compute   1   by its edge
///     copy out   ... -2  -1 │  0 ──────▶ X           copy out  0   by its queue
///                           │  ▲                     copy in  -2   by the edge of copy out 0
///     copy in    ... -2  -1 │  │   0   1
///                     ╰────────╯
///
/// Clocks are the same in every iteration once there are enough iterations before it. They are
/// found by passing over one iteration, in an order that respects its edges, until nothing changes.
/// The best path to a command visits each queue once and each iteration boundary inside a queue
/// once, hence a handful of passes are enough, whatever the lags. Linear in commands and edges per
/// pass. (Vector clocks: Mattern, Virtual time and global states of distributed systems, 1989.)
///
/// A plan that is not cyclic is taken as one whose iterations are separated by barriers.
class Reach {
 public:
  /// REQUIRES: the plan is in shape.
  explicit Reach(const Plan& plan);

  /// Returns two commands that wait for each other for ever, if there are any; then nothing else
  /// may be asked. Lags are not negative, hence a cycle stays within one iteration.
  const std::optional<std::pair<CommandIndex, CommandIndex>>& deadlock() const { return deadlock_; }

  /// Whether `earlier` has always ended when `later` starts. O(1).
  bool HasPath(Moment earlier, Moment later) const;

  /// A number that grows along every path within an iteration.
  std::int64_t order(CommandIndex command) const {
    return order_[static_cast<std::size_t>(command)];
  }

 private:
  using Clock = std::array<std::int64_t, kQueues>;

  void Sort();
  bool IsReady(CommandIndex command) const;
  void NameDeadlock(const std::array<std::size_t, kQueues>& heads);
  bool Pass();
  bool Join(CommandIndex earlier, std::int64_t lag, Clock* clock) const;

  const Plan& plan_;
  std::vector<std::int64_t> rank_;    // By command: its place in its queue.
  std::vector<std::int64_t> order_;   // By command: its place in sorted_; -1 before it is there.
  std::vector<CommandIndex> sorted_;  // All commands, each after all that it waits for.
  std::vector<Clock> clocks_;         // By command.
  std::optional<std::pair<CommandIndex, CommandIndex>> deadlock_;
};

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

/// A plan is not a list of times. It is three queues of commands, wait edges between them, and an
/// address for every residency:
///
///     compute   ┌F0┐┌F1┐┌F2┐ ... ┌B2┐┌B1┐┌B0┐┌U┐ │ next iteration
///                  │ ╲                ▲
///     copy out     └─▶[x1 out]────╮   │
///                                 ▼   │
///     copy in                  [x1 in]┘
///
/// A command starts when the one before it in its queue and every command that it waits for have
/// ended. So a plan is safe at any speed: durations decide when things happen, never whether they
/// are right. The same plan serves every iteration; an edge may reach back into the one before.
namespace plimsoll::plan {

using CommandIndex = std::int32_t;
using ResidencyIndex = std::int32_t;

enum class Queue : std::uint8_t { kCompute, kCopyOut, kCopyIn };
inline constexpr int kQueues = 3;
std::string_view Name(Queue queue);

/// A stretch during which a variable is on the device, at one offset.
///
/// `begin` and `end` are positions of the iteration; end > begin, and an end beyond the period is
/// in the next iteration. The residency serves every op with begin <= position < end that touches
/// the variable, and its bytes belong to nobody else from the first to the last of its commands.
///
/// The residencies of a variable follow each other from its malloc to its free, or around the cycle
/// if it is persistent. What leaves and comes back is saved first; but a residency that a copy has
/// filled and that no op writes still equals the host copy that filled it. It may end with a
/// *drop*: nothing saves it, and the next one is filled from the same bytes of the host slab again.
///
///     device      ██W██████        ██R███         ██R███         ██R██W█████
///     copy out         └[out]          drop           drop              └[out]
///     copy in                   [in]┘         [in]┘          [in]┘
///     host slab         ├──────── one host copy ──────────────┤         ├─── the next one
///
/// So one copy out is followed by one or more copies in from the same host range, which is taken
/// from the start of the copy out to the end of the last of them. A ring of a persistent variable
/// that is ever away has at least one copy out in it.
struct Residency {
  VariableIndex variable = 0;
  Position begin = 0;
  Position end = 0;
  Bytes offset = 0;
  CommandIndex copy_in = -1;   ///< The command that fills it; -1 if it begins with a malloc, or if
                               ///< the variable is persistent and never leaves.
  CommandIndex copy_out = -1;  ///< The command that saves it; -1 if it ends with a free or a drop.

  friend bool operator==(const Residency&, const Residency&) = default;
};

/// An edge: the waiting command starts only after this one, of `lag` iterations earlier, has ended.
struct Wait {
  CommandIndex command = 0;
  std::int32_t lag = 0;

  friend bool operator==(const Wait&, const Wait&) = default;
};

struct Command {
  Queue queue = Queue::kCompute;
  OpIndex op = -1;                ///< What a compute command runs.
  ResidencyIndex residency = -1;  ///< What a copy reads or fills.
  Bytes host_offset = 0;          ///< Where in the host slab a copy writes or reads.
  std::vector<Wait> waits;

  friend bool operator==(const Command&, const Command&) = default;
};

/// How the problem of a plan came about if ops run again in it. A replay stands in the problem as
/// an op of its own, and what it rebuilds is a variable of its own:
///
///     recorded   malloc v, F0 writes v, ................................., B0 reads v, free v
///     planned    malloc v, F0 writes v, free v, ..., malloc v', F0 again writes v', B0 reads v',
///     ...
///
/// so that scheduling, placement and simulation need not know of replays.
struct Rewriting {
  Problem original;  ///< As recorded, with at most one live instance of every variable.
  std::vector<OpIndex> op_source;              ///< Per op: the op of the original that it runs.
  std::vector<std::uint8_t> is_replay;         ///< Per op: whether it runs again.
  std::vector<VariableIndex> variable_source;  ///< Per variable: whose contents it holds.

  friend bool operator==(const Rewriting&, const Rewriting&) = default;
};

struct Plan {
  std::string planner;
  Problem problem;                       ///< What is planned; every variable has at most one live
                                         ///< instance in it (Unroll()).
  std::optional<Rewriting> rewriting{};  ///< If ops run again in it.
  std::uint64_t signature = 0;           ///< Of the recorded problem before Unroll(): Signature().
  Machine machine;
  Bytes limit_bytes = 0;       ///< No residency reaches above it.
  Bytes host_limit_bytes = 0;  ///< Nor any copy in the host slab above this.
  std::vector<Command> commands;
  std::array<std::vector<CommandIndex>, kQueues> queues;  ///< In the order of execution.
  std::vector<Residency> residencies;
  Bytes footprint_bytes = 0;  ///< The highest top of a residency.
  Bytes host_bytes = 0;       ///< The highest top in the host slab.

  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace plimsoll::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
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
struct Residency {
  VariableIndex variable = 0;
  Position begin = 0;
  Position end = 0;
  Bytes offset = 0;
  CommandIndex copy_in = -1;   ///< The command that fills it; -1 if it begins with a malloc, or if
                               ///< the variable is persistent and never leaves.
  CommandIndex copy_out = -1;  ///< The command that saves it; -1 if it ends with a free.

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

struct Plan {
  std::string planner;
  Problem problem;              ///< What is planned; every variable has at most one live
                                ///< instance in it (Unroll()).
  std::int32_t iterations = 1;  ///< Of the program, in one iteration of the problem.
  std::uint64_t signature = 0;  ///< Of the problem before Unroll(): Signature().
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/exec/device.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::exec {

/// What a program is expected to call at a position of its iteration.
struct Step {
  trace::EventKind kind = trace::EventKind::kMalloc;
  plan::VariableIndex variable = 0;  ///< Of a malloc or a free.
  plan::OpIndex op = 0;              ///< Of an exec.
  std::string name;                  ///< Of an exec: as the program calls it.
  std::int32_t write_count = 0;      ///< Of an exec: what the program names. The problem may know
                                     ///< of more, state that is updated on the side.
};

/// The calls of one iteration, in order, in terms of the problem that was cut from it.
struct Steps {
  plan::Problem problem;                  ///< Every variable has one live instance.
  std::vector<Step> steps;                ///< One for each position.
  std::vector<trace::EventIndex> births;  ///< By variable: the position of its malloc; -1 if it is
                                          ///< persistent.
};

/// Cuts an iteration out of a trace that repeats itself, as long as it takes for every variable to
/// have one live instance at most. Variables' ids are the trace's. Nothing if the lives of its
/// variables do not add up to a cycle yet.
/// `plain_names` are the program's own names of the trace's op names; empty if they are the same.
std::optional<Steps> CutSteps(const trace::Trace& trace, const trace::Period& period,
                              const std::vector<std::string>& plain_names = {});

/// Follows a program through the steps, and knows which of its blocks is which variable. A call
/// that does not match changes nothing.
class Follower {
 public:
  /// At position 0, where exactly the persistent variables are live, each in the block of its id.
  explicit Follower(const Steps* steps);
  /// At a position. `blocks` says by variable which block it is, kNoBlock if it is not live.
  Follower(const Steps* steps, plan::Position position, std::vector<Block> blocks);

  [[nodiscard]] bool Malloc(Bytes size_bytes, Block block);
  [[nodiscard]] bool Free(Block block);
  /// Whether the op at hand is this one; `op()` is its number, and Pass() goes on.
  [[nodiscard]] bool Expects(const OpInfo& info, std::span<const Block> reads,
                             std::span<const Block> writes) const;
  void Pass();

  plan::OpIndex op() const;
  plan::Position position() const { return position_; }
  bool at_beginning() const { return position_ == 0; }
  /// By variable of the problem: its block, kNoBlock if it is not live.
  const std::vector<Block>& blocks() const { return blocks_; }
  /// The same, also of those that were freed since.
  const std::vector<Block>& latest_blocks() const { return latest_blocks_; }
  const Steps& steps() const { return *steps_; }

 private:
  const Step* Next(trace::EventKind kind) const;
  bool AreOperands(std::span<const plan::Operand> operands, std::span<const Block> blocks) const;

  const Steps* steps_;
  plan::Position position_ = 0;
  std::vector<Block> blocks_;
  std::vector<Block> latest_blocks_;
};

}  // namespace plimsoll::exec

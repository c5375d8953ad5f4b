// SPDX-License-Identifier: Apache-2.0
//
// Small networks built by hand, layer by layer. For tests only.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "plimsoll/plan/problem.h"
#include "plimsoll/planners/planner.h"

namespace plimsoll::planners {

/// Appends ops that may run again. Variables live from right before the op that makes them to right
/// behind the last that uses them; variable 0 is the input, which is always there.
class Network {
 public:
  explicit Network(Bytes input_bytes = 1) {
    problem_.variables.push_back(
        {.size_bytes = input_bytes, .kind = plan::VariableKind::kPersistent});
  }

  /// Returns what the op makes.
  plan::VariableIndex Forward(const std::string& name, Nanoseconds ns,
                              std::vector<plan::VariableIndex> reads, Bytes size_bytes) {
    return AddOp(name, trace::Phase::kForward, ns, std::move(reads), size_bytes);
  }
  plan::VariableIndex Backward(Nanoseconds ns, std::vector<plan::VariableIndex> reads,
                               Bytes size_bytes) {
    return AddOp("backward", trace::Phase::kBackward, ns, std::move(reads), size_bytes);
  }

  /// An op that changes a variable in place.
  void Change(const std::string& name, Nanoseconds ns, plan::VariableIndex v) {
    AddOp(name, trace::Phase::kForward, ns, {v}, 0, v);
  }

  plan::Op& last_op() { return problem_.ops.back(); }

  plan::Problem Finish() {
    problem_.period = next_position_;
    problem_.variables[0].end = problem_.period;
    return problem_;
  }

 private:
  plan::VariableIndex AddOp(const std::string& name, trace::Phase phase, Nanoseconds ns,
                            std::vector<plan::VariableIndex> reads, Bytes size_bytes,
                            plan::VariableIndex written = -1) {
    if (written < 0) {
      written = static_cast<plan::VariableIndex>(problem_.variables.size());
      problem_.variables.push_back(
          {.id = written, .size_bytes = size_bytes, .begin = next_position_++});
    }
    const plan::Position position = next_position_++;
    ++next_position_;  // For frees.
    plan::Op op;
    op.name = NameOf(name);
    op.phase = phase;
    op.duration_ns = ns;
    op.position = position;
    op.first_operand = static_cast<std::int64_t>(problem_.operands.size());
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = 1;
    op.traits.replayable = true;
    reads.push_back(written);
    for (const plan::VariableIndex v : reads) {
      problem_.operands.push_back({v, 0});
      if (v != 0) problem_.variables[static_cast<std::size_t>(v)].end = position + 1;
    }
    problem_.ops.push_back(op);
    return written;
  }

  std::int32_t NameOf(const std::string& name) {
    auto& names = problem_.op_names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
    names.push_back(name);
    return static_cast<std::int32_t>(names.size()) - 1;
  }

  plan::Problem problem_;
  plan::Position next_position_ = 0;
};

/// So many layers of one size, each of which backward needs again, in reverse:
///
///     input ─▶ a1 ─▶ a2 ─▶ … ─▶ an
///                ╲     ╲          ╲
///         g1 ◀─ g2 ◀─ g3 ◀─ … ◀─ gn
inline plan::Problem ChainNetwork(int layers, Bytes size_bytes) {
  Network network;
  std::vector<plan::VariableIndex> maps = {0};
  for (int k = 0; k < layers; ++k) {
    maps.push_back(network.Forward("relu", 100, {maps.back()}, size_bytes));
  }
  plan::VariableIndex gradient = 0;
  for (int k = layers; k > 0; --k) {
    gradient = network.Backward(200, {maps[static_cast<std::size_t>(k)], gradient}, size_bytes);
  }
  return network.Finish();
}

}  // namespace plimsoll::planners

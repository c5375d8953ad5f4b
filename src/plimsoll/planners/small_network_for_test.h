// SPDX-License-Identifier: Apache-2.0
//
// Networks of a few ops, small enough for all that can be done with them to be tried. For tests
// only.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/random_plan_for_test.h"

namespace plimsoll::planners {

/// A forward chain, with residual reads and changes in place, and a backward op for each of its
/// ops, which reads in reverse what that made, or what it read, or both. So some of what was made
/// is dead when its readers may have to run again:
///
///     F0 ─▶ a ─▶ F1 ─▶ b ─▶ F2 changes b ─▶ F3 ─▶ c
///           ╰───────────────────────────────▶╯
///     B0 ◀─ a ◀─ B1 ◀─ b ◀─ B2 ◀────── b ◀─ B3 ◀─ c
///
/// With weights, some layers have a persistent variable that both of their ops read.
class SmallNetwork {
 public:
  explicit SmallNetwork(plan::PlanRandom* random) : random_(*random) {}

  plan::Problem Make(bool with_weights) {
    const std::int64_t layers = random_.Between(2, 4);
    for (std::int64_t k = 0; k < layers; ++k) {
      weights_.push_back(with_weights && random_.OneIn(2) ? New(true) : -1);
    }
    for (std::size_t k = 0; k < weights_.size(); ++k) AddForward(k);
    for (std::size_t k = weights_.size(); k-- > 0;) AddBackward(k);
    Place();
    return std::move(problem_);
  }

 private:
  using Names = std::vector<plan::VariableIndex>;

  plan::VariableIndex New(bool persistent = false) {
    plan::Variable variable;
    variable.id = static_cast<std::int64_t>(problem_.variables.size());
    variable.size_bytes = 1000 * random_.Between(1, 8);
    if (persistent) variable.kind = plan::VariableKind::kPersistent;
    problem_.variables.push_back(variable);
    return static_cast<plan::VariableIndex>(variable.id);
  }

  void Add(Names reads, const Names& writes, std::size_t layer) {
    if (weights_[layer] >= 0) reads.push_back(weights_[layer]);
    plan::Op op;
    op.duration_ns = random_.Between(0, 80) * random_.Between(1, 100);
    op.first_operand = static_cast<std::int64_t>(problem_.operands.size());
    op.read_count = static_cast<std::int32_t>(reads.size());
    op.write_count = static_cast<std::int32_t>(writes.size());
    op.traits.replayable = !random_.OneIn(8);
    for (const plan::VariableIndex v : reads) problem_.operands.push_back({v, 0});
    for (const plan::VariableIndex v : writes) problem_.operands.push_back({v, 0});
    problem_.ops.push_back(op);
  }

  void AddForward(std::size_t layer) {
    Names reads;
    if (layer > 0) reads.push_back(maps_.back());
    read_.push_back(layer > 0 ? maps_.back() : -1);
    if (layer > 0 && random_.OneIn(5)) {  // In place.
      maps_.push_back(maps_.back());
      Add(reads, reads, layer);
      return;
    }
    if (layer > 1 && random_.OneIn(3)) {
      const plan::VariableIndex residual = maps_[random_.Index(layer - 1)];
      if (residual != reads.front()) reads.push_back(residual);
    }
    maps_.push_back(New());
    Add(reads, {maps_.back()}, layer);
  }

  void AddBackward(std::size_t layer) {
    const bool has_input = read_[layer] >= 0 && read_[layer] != maps_[layer];
    const bool reads_input = has_input && random_.OneIn(3);
    Names reads;
    if (!reads_input || random_.OneIn(2)) reads.push_back(maps_[layer]);
    if (reads_input) reads.push_back(read_[layer]);
    if (gradient_ >= 0) reads.push_back(gradient_);
    gradient_ = New();
    Add(reads, {gradient_}, layer);
    problem_.ops.back().phase = trace::Phase::kBackward;
  }

  /// Mallocs right before the first op that touches a variable, frees right behind the last.
  void Place() {
    problem_.op_names = {"op"};
    const std::vector<std::vector<plan::Access>> accesses = plan::ListAccesses(problem_);
    plan::Position position = 0;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const auto op = static_cast<plan::OpIndex>(i);
      for (std::size_t v = 0; v < accesses.size(); ++v) {
        if (IsOwn(v) && accesses[v].front().op == op) problem_.variables[v].begin = position++;
      }
      problem_.ops[i].position = position++;
      for (std::size_t v = 0; v < accesses.size(); ++v) {
        if (IsOwn(v) && accesses[v].back().op == op) problem_.variables[v].end = position++;
      }
    }
    problem_.period = position;
    for (plan::Variable& variable : problem_.variables) {
      if (variable.persistent()) variable.end = position;
    }
  }
  bool IsOwn(std::size_t v) const { return !problem_.variables[v].persistent(); }

  plan::PlanRandom& random_;
  plan::Problem problem_;
  Names weights_;  // By layer; -1: none.
  Names maps_;     // By layer: what its op writes.
  Names read_;     // By layer: what its op reads of the chain; -1: nothing.
  plan::VariableIndex gradient_ = -1;
};

/// A link whose copies of thousands of bytes take whole nanoseconds, in both directions at a time
/// as well as in one.
inline plan::Machine SmallMachine(plan::PlanRandom* random) {
  const auto rate = [random] { return 1e12 / static_cast<double>(random->Between(100, 3000)); };
  plan::Machine machine;
  machine.out_bytes_per_s = machine.both_out_bytes_per_s = rate();
  machine.in_bytes_per_s = machine.both_in_bytes_per_s = rate();
  return machine;
}

}  // namespace plimsoll::planners

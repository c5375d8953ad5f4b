// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/problem.h"

/// What the contents of an iteration are made of: what the recompute baselines reason with. Like
/// plan::Rewriter, whose last word it is whether something can be rebuilt, but for questions about
/// one content at a time.
namespace plimsoll::planners {

/// A variable after so many writes since its malloc.
struct Content {
  plan::VariableIndex variable = 0;
  std::int32_t version = 0;
};

class Lineage {
 public:
  /// Keeps a reference. REQUIRES: every variable has one instance.
  explicit Lineage(const plan::Problem& problem);

  /// What a variable holds once an op has run.
  Content After(plan::VariableIndex v, plan::OpIndex op) const;

  /// The ops that write a variable, in order; the k-th one makes version k + 1.
  std::span<const plan::OpIndex> writers(plan::VariableIndex v) const { return writers_[At(v)]; }

  /// What an op finds in what it reads; not the state that it updates on the side.
  std::span<const Content> inputs(plan::OpIndex op) const { return inputs_[At(op)]; }

  /// Whether recorded ops leave the content where it is up to (and before) this op.
  bool IsThere(Content content, plan::OpIndex at) const { return at <= there_until_[Key(content)]; }

  /// Whether the content can be made again right before this op, to any depth, if whatever cannot
  /// be made again is kept for as long as the program does.
  bool CanRebuild(Content content, plan::OpIndex at) const {
    return at <= rebuilt_until_[Key(content)];
  }

  /// Time of all ops that must run again to make it, if only what is `held` need not be. Each op
  /// counts once. Takes time in the number of these ops.
  Nanoseconds RebuildNs(Content content, const std::function<bool(Content)>& held) const;

 private:
  std::size_t Key(Content c) const { return first_[At(c.variable)] + At(c.version); }
  bool IsInside(plan::VariableIndex v) const;
  void ListUses();
  void FindWhatIsThere();
  void FindWhatCanBeRebuilt();
  plan::OpIndex ReplayUntil(plan::OpIndex op, plan::VariableIndex target) const;

  const plan::Problem& problem_;
  std::vector<std::vector<plan::OpIndex>> writers_;  // Per variable.
  std::vector<std::vector<Content>> inputs_;         // Per op.
  std::vector<bool> replayable_;                     // Per op.
  std::vector<std::size_t> first_;                   // Per variable: the key of its version 0.
  std::vector<plan::OpIndex> there_until_;    // Per key: the last op that finds it; -1: none.
  std::vector<plan::OpIndex> rebuilt_until_;  // Likewise, if it is not there.
};

}  // namespace plimsoll::planners

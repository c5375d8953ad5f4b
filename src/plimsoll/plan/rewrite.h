// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plimsoll/plan/gaps.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/plan/rewrite_model.h"

namespace plimsoll::plan {

/// A problem with replays, and what they cost.
struct Rewritten {
  Problem problem;
  std::vector<OpIndex> op_source;
  std::vector<std::uint8_t> is_replay;
  std::vector<VariableIndex> variable_source;
  Nanoseconds replay_ns = 0;
  Bytes rebuilt_bytes = 0;  ///< Of what recorded ops find again; not of what is rebuilt on the way.
  /// Per dropped gap: the time of all replays that its variable's return took, with those on the
  /// way, if it was the first to need them.
  std::vector<Nanoseconds> gap_replay_ns;
};

struct RewriteOptions {
  /// With more replays than this, there is no rewriting.
  std::int64_t most_replays = 0;
  /// What is rebuilt on the way stays if the next recorded op to use it is at most so many ops
  /// ahead; else it is rebuilt once more.
  OpIndex horizon = std::numeric_limits<OpIndex>::max();
  /// Per variable: whether it stays beyond its free up to the last replay that reads it, if any
  /// does. Empty: none does.
  std::vector<bool> lingers{};
};

/// Rewrites a problem so that the variables of some gaps are dropped and rebuilt.
///
/// A variable is dropped behind the access before the gap. When a recorded op needs it back, the
/// ops that wrote it are run again, in order, from its malloc on: batch norm, addition and ReLU if
/// all three wrote it. What they read is found where it still is, in the version that it had then,
/// or rebuilt in the same way, to any depth. Whatever is rebuilt on the way and is soon needed
/// again by a recorded op stays; so a whole stretch of layers is rebuilt once. The rest goes as
/// soon as its last reader has run.
///
/// Never dropped are variables that live around the end of the iteration, and those that were
/// written by an op that must not run again.
class Rewriter {
 public:
  /// Gaps as by ListGapsAndMoments(problem, least_bytes). Keeps a reference to the problem.
  /// REQUIRES: every variable has one instance; its malloc comes before the first op that touches
  /// it, at a lower position, and its free behind the last.
  Rewriter(const Problem& problem, Bytes least_bytes);

  const RewriteModel& model() const { return model_; }
  const Problem& problem() const { return model_.problem; }
  const std::vector<Gap>& gaps() const { return model_.gaps; }

  /// Whether a gap's variable could be rebuilt if everything else were there.
  bool CanDrop(std::size_t gap) const;

  /// Rewrites; `dropped` says which gaps, one entry for each. Nothing if something that is dropped
  /// cannot be rebuilt when it is needed, or not within the options.
  std::optional<Rewritten> Rewrite(const std::vector<bool>& dropped,
                                   const RewriteOptions& options) const;
  static constexpr OpIndex kFar = std::numeric_limits<OpIndex>::max();

 private:
  const RewriteModel model_;
};

/// What a plan of the rewritten problem says about its origin.
Rewriting ToRewriting(const Problem& original, const Rewritten& rewritten);

}  // namespace plimsoll::plan

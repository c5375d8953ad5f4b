// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"

namespace plimsoll::exec {

/// Finds out whether iterations are faster as graphs or op by op: some of each, one after the
/// other, timed from their beginning to their end; the medians count. To issue an iteration op by
/// op keeps the processor busy, and whatever else that does makes some of them longer: so it must
/// be faster by more than a little.
///
///     iteration   0 1 2 3 4 5 | 6 7 8 9 10 11 12 13 | 14 ...
///                   op by op  |       graphs        | whatever was faster
///
/// The first of each kind are left out: caches are cold, graphs are being made. So are iterations
/// that do not come to their end; where hardly any do, the trial ends with what it knows.
class GraphTrial {
 public:
  /// Without a trial, graphs are wanted.
  explicit GraphTrial(bool tries = false) : phase_(tries ? Phase::kOpByOp : Phase::kOver) {}

  /// Nothing is under way.
  void BeginIteration() {
    if (phase_ == Phase::kOver) return;
    if (Times(phase_).size() == kTimed && phase_ == Phase::kOpByOp) {
      phase_ = Phase::kGraphs;
      skipped_ = kGraphsSkipped;
    } else if (Times(phase_).size() == kTimed || tried_ == kMost) {
      Decide();
    }
    ++tried_;
    begun_ = watch_.seconds();
  }
  /// Nothing is under way any more.
  void EndIteration() {
    if (phase_ == Phase::kOver) return;
    if (skipped_ > 0) {
      --skipped_;
    } else {
      Times(phase_).push_back(watch_.seconds() - begun_);
    }
  }
  /// Graphs must be made anew.
  void ForgetGraphs() {
    if (phase_ == Phase::kGraphs) skipped_ = kGraphsSkipped;
  }
  bool wants_graphs() const { return wants_graphs_ || phase_ == Phase::kGraphs; }
  /// Whether the present iteration is served in the way that all later ones are.
  bool is_over() const { return phase_ == Phase::kOver; }

 private:
  enum class Phase : std::size_t { kOpByOp, kGraphs, kOver };

  static constexpr int kOpByOpSkipped = 1;
  static constexpr int kGraphsSkipped = 3;
  static constexpr std::size_t kTimed = 5;  // Of each kind.
  static constexpr int kMost = 40;          // Iterations, whatever is left out.
  static constexpr double kFaster = 1.005;

  std::vector<double>& Times(Phase phase) { return times_[static_cast<std::size_t>(phase)]; }

  /// What was never timed in graphs goes on op by op.
  void Decide() {
    wants_graphs_ = !Times(Phase::kGraphs).empty() &&
                    Median(Phase::kGraphs) <= kFaster * Median(Phase::kOpByOp);
    phase_ = Phase::kOver;
  }

  /// REQUIRES: there are times.
  double Median(Phase phase) {
    std::vector<double>& times = Times(phase);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  Phase phase_;
  bool wants_graphs_ = phase_ == Phase::kOver;
  int skipped_ = kOpByOpSkipped;  // Iterations still to be left out.
  int tried_ = 0;
  double begun_ = 0;
  std::array<std::vector<double>, 2> times_;  // Op by op, and in graphs.
  Stopwatch watch_;
};

}  // namespace plimsoll::exec

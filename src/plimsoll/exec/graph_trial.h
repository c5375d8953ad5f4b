// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"

namespace plimsoll::exec {

/// Finds out whether iterations are faster as graphs or op by op: some of each, one after the
/// other, timed from beginning to beginning; the medians count. To issue an iteration op by op
/// keeps the processor busy, and whatever else that does makes some of them longer: so it must be
/// faster by more than a little.
///
///     iteration   0 1 2 3 4 5 | 6 7 8 9 10 11 12 13 | 14 ...
///                   op by op  |       graphs        | whatever was faster
///
/// The first of each kind are left out: caches are cold, graphs are being made.
class GraphTrial {
 public:
  /// Without a trial, graphs are wanted.
  explicit GraphTrial(bool tries = false) : tries_(tries) {}

  void BeginIteration() {
    if (!tries_ || number_ > kEnd) return;
    const double now = watch_.seconds();
    const double took = now - begun_;
    begun_ = now;
    // What has just ended; nothing, if something else came in between.
    const int ended = std::exchange(interrupted_, false) ? -1 : number_ - 1;
    if (ended >= kSkipped && ended < kGraphs) Note(0, took);
    if (ended >= kGraphs + kSkippedGraphs && ended < kEnd) Note(1, took);
    wants_graphs_ = number_ < kEnd ? number_ >= kGraphs : Median(1) <= kFaster * Median(0);
    ++number_;
  }
  /// The program did something else meanwhile.
  void Interrupt() { interrupted_ = true; }
  bool wants_graphs() const { return !tries_ || wants_graphs_; }
  bool is_over() const { return !tries_ || number_ > kEnd; }

 private:
  static constexpr int kSkipped = 1;
  static constexpr int kGraphs = 6;  // The first iteration in graphs.
  static constexpr int kSkippedGraphs = 3;
  static constexpr int kEnd = 14;
  static constexpr double kFaster = 1.005;

  void Note(std::size_t kind, double seconds) { took_[kind].push_back(seconds); }

  /// Endless if there is none.
  double Median(std::size_t kind) {
    std::vector<double>& took = took_[kind];
    if (took.empty()) return std::numeric_limits<double>::infinity();
    const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    return *middle;
  }

  bool tries_;
  bool wants_graphs_ = false;
  bool interrupted_ = true;
  int number_ = 0;
  double begun_ = 0;
  std::array<std::vector<double>, 2> took_;  // Op by op, and in graphs.
  Stopwatch watch_;
};

}  // namespace plimsoll::exec

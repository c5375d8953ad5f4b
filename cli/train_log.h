// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plimsoll/exec/device.h"
#include "plimsoll/exec/pattern.h"

namespace plimsoll::cli {

/// Returns the middle one of some values; 0 of none.
double Median(std::vector<double> values);

/// What happened in a step.
struct StepRecord {
  double loss = 0;
  double ms = 0;
  exec::Service service = exec::Service::kUnlimited;  ///< When it ended.
  bool settled = true;  ///< Whether planned steps to come are served as this one was.

  void NoteService(const exec::DeviceStats& stats) {
    service = stats.service;
    settled = stats.settled;
  }
};

/// The steps of a run, and what their times say of a plan.
class TrainLog {
 public:
  static constexpr std::size_t kAllSteps = std::numeric_limits<std::size_t>::max();

  void Add(const StepRecord& step) { steps_.push_back(step); }
  const std::vector<StepRecord>& steps() const { return steps_; }
  std::int64_t size() const { return std::ssize(steps_); }

  /// How many a plan served, as it did the step before.
  std::int64_t CountPlanned() const;

  /// Of those among the last so many that a plan served, as it did the step before. Those in which
  /// graphs are tried are left out, where there are others.
  std::vector<double> PlannedMs(std::size_t most = kAllSteps) const;
  /// The median of them, or, if there are none, of all.
  double TypicalMs() const;
  /// Of planned steps over the sum of the ops' times as they were recorded; nothing if `served`,
  /// the iteration that has a plan, is null.
  std::optional<double> MeasuredOverhead(const exec::Pattern* served,
                                         std::size_t most = kAllSteps) const;

 private:
  bool IsPlanned(std::size_t step) const;

  std::vector<StepRecord> steps_;
};

/// The same as its plan predicts it.
std::optional<double> PredictedOverhead(const exec::Pattern* served);

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/train_log.h"

#include <algorithm>

#include "cli/train_steps.h"

namespace plimsoll::cli {

std::vector<double> TrainLog::PlannedMs(std::size_t most) const {
  std::vector<double> times;
  for (std::size_t k = std::max<std::size_t>(1, steps_.size() - std::min(most, steps_.size()));
       k < steps_.size(); ++k) {
    const bool planned = steps_[k].service == exec::Service::kPlanned &&
                         steps_[k - 1].service == exec::Service::kPlanned;
    if (planned) times.push_back(steps_[k].ms);
  }
  return times;
}

double TrainLog::TypicalMs() const {
  std::vector<double> times = PlannedMs();
  if (times.empty()) {
    for (const StepRecord& step : steps_) times.push_back(step.ms);
  }
  return Median(std::move(times));
}

std::optional<double> TrainLog::MeasuredOverhead(const exec::Pattern* served,
                                                 std::size_t most) const {
  const std::vector<double> times = PlannedMs(most);
  if (served == nullptr || times.empty()) return std::nullopt;
  const plan::Problem& recorded = served->steps().problem;
  const double unlimited_ms = static_cast<double>(recorded.iteration_ns()) / 1e6 / recorded.laps;
  return Median(times) / unlimited_ms - 1;
}

std::optional<double> PredictedOverhead(const exec::Pattern* served) {
  if (served == nullptr) return std::nullopt;
  const plan::Problem& recorded = served->steps().problem;
  return static_cast<double>(served->predicted().iteration_ns) /
             static_cast<double>(recorded.iteration_ns()) -
         1;
}

}  // namespace plimsoll::cli

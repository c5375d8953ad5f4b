// SPDX-License-Identifier: Apache-2.0
#include "cli/train_log.h"

#include <algorithm>

namespace plimsoll::cli {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

bool TrainLog::IsPlanned(std::size_t step) const {
  return step > 0 && steps_[step].service == exec::Service::kPlanned &&
         steps_[step - 1].service == exec::Service::kPlanned;
}

std::int64_t TrainLog::CountPlanned() const {
  std::int64_t count = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) count += IsPlanned(k) ? 1 : 0;
  return count;
}

std::vector<double> TrainLog::PlannedMs(std::size_t most) const {
  std::vector<double> settled;
  std::vector<double> tried;
  for (std::size_t k = steps_.size() - std::min(most, steps_.size()); k < steps_.size(); ++k) {
    if (IsPlanned(k)) (steps_[k].settled ? settled : tried).push_back(steps_[k].ms);
  }
  return settled.empty() ? tried : settled;
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

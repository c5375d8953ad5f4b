// SPDX-License-Identifier: Apache-2.0
#include "swapping/reductions.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "plimsoll/plan/schedule.h"

namespace plimsoll::swapping {
namespace {

void Standardise(planners::ScoredGaps* scored) {
  const auto count = static_cast<double>(scored->scores.size());
  for (std::size_t s = 0; s < planners::kScores; ++s) {
    double sum = 0;
    double square = 0;
    for (const auto& row : scored->scores) sum += row[s];
    for (const auto& row : scored->scores) square += std::pow(row[s] - sum / count, 2);
    const double deviation = std::sqrt(square / count);
    for (auto& row : scored->scores) {
      row[s] = deviation > 0 ? (row[s] - sum / count) / deviation : 0;
    }
  }
}

}  // namespace

LoadSwapper::LoadSwapper(const Workload& workload, const plan::Machine& machine)
    : workload_(workload),
      machine_(machine),
      question_{workload.problem, machine, options_},
      scored_(planners::ScoreCandidates(question_)) {
  Standardise(&scored_);
  for (std::size_t s = 0; s < planners::kScores; ++s) {
    Weights alone{};
    alone[s] = 1;
    mixes_.push_back(alone);
  }
  std::mt19937_64 random(1);
  for (int k = 0; k < kMixes; ++k) {
    Weights& mix = mixes_.emplace_back();
    for (double& weight : mix) weight = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  }
}

std::optional<double> LoadSwapper::Overhead(planners::Score score, Bytes limit_bytes) const {
  return Overhead(mixes_[static_cast<std::size_t>(score)], limit_bytes);
}

std::optional<double> LoadSwapper::BestOverhead(Bytes limit_bytes) const {
  std::optional<double> best;
  for (const Weights& weights : mixes_) {
    const std::optional<double> overhead = Overhead(weights, limit_bytes);
    if (overhead && (!best || *overhead < *best)) best = overhead;
    if (best && *best <= 0) break;
  }
  return best;
}

Bytes LoadSwapper::SmallestLimit() const {
  Bytes smallest = workload_.peak_bytes;
  for (int percent = 99; percent > 0; --percent) {
    const Bytes limit = PercentOf(workload_.peak_bytes, percent);
    const std::optional<double> overhead = BestOverhead(limit);
    if (!overhead) break;  // Nor can it be held within less.
    if (*overhead <= 0) smallest = limit;
  }
  return smallest;
}

std::optional<double> LoadSwapper::Overhead(const Weights& weights, Bytes limit_bytes) const {
  std::vector<double> scores;
  for (const auto& row : scored_.scores) {
    double score = 0;
    for (std::size_t s = 0; s < planners::kScores; ++s) score += weights[s] * row[s];
    scores.push_back(score);
  }
  plan::ScheduleOptions schedule;
  schedule.limit_bytes = limit_bytes;
  schedule.alignment = 1;
  const auto predicted = plan::PredictIteration(
      workload_.problem, planners::Choose(question_, scored_.gaps, scores, limit_bytes), machine_,
      schedule);
  if (!predicted) return std::nullopt;
  return static_cast<double>(*predicted) / static_cast<double>(workload_.problem.iteration_ns()) -
         1;
}

}  // namespace plimsoll::swapping

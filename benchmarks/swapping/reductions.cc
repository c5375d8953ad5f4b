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
    mixes_.push_back({alone, 1});
  }
  std::mt19937_64 random(1);
  for (int k = 0; k < kMixes; ++k) {
    Mix& mix = mixes_.emplace_back();
    for (double& weight : mix.weights) weight = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    mix.chosen_for = std::lerp(0.6, 1, static_cast<double>(random() >> 11) * 0x1p-53);
  }
}

std::optional<double> LoadSwapper::Overhead(planners::Score score, Bytes limit_bytes) const {
  return Overhead(mixes_[static_cast<std::size_t>(score)], limit_bytes);
}

std::optional<double> LoadSwapper::BestOverhead(Bytes limit_bytes) const {
  std::optional<double> best;
  for (const Mix& mix : mixes_) {
    const std::optional<double> overhead = Overhead(mix, limit_bytes);
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

std::optional<double> LoadSwapper::Overhead(const Mix& mix, Bytes limit_bytes) const {
  std::vector<double> scores;
  for (const auto& row : scored_.scores) {
    double score = 0;
    for (std::size_t s = 0; s < planners::kScores; ++s) score += mix.weights[s] * row[s];
    scores.push_back(score);
  }
  plan::ScheduleOptions schedule;
  schedule.limit_bytes = limit_bytes;
  schedule.alignment = 1;
  const auto chosen_for = static_cast<Bytes>(mix.chosen_for * static_cast<double>(limit_bytes));
  const auto predicted = plan::PredictIteration(
      workload_.problem, planners::Choose(question_, scored_.gaps, scores, chosen_for), machine_,
      schedule);
  if (!predicted) return std::nullopt;
  return static_cast<double>(*predicted) / static_cast<double>(workload_.problem.iteration_ns()) -
         1;
}

}  // namespace plimsoll::swapping

// SPDX-License-Identifier: Apache-2.0
//
// AutoSwap on chains: paper 001, section IV, as paper 002 (section 6.1) compares with it. Four
// scores say how much it helps that an activation is away between its last use in forward and its
// first one in backward; the activations with the highest weighted sum leave, as many as bring the
// load under the limit. Paper 001 tunes the weights by about 30 steps of Bayesian optimisation;
// here they are drawn at random, first anywhere and then around the best so far.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/simulate.h"

namespace plimsoll::chain {
namespace {

constexpr int kDraws = 30;

using Scores = std::vector<double>;
using Weights = std::array<double, 4>;

/// Area under the load between F_i and B_i in the run without a limit, less what is away already.
double WeightedAbsence(const Model& model, std::size_t i, const std::vector<char>& away) {
  double area = 0;
  for (std::size_t op = model.ForwardOp(i) + 1; op < model.BackwardOp(i); ++op) {
    auto load = static_cast<double>(model.total_bytes[op]);
    for (std::size_t j = 0; j < model.StageOf(op); ++j) {
      if (away[j] != 0) load -= static_cast<double>(model.activation_bytes[j]);
    }
    area += load * static_cast<double>(model.op_ns[op]);
  }
  return area;
}

/// WDOA again after each choice: the load is lower where the chosen ones are away.
Scores SubmodularScores(const Model& model) {
  Scores scores(model.stages, 0);
  std::vector<char> away(model.stages, 0);
  // The area changes by size times the overlap of two absences; absences are nested.
  std::vector<double> area(model.stages);
  std::vector<double> absence(model.stages, 0);
  for (std::size_t i = 0; i < model.stages; ++i) {
    area[i] = WeightedAbsence(model, i, away);
    for (std::size_t op = model.ForwardOp(i) + 1; op < model.BackwardOp(i); ++op) {
      absence[i] += static_cast<double>(model.op_ns[op]);
    }
  }
  for (std::size_t step = 0; step < model.stages; ++step) {
    std::size_t best = model.stages;
    for (std::size_t i = 0; i < model.stages; ++i) {
      if (away[i] == 0 && (best == model.stages || area[i] > area[best])) best = i;
    }
    scores[best] = area[best];
    away[best] = 1;
    for (std::size_t i = 0; i < model.stages; ++i) {
      const double both = std::min(absence[i], absence[best]);
      area[i] -= both * static_cast<double>(model.activation_bytes[best]);
    }
  }
  return scores;
}

void Standardise(Scores* scores) {
  const auto count = static_cast<double>(scores->size());
  const double mean = std::accumulate(scores->begin(), scores->end(), 0.0) / count;
  double variance = 0;
  for (const double score : *scores) variance += (score - mean) * (score - mean) / count;
  for (double& score : *scores) score = variance > 0 ? (score - mean) / std::sqrt(variance) : 0;
}

/// DOA, AOA, WDOA and SWDOA of every activation, each with mean 0 and deviation 1.
std::array<Scores, 4> AllScores(const Model& model) {
  std::array<Scores, 4> scores;
  const std::vector<char> none(model.stages, 0);
  for (std::size_t i = 0; i < model.stages; ++i) {
    Nanoseconds between = 0;
    for (std::size_t op = model.ForwardOp(i) + 1; op < model.BackwardOp(i); ++op) {
      between += model.op_ns[op];
    }
    const auto duration = static_cast<double>(between - 2 * model.transfer_ns[i]);
    const auto bytes = static_cast<double>(std::max<Bytes>(1, model.activation_bytes[i]));
    scores[0].push_back(duration);
    scores[1].push_back(duration >= 0 ? duration * bytes : duration / bytes);
    scores[2].push_back(WeightedAbsence(model, i, none));
  }
  scores[3] = SubmodularScores(model);
  for (Scores& score : scores) Standardise(&score);
  return scores;
}

class AutoSwap {
 public:
  explicit AutoSwap(const Question& question)
      : model_(question.model),
        limit_(question.limit_bytes),
        scores_(AllScores(question.model)),
        simulator_(question.model, question.limit_bytes) {}

  /// Returns when the schedule of these weights ends, and keeps it if it is the best.
  void Try(const Weights& weights) {
    Decision decision = OrderedDecision(Choose(weights));
    const std::optional<Nanoseconds> makespan = simulator_.Makespan(decision);
    if (!makespan || *makespan >= best_) return;
    best_ = *makespan;
    best_weights_ = weights;
    best_decision_ = std::move(decision);
  }

  const Weights& best_weights() const { return best_weights_; }
  std::optional<Schedule> Best() { return simulator_.Play(best_decision_); }

 private:
  std::vector<char> Choose(const Weights& weights) const {
    std::vector<double> score(model_.stages, 0);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      for (std::size_t i = 0; i < score.size(); ++i) score[i] += weights[k] * scores_[k][i];
    }
    std::vector<std::size_t> order(model_.stages);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&score](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    std::vector<char> chosen(model_.stages, 0);
    for (const std::size_t i : order) {
      if (IsUnderLimit(chosen)) break;
      chosen[i] = 1;
    }
    return chosen;
  }

  bool IsUnderLimit(const std::vector<char>& chosen) const {
    Bytes away = 0;
    for (std::size_t i = 0; i < model_.stages; ++i) {
      if (model_.total_bytes[model_.ForwardOp(i)] - away > limit_) return false;
      if (model_.total_bytes[model_.BackwardOp(i)] - away > limit_) return false;
      if (chosen[i] != 0) away += model_.activation_bytes[i];
    }
    return true;
  }

  const Model& model_;
  const Bytes limit_;
  const std::array<Scores, 4> scores_;
  Simulator simulator_;
  Nanoseconds best_ = std::numeric_limits<Nanoseconds>::max();
  Weights best_weights_ = {};
  Decision best_decision_;
};

}  // namespace

std::optional<Schedule> PlanAutoSwap(const Question& question, const PlannerOptions& options) {
  AutoSwap search(question);
  for (std::size_t k = 0; k < 4; ++k) {
    Weights weights = {};
    weights[k] = 1;
    search.Try(weights);
  }
  // Our own mapping to reals, since that of the standard library differs between platforms.
  std::mt19937_64 random(options.seed);
  const auto draw = [&random] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  for (int step = 0; step < kDraws; ++step) {
    Weights weights = {};
    const bool near = step >= kDraws / 2;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      weights[k] = near ? std::clamp(search.best_weights()[k] + 0.3 * draw(), -1.0, 1.0) : draw();
    }
    search.Try(weights);
  }
  return search.Best();
}

}  // namespace plimsoll::chain

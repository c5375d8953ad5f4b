// SPDX-License-Identifier: Apache-2.0
//
// AutoSwap's BO (paper 001, section IV-C): the four scores, standardised, are added up with weights
// in [-1, 1], and the weights are tuned by Bayesian optimisation against the simulated iteration
// time. The first points are the four scores alone, each with the lower loads that its own planner
// would try, so that the result is never worse than the best of them. Where none of them fits, no
// other weights are tried.
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/planners/autoswap.h"
#include "plimsoll/planners/gaussian_process_internal.h"

namespace plimsoll::planners {
namespace {

constexpr int kEvaluations = 36;
constexpr int kProposals = 500;
constexpr double kLengthScale = 0.7;

/// Each score with mean 0 and variance 1 over all candidates.
std::vector<std::array<double, kScores>> Standardise(const ScoredGaps& scored) {
  auto standard = scored.scores;
  const auto count = static_cast<double>(standard.size());
  for (std::size_t s = 0; s < kScores; ++s) {
    double sum = 0;
    double square = 0;
    for (const auto& row : standard) sum += row[s];
    for (const auto& row : standard) square += std::pow(row[s] - sum / count, 2);
    const double deviation = std::sqrt(square / count);
    for (auto& row : standard) row[s] = deviation > 0 ? (row[s] - sum / count) / deviation : 0;
  }
  return standard;
}

class Optimiser {
 public:
  explicit Optimiser(const Question& question)
      : question_(question),
        scored_(ScoreCandidates(question)),
        standard_(Standardise(scored_)),
        process_(kLengthScale),
        random_(question.options.seed) {}

  plan::Decision Run() {
    if (scored_.gaps.empty()) return Choose(question_, {}, {});
    for (int s = 0; s < kScores && !Stopped(); ++s) {
      const Eigen::VectorXd weights = Eigen::VectorXd::Unit(kScores, s);
      Keep(weights, MakeFit(question_, [&](Bytes load) { return Decide(weights, load); }));
    }
    for (int e = kScores; e < kEvaluations && fits_ && !Stopped(); ++e) {
      const Eigen::VectorXd weights = Propose();
      plan::Decision decision = Decide(weights, question_.load_limit_bytes);
      Keep(weights, MakeFit(question_, [&](Bytes /*load*/) { return decision; }));
    }
    return best_;
  }

 private:
  plan::Decision Decide(const Eigen::VectorXd& weights, Bytes load_limit) const {
    std::vector<double> scores;
    for (const auto& row : standard_) {
      scores.push_back(Eigen::Map<const Eigen::Vector4d>(row.data()).dot(weights));
    }
    const Question question{question_.problem, question_.machine, load_limit, question_.options};
    return Choose(question, scored_.gaps, scores);
  }

  bool Stopped() const { return question_.options.stop && question_.options.stop() && fits_; }

  /// Observes what became of these weights, and keeps the best.
  void Keep(const Eigen::VectorXd& weights, Attempt attempt) {
    // To the process, what does not fit is bad; to us, worse than anything that does.
    double value = 10 * static_cast<double>(question_.problem.iteration_ns());
    double rank = std::numeric_limits<double>::max();
    if (const plan::Plan* plan = attempt.plan()) {
      fits_ = true;
      rank = value = static_cast<double>(sim::Simulate(*plan).iteration_ns);
    }
    process_.Observe(weights, value);
    if (rank >= lowest_) return;
    lowest_ = rank;
    best_ = std::move(attempt.decision);
    if (fits_ && question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(rank));
    }
  }

  /// The best of many random points by expected improvement.
  Eigen::VectorXd Propose() {
    Eigen::VectorXd best = Random();
    double most = process_.ExpectedImprovement(best);
    for (int k = 1; k < kProposals; ++k) {
      const Eigen::VectorXd point = Random();
      const double improvement = process_.ExpectedImprovement(point);
      if (improvement <= most) continue;
      most = improvement;
      best = point;
    }
    return best;
  }

  Eigen::VectorXd Random() {
    Eigen::VectorXd point(kScores);
    // 53 random bits, without the standard's distributions: equal on every platform.
    for (double& x : point) x = static_cast<double>(random_() >> 11) * 0x1p-52 - 1;
    return point;
  }

  const Question& question_;
  const ScoredGaps scored_;
  const std::vector<std::array<double, kScores>> standard_;
  GaussianProcess process_;
  std::mt19937_64 random_;
  plan::Decision best_;
  bool fits_ = false;
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

plan::Decision DecideBayes(const Question& question) { return Optimiser(question).Run(); }

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
//
// AutoSwap's BO (paper 001, section IV-C): the four scores, standardised, are added up with weights
// in [-1, 1], and the weights are tuned by Bayesian optimisation against the predicted iteration
// time. So is the load that they are asked to choose for, which may be lower than what the plan is
// scheduled for: whoever has more gaps than it needs has memory to spare at the right time, and
// waits less.
//
// The first points are the four scores alone, as their own planners have them, and then choosing
// for much less: the result is never worse than the best of them. Placing is what takes long; so
// other points are judged by rehearsals, at the load that the best plan so far was made for and at
// a few others, and only what promises to be better is made into a plan and simulated. Where no
// score fits, no other points are tried.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/planners/autoswap.h"
#include "plimsoll/planners/gaussian_process_internal.h"

namespace plimsoll::planners {
namespace {

constexpr int kEvaluations = 28;
constexpr int kProposals = 500;
constexpr double kLengthScale = 0.7;
/// A point is the weights of the scores, and where between these two the load lies that they choose
/// for, as a share of that which is scheduled for.
constexpr int kDimensions = kScores + 1;
constexpr double kLowestChoice = 0.6;
constexpr double kHighestChoice = 1;
/// Where the scores alone are tried, in a point's coordinates: at the load itself, and far below.
constexpr std::array kChoices = {1.0, -0.5};
/// Of the limit, loads at which weights are judged.
constexpr std::array kJudgedShares = {0.97, 0.93, 0.88};
/// The search ends when its other weights have had this many variables placed in vain.
constexpr std::int64_t kPlacedInVain = 20'000;

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

  Attempt Run() {
    if (scored_.gaps.empty()) {
      return MakeFit(question_, [&](Bytes load) { return Choose(question_, {}, {}, load); });
    }
    for (const double choice : kChoices) {
      for (int s = 0; s < kScores; ++s) {
        if (Stopped()) return std::move(*best_);
        const Eigen::VectorXd point = Alone(s, choice);
        process_.Observe(point, Keep(MakeFit(question_, DecideBy(point), Promising(), &misfits_)));
      }
    }
    for (int e = 0; e < kEvaluations && GoesOn(); ++e) Try(Propose());
    return std::move(*best_);
  }

 private:
  static Eigen::VectorXd Alone(int score, double choice) {
    Eigen::VectorXd point = Eigen::VectorXd::Unit(kDimensions, score);
    point[kScores] = choice;
    return point;
  }

  Decider DecideBy(const Eigen::VectorXd& point) const {
    std::vector<double> scores;
    for (const auto& row : standard_) {
      scores.push_back(Eigen::Map<const Eigen::Vector4d>(row.data()).dot(point.head<kScores>()));
    }
    const double share = std::lerp(kLowestChoice, kHighestChoice, (point[kScores] + 1) / 2);
    return [this, share, scores = std::move(scores)](Bytes load_limit) {
      const auto chosen_for = static_cast<Bytes>(share * static_cast<double>(load_limit));
      return Choose(question_, scored_.gaps, scores, chosen_for);
    };
  }

  bool Stopped() const { return fits_ && question_.options.stop && question_.options.stop(); }
  bool GoesOn() const { return fits_ && in_vain_ < kPlacedInVain && !Stopped(); }

  /// What may turn out to be faster than the best plan so far. A plan's time is a little more or
  /// less than was predicted.
  Nanoseconds Promising() const {
    if (!fits_) return std::numeric_limits<Nanoseconds>::max();
    return static_cast<Nanoseconds>(1.01 * lowest_);
  }

  /// What a limit that cannot be met is worth to the process.
  double Bad() const { return 10 * static_cast<double>(question_.problem.iteration_ns()); }

  void Try(const Eigen::VectorXd& point) {
    const Decider decide = DecideBy(point);
    double predicted = Predict(decide, best_->load_limit_bytes);
    for (const double share : kJudgedShares) {
      const double limit = share * static_cast<double>(question_.options.limit_bytes);
      predicted = std::min(predicted, Predict(decide, static_cast<Bytes>(limit)));
    }
    process_.Observe(point, predicted);
    if (predicted >= lowest_) return;
    const std::int64_t known = misfits_.size();
    auto better = MakeBetter(question_, decide, static_cast<Nanoseconds>(lowest_), &misfits_);
    if (better) {
      Keep(*std::move(better));
    } else {
      in_vain_ += (misfits_.size() - known) * std::ssize(question_.problem.variables);
    }
  }

  double Predict(const Decider& decide, Bytes load_limit) const {
    plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
    schedule.load_limit_bytes = load_limit;
    const auto predicted =
        plan::PredictIteration(question_.problem, decide(load_limit), question_.machine, schedule);
    return predicted ? static_cast<double>(*predicted) : Bad();
  }

  /// Keeps the best attempt; returns the time of this one.
  double Keep(Attempt attempt) {
    const plan::Plan* plan = attempt.plan();
    const double value = plan ? static_cast<double>(sim::Simulate(*plan).iteration_ns) : Bad();
    // What does not fit is worse than anything that does.
    const double rank = plan ? value : std::numeric_limits<double>::max();
    if (best_ && rank >= lowest_) return value;
    fits_ = plan != nullptr;
    lowest_ = rank;
    best_ = std::move(attempt);
    if (fits_ && question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(rank));
    }
    return value;
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
    Eigen::VectorXd point(kDimensions);
    // 53 random bits, without the standard's distributions: equal on every platform.
    for (double& x : point) x = static_cast<double>(random_() >> 11) * 0x1p-52 - 1;
    return point;
  }

  const Question& question_;
  const ScoredGaps scored_;
  const std::vector<std::array<double, kScores>> standard_;
  GaussianProcess process_;
  std::mt19937_64 random_;
  Misfits misfits_;
  std::optional<Attempt> best_;
  bool fits_ = false;
  std::int64_t in_vain_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Attempt PlanBayes(const Question& question) { return Optimiser(question).Run(); }

}  // namespace plimsoll::planners

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
// other points are judged by rehearsals, at several loads, with copies in that begin just in time
// and later, and what promises to be better is noted. Late copies in make ops wait a little, and
// leave others room for as long. In the end promises are made into plans and simulated, those first
// that promise much or leave much room for fragmentation. Where no score fits, no other points are
// tried.
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

/// How many points are judged beyond the first ones: where there are few variables, more.
constexpr std::int64_t kFewestEvaluations = 28;
constexpr std::int64_t kMostEvaluations = 120;
constexpr std::int64_t kEvaluatedVariables = 40'000;
constexpr int kProposals = 500;
constexpr double kLengthScale = 0.7;
/// A point is the weights of the scores, and where between these two the load lies that they choose
/// for, as a share of that which is scheduled for.
constexpr int kDimensions = kScores + 1;
constexpr double kLowestChoice = 0.6;
constexpr double kHighestChoice = 1;
/// Where the scores alone are tried, in a point's coordinates: at the load itself, and far below.
constexpr std::array kChoices = {1.0, -0.5};
/// What cannot be done at all is worth this many times what the best plan is.
constexpr double kWorst = 1.5;
/// Of the limit, loads at which points are judged, and how early copies in begin.
constexpr std::array kJudgedShares = {1.0, 0.98, 0.97, 0.96, 0.94, 0.92, 0.88};
constexpr std::array kPrefetches = {plan::kPrefetchJustInTime, 0.8, 0.775};
/// What room for fragmentation is worth: of the overhead, per share of the limit.
constexpr double kRoomWorth = 4;
/// For each evaluation, how many variables of promises may be placed in vain, and by how many nodes
/// of the search.
constexpr std::int64_t kPlacedInVain = 1'000;
constexpr std::int64_t kFewNodes = 1'000;

/// What may become a plan.
struct Promise {
  plan::Decision decision;
  Bytes load_limit_bytes = 0;
  double prefetch = plan::kPrefetchJustInTime;
  double predicted_ns = 0;
  double rank = 0;  ///< Low for what promises much.

  bool IsLike(const Promise& other) const {
    return load_limit_bytes == other.load_limit_bytes && prefetch == other.prefetch &&
           decision.swapped == other.decision.swapped;
  }
};

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
        random_(question.options.seed),
        base_ns_(static_cast<double>(question.problem.iteration_ns())) {}

  Attempt Run() {
    if (scored_.gaps.empty()) {
      return MakeFit(question_, [&](Bytes load) { return Choose(question_, {}, {}, load); });
    }
    for (const double choice : kChoices) {
      for (int s = 0; s < kScores; ++s) {
        if (Stopped()) return std::move(*best_);
        Keep(MakeFit(question_, DecideBy(Alone(s, choice)), Promising(), &misfits_));
      }
    }
    if (fits_) Search();
    return std::move(*best_);
  }

  /// The same without the scores alone: nothing if nothing is faster than `below_ns`.
  std::optional<Attempt> RunBelow(Nanoseconds below_ns) {
    if (scored_.gaps.empty()) return std::nullopt;
    fits_ = true;
    lowest_ = static_cast<double>(below_ns);
    Search();
    return std::move(best_);
  }

 private:
  void Search() {
    if (lowest_ <= base_ns_) return;
    for (const double choice : kChoices) {
      for (int s = 0; s < kScores && !Stopped(); ++s) Judge(Alone(s, choice));
    }
    for (std::int64_t e = 0; e < evaluations() && !Stopped(); ++e) {
      Judge(e % 2 == 0 ? Random() : Propose());
    }
    PlacePromises();
  }

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

  std::int64_t variables() const { return std::ssize(question_.problem.variables); }
  std::int64_t evaluations() const {
    return std::clamp(kEvaluatedVariables / variables(), kFewestEvaluations, kMostEvaluations);
  }
  /// How many promises may be placed in vain.
  std::int64_t tickets() const { return 1 + kPlacedInVain * evaluations() / variables(); }

  /// What may turn out to be faster than the best plan so far. A plan's time is a little more or
  /// less than was predicted.
  Nanoseconds Promising() const {
    if (!fits_) return std::numeric_limits<Nanoseconds>::max();
    return static_cast<Nanoseconds>(1.01 * lowest_);
  }

  /// Notes what the point promises, and what the best of that is worth.
  void Judge(const Eigen::VectorXd& point) {
    const Decider decide = DecideBy(point);
    const double worth = kRoomWorth * (lowest_ - base_ns_);
    double best = kWorst * (lowest_ + worth);
    for (const double share : kJudgedShares) {
      const auto limit = static_cast<double>(question_.options.limit_bytes);
      const auto load_limit = static_cast<Bytes>(share * limit);
      Promise promise{.decision = decide(load_limit), .load_limit_bytes = load_limit};
      bool promising = false;
      for (const double prefetch : kPrefetches) {
        promise.prefetch = prefetch;
        const auto predicted = plan::PredictIteration(question_.problem, promise.decision,
                                                      question_.machine, ToSchedule(promise));
        if (!predicted) break;
        promise.predicted_ns = static_cast<double>(*predicted);
        promise.rank = promise.predicted_ns + worth * share;
        best = std::min(best, promise.rank);
        if (promise.predicted_ns >= lowest_) continue;
        promising = true;
        Note(promise);
      }
      if (!promising) break;  // With less room it takes longer.
    }
    process_.Observe(point, best);
  }

  /// Keeps as many promises as can be placed.
  void Note(const Promise& promise) {
    for (const Promise& other : promises_) {
      if (promise.IsLike(other)) return;
    }
    const auto place =
        std::upper_bound(promises_.begin(), promises_.end(), promise,
                         [](const Promise& a, const Promise& b) { return a.rank < b.rank; });
    promises_.insert(place, promise);
    if (std::ssize(promises_) > 2 * tickets()) promises_.pop_back();
  }

  void PlacePromises() {
    std::int64_t in_vain = 0;
    for (const Promise& promise : promises_) {
      if (promise.predicted_ns >= lowest_) continue;
      if (in_vain >= tickets() || Stopped()) break;
      auto made = plan::MakePlan(question_.problem, promise.decision, question_.machine,
                                 ToSchedule(promise));
      if (std::holds_alternative<plan::Misfit>(made)) ++in_vain;
      Keep({promise.decision, std::move(made), promise.load_limit_bytes});
    }
  }

  plan::ScheduleOptions ToSchedule(const Promise& promise) const {
    plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
    schedule.load_limit_bytes = promise.load_limit_bytes;
    schedule.prefetch = promise.prefetch;
    schedule.place_nodes = std::min(schedule.place_nodes, kFewNodes);
    return schedule;
  }

  /// Keeps the attempt if it is the best. What does not fit is worse than anything that does.
  void Keep(Attempt attempt) {
    const plan::Plan* plan = attempt.plan();
    const double time_ns = plan == nullptr ? std::numeric_limits<double>::max()
                                           : static_cast<double>(sim::Simulate(*plan).iteration_ns);
    if (time_ns >= lowest_) return;
    fits_ = plan != nullptr;
    lowest_ = time_ns;
    best_ = std::move(attempt);
    if (fits_ && question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(time_ns));
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
  const double base_ns_;
  Misfits misfits_;
  std::vector<Promise> promises_;  // By rank.
  std::optional<Attempt> best_;
  bool fits_ = false;  // Whether there is a plan, of `lowest_`.
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Attempt PlanBayes(const Question& question) { return Optimiser(question).Run(); }

std::optional<Attempt> PlanBayesBelow(const Question& question, Nanoseconds below_ns) {
  return Optimiser(question).RunBelow(below_ns);
}

}  // namespace plimsoll::planners

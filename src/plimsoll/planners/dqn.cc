// SPDX-License-Identifier: Apache-2.0
//
// `dqn` and `dqn-swap`: the deep Q-network of paper 000. Episodes are walks through the iteration
// (dqn_environment_internal.h); what they meet is kept, and the network
// (learn/q_network_internal.h) is fitted to batches of it, by equations 4 and 5 (Algorithm 1). The
// best plan that any episode has found is the answer.
//
// What the paper leaves open:
//   - The share of random actions falls from 1 to 0 with the budget that is spent, in the place of
//     episode / l: how many episodes there will be is not known. With weights to begin with it
//     falls from kTunedShare in every other one, in case they are of no use, and steps are smaller.
//   - Every kGreedyEvery-th episode takes no random action. The others have a taste of their own:
//     how often a random action may be a removal. If there are none: how often it may be to do
//     nothing, and how often it is the first that can be done; what leaves in turn packs well.
//   - Every kFollowEvery-th episode follows the best one so far, but for a few random actions: what
//     lies close to good plans is worth knowing, and neither chance nor the network leads there
//     often. With weights to begin with, two of three do.
//   - Variables come back as early as memory allows (section 4.5) or, since that takes addresses,
//     just in time: as in the best episode so far, but for kOtherShare of those that do not follow
//     it.
//   - Steps are those of Adam; what is fitted is a batch of kBatch for every kStepsPerUpdate
//     actions, or fewer in a large graph, where episodes are long and few.
//   - Where the plan of an episode cannot be placed under the limit, the load is held to a little
//     less from then on; where it can, to a little more. What promised to be the best so far is
//     followed once more with the load held to as much less as was missing, and once more, up to
//     kMostRetries times.
//   - Weights that are handed on are those of the best episode without random actions: later ones
//     may well be worse.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/learn/adam_internal.h"
#include "plimsoll/planners/dqn_environment_internal.h"
#include "plimsoll/planners/dqn_internal.h"
#include "plimsoll/planners/smallest.h"

namespace plimsoll::planners {
namespace {

using learn::AgentState;
using learn::NodeIndex;

constexpr float kDecay = 0.8F;  // Gamma.
constexpr std::size_t kBatch = 8;
constexpr std::int64_t kStepsPerUpdate = 2;
constexpr std::size_t kNodesPerStep = 100;  // Of large graphs, for each action of those.
constexpr std::size_t kMemory = 20'000;
constexpr float kRate = 3e-3F;
constexpr float kTunedRate = 1e-3F;
constexpr float kLongestGradient = 10;
constexpr double kTunedShare = 0.08;
constexpr std::int64_t kGreedyEvery = 5;
constexpr std::int64_t kFollowEvery = 2;
constexpr std::int64_t kTunedEvery = 3;     // With weights to begin with: does not follow,
constexpr std::int64_t kDoubtfulEvery = 6;  // nor trust them.
constexpr double kOtherShare = 0.25;
constexpr double kMostSlips = 4;  // Random actions in an episode that follows another.
constexpr int kDraws = 8;
constexpr std::int64_t kLeastEpisodes = 12;
/// What the load is held to changes by at least and at most this whenever that cannot be placed,
/// and by the last whenever it can.
constexpr double kTighter = 0.995;
constexpr double kTightest = 0.97;
constexpr double kLooser = 1.0025;
constexpr int kMostRetries = 6;
/// How much harder than for others a placement is tried: next to an episode that takes no time.
constexpr std::int64_t kPlaceTimes = 10;
/// Of the budget: how long there may be episodes, if none has found what fits.
constexpr double kMostBudget = 2;

/// What was met: a state, the node of the action taken, its reward, and the state behind it.
struct Transition {
  AgentState from;
  NodeIndex action = 0;
  float reward = 0;
  AgentState to;
  bool terminal = false;
};

/// What an episode did, and under which conditions.
struct Walk {
  std::vector<NodeIndex> actions;
  Bytes target_bytes = 0;  ///< What the load was held to.
  double prefetch = plan::kPrefetchEarly;
};

/// How an episode goes: without random actions, with many, along the best one, or once more along
/// one that could not be placed.
enum class Way { kGreedy, kExplore, kFollow, kRetry };

class Trainer {
 public:
  Trainer(const Question& question, bool may_remove,
          const std::function<void(const DqnEpisode&)>& observe)
      : question_(question),
        observe_(observe),
        environment_(question_, may_remove),
        may_remove_(may_remove),
        tuned_(question.options.policy != nullptr),
        least_target_(question.options.limit_bytes),
        network_(environment_.graph(),
                 tuned_ ? *question.options.policy
                        : learn::MakeRandomPolicy(learn::kWidth, question.options.seed)),
        adam_(network_.weights().size(), tuned_ ? kTunedRate : kRate, kLongestGradient),
        deadline_(question.options.time_budget_seconds),
        random_(question.options.seed),
        steps_per_update_(
            std::max(kStepsPerUpdate,
                     static_cast<std::int64_t>(environment_.graph().size() / kNodesPerStep))) {}

  Attempt Run() {
    if (!environment_.has_candidates()) {
      Hand();
      return MakeFit(question_, [](Bytes /*load_limit*/) { return plan::Decision{}; });
    }
    const auto least_ns = static_cast<double>(question_.problem.iteration_ns());
    while (best_ns_ > least_ns && (IsPressed() || !IsOver())) RunEpisode();
    Hand();
    return best_ ? std::move(*best_) : MakeSmallest(question_);
  }

 private:
  /// Gives the weights to whoever wants them: those of the best episode without random actions.
  void Hand() const {
    if (!question_.options.on_policy) return;
    question_.options.on_policy(greedy_policy_.values.empty() ? network_.ToPolicy()
                                                              : greedy_policy_);
  }

  /// Whether to go on beyond the budget, since nothing fits yet: with random actions, since there
  /// is no time to learn.
  bool IsPressed() const {
    return !best_ && episodes_ <= kLeastEpisodes && Progress() < kMostBudget && !IsStopped();
  }

  bool IsStopped() const { return question_.options.stop && question_.options.stop(); }

  bool IsOver() const { return Progress() >= 1 || IsStopped(); }

  /// How much of the budget is spent.
  double Progress() const {
    if (question_.options.evaluations > 0) {
      return static_cast<double>(environment_.evaluations()) /
             static_cast<double>(question_.options.evaluations);
    }
    return 1 - deadline_.remaining_seconds() / question_.options.time_budget_seconds;
  }

  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  Way Choose() const {
    if (!retry_.actions.empty()) return Way::kRetry;
    if (episodes_ % kGreedyEvery == 0 || (tuned_ && episodes_ == 1)) return Way::kGreedy;
    const bool in_turn = tuned_ ? episodes_ % kTunedEvery != 0 : episodes_ % kFollowEvery == 0;
    return in_turn && !best_walk_.actions.empty() ? Way::kFollow : Way::kExplore;
  }

  /// Says who is followed, how often an action is random, what the load is held to, and when
  /// variables come back.
  void Begin(Way way) {
    taste_ = Uniform();
    haste_ = may_remove_ || Uniform() < 0.5 ? 0 : std::min(2 * Uniform(), 1.0);
    const double room = Uniform();
    const bool other = way == Way::kExplore && Uniform() < kOtherShare;
    const bool early = other != (best_walk_.prefetch == plan::kPrefetchEarly);
    const auto above = static_cast<double>(question_.options.limit_bytes - least_target_);
    walk_.target_bytes = least_target_;
    walk_.prefetch = early ? plan::kPrefetchEarly : plan::kPrefetchJustInTime;
    script_ = nullptr;
    share_ = 0;
    if (way == Way::kExplore) {
      const bool trusts = tuned_ && episodes_ % kDoubtfulEvery != 0;
      share_ = (trusts ? kTunedShare : 1.0) * std::clamp(1 - Progress(), 0.0, 1.0);
      if (haste_ >= 1) share_ = 1;
    }
    if (way == Way::kFollow) {
      script_ = &best_walk_;
      share_ = kMostSlips * Uniform() / static_cast<double>(best_walk_.actions.size());
    }
    if (way == Way::kFollow || way == Way::kExplore) {
      walk_.target_bytes += static_cast<Bytes>(room * above);
    }
    if (way == Way::kRetry) {
      script_ = &retry_;
      walk_.target_bytes = retry_.target_bytes;
      walk_.prefetch = retry_.prefetch;
    }
    walk_.actions.clear();
    ahead_ = 0;
    environment_.Reset(walk_.target_bytes, walk_.prefetch);
  }

  void RunEpisode() {
    ++episodes_;
    const Way way = Choose();
    Begin(way);
    while (!environment_.terminal()) {
      const bool late = IsOver();
      if (late && !IsPressed()) return;
      if (late) {
        share_ = 1;
        walk_.actions.push_back(Any(environment_.state().valid));
        environment_.Take(walk_.actions.back());
        continue;
      }
      Transition met;
      met.from = environment_.state();
      met.action = Uniform() < share_   ? Any(met.from.valid)
                   : script_ != nullptr ? Next(met.from)
                                        : Best(met.from);
      walk_.actions.push_back(met.action);
      met.reward = static_cast<float>(environment_.Take(met.action));
      met.to = environment_.state();
      met.terminal = environment_.terminal();
      Remember(std::move(met));
      if (++steps_ % steps_per_update_ == 0) Learn();
    }
    const int retry = std::exchange(retries_, 0);
    retry_.actions.clear();
    if (!environment_.failed()) Keep(retry);
    if (way == Way::kGreedy && share_ == 0 && !environment_.failed() &&
        environment_.time_ns() < greedy_ns_) {
      greedy_ns_ = environment_.time_ns();
      greedy_policy_ = network_.ToPolicy();
    }
    if (observe_) {
      observe_({episodes_, environment_.failed() ? kNever : environment_.time_ns(), best_ns_,
                environment_.evaluations(), share_});
    }
  }

  /// A random action, to the taste of the episode.
  NodeIndex Any(const std::vector<NodeIndex>& valid) {
    const auto draw = [&] {
      if (Uniform() >= haste_) return valid[random_() % valid.size()];
      const bool idle = environment_.IsNothing(valid.front()) && valid.size() > 1;
      return valid[idle ? 1 : 0];
    };
    NodeIndex node = draw();
    for (int k = 0; k < kDraws && IsShunned(node) && Uniform() > taste_; ++k) node = draw();
    return node;
  }

  bool IsShunned(NodeIndex node) const {
    return may_remove_ ? environment_.IsRemoval(node) : environment_.IsNothing(node);
  }

  /// The next action of the episode that is followed that may be taken here.
  NodeIndex Next(const AgentState& state) {
    while (ahead_ < script_->actions.size()) {
      const NodeIndex node = script_->actions[ahead_++];
      if (std::ranges::find(state.valid, node) != state.valid.end()) return node;
    }
    return Best(state);
  }

  /// The action of the highest Q.
  NodeIndex Best(const AgentState& state) {
    network_.Embed({&state});
    return Highest(0, state).first;
  }

  std::pair<NodeIndex, float> Highest(int b, const AgentState& state) const {
    std::pair<NodeIndex, float> best = {-1, 0};
    for (const NodeIndex node : state.valid) {
      const float value = network_.Value(b, node);
      if (best.first < 0 || value > best.second) best = {node, value};
    }
    return best;
  }

  void Remember(Transition met) {
    if (memory_.size() < kMemory) {
      memory_.push_back(std::move(met));
    } else {
      memory_[oldest_++ % kMemory] = std::move(met);
    }
  }

  /// One step on a batch of what was met (equations 4 and 5).
  void Learn() {
    std::vector<const Transition*> batch;
    std::vector<const AgentState*> from;
    std::vector<const AgentState*> to;
    std::vector<NodeIndex> actions;
    for (std::size_t k = 0; k < kBatch; ++k) {
      batch.push_back(&memory_[random_() % memory_.size()]);
      from.push_back(&batch.back()->from);
      to.push_back(&batch.back()->to);
      actions.push_back(batch.back()->action);
    }
    network_.Embed(to);
    std::vector<float> targets;
    for (std::size_t k = 0; k < kBatch; ++k) {
      const float ahead =
          batch[k]->terminal ? 0 : Highest(static_cast<int>(k), batch[k]->to).second;
      // No plan is faster than none: what lies ahead is never a gain.
      targets.push_back(batch[k]->reward + kDecay * std::min(ahead, 0.0F));
    }
    network_.Embed(from);
    std::vector<float> slopes;
    for (std::size_t k = 0; k < kBatch; ++k) {
      const float value = network_.Value(static_cast<int>(k), actions[k]);
      slopes.push_back(2 * (value - targets[k]) / static_cast<float>(kBatch));
    }
    gradient_.setZero(network_.weights().size());
    network_.AddGradient(actions, slopes, &gradient_);
    adam_.Step(gradient_, &network_.weights());
  }

  /// Makes a plan of what the episode has chosen, with less memory for the so-manieth time, if that
  /// promises to be the best so far.
  void Keep(int retry) {
    if (environment_.time_ns() >= best_ns_ * (1 - 1e-6)) return;
    const bool timed = question_.options.evaluations == 0;
    Attempt attempt =
        environment_.Make(best_ns_, [&] { return IsStopped() || (timed && best_ && IsOver()); });
    if (attempt.plan() == nullptr) {
      const auto& misfit = std::get<plan::Misfit>(attempt.made);
      if (misfit.host) return;
      const Bytes needed = misfit.needed_bytes;
      if (retry == 0) least_target_ = Lower(least_target_, needed);
      if (retry == kMostRetries) return;
      retry_ = walk_;
      retry_.target_bytes = Lower(walk_.target_bytes, needed);
      retries_ = retry + 1;
      return;
    }
    const auto looser = static_cast<Bytes>(kLooser * static_cast<double>(least_target_));
    least_target_ = std::min(looser, question_.options.limit_bytes);
    const auto ns = static_cast<double>(sim::Simulate(*attempt.plan()).iteration_ns);
    if (ns >= best_ns_) return;
    best_ns_ = ns;
    best_ = std::move(attempt);
    best_walk_ = walk_;
    if (question_.options.on_progress) {
      question_.options.on_progress(static_cast<Nanoseconds>(ns));
    }
  }

  /// What the load is to be held to, if it was held to `target` and a plan needs so much.
  Bytes Lower(Bytes target, Bytes needed_bytes) const {
    const double share = static_cast<double>(question_.options.limit_bytes) /
                         static_cast<double>(std::max<Bytes>(needed_bytes, 1));
    return static_cast<Bytes>(std::clamp(share, kTightest, kTighter) * static_cast<double>(target));
  }

  const Question question_;
  const std::function<void(const DqnEpisode&)>& observe_;
  DqnEnvironment environment_;
  const bool may_remove_;
  const bool tuned_;
  Bytes least_target_;  // What the load of the tightest episodes is held to.
  learn::QNetwork<float> network_;
  learn::Adam adam_;
  Eigen::VectorXf gradient_;
  const Deadline deadline_;
  std::mt19937_64 random_;
  const std::int64_t steps_per_update_;
  std::vector<Transition> memory_;
  std::size_t oldest_ = 0;
  std::int64_t episodes_ = 0;
  std::int64_t steps_ = 0;
  std::optional<Attempt> best_;
  double best_ns_ = kNever;
  double share_ = 0;  // Of random actions in the episode;
  double taste_ = 0;  // its taste for removals, or, if there are none, for doing nothing,
  double haste_ = 0;  // and for what can be done first.
  Walk walk_;         // The episode so far,
  Walk best_walk_;    // the best one,
  Walk retry_;        // and one to be followed with less memory, if it has actions,
  int retries_ = 0;   // for the so-manieth time.
  const Walk* script_ = nullptr;  // Who is followed,
  std::size_t ahead_ = 0;         // and how far.
  learn::Policy greedy_policy_;
  double greedy_ns_ = kNever;
};

}  // namespace

Attempt TrainDqn(const Question& question, bool may_remove,
                 const std::function<void(const DqnEpisode&)>& observe) {
  PlannerOptions options = question.options;
  options.place_nodes *= kPlaceTimes;
  return Trainer({question.problem, question.machine, options}, may_remove, observe).Run();
}

Attempt PlanDqn(const Question& question) { return TrainDqn(question, true); }
Attempt PlanDqnSwap(const Question& question) { return TrainDqn(question, false); }

}  // namespace plimsoll::planners

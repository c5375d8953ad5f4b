// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/dqn_candidates_internal.h"
#include "plimsoll/planners/dqn_environment_internal.h"

namespace plimsoll::planners {
namespace {

using learn::ActionKind;
using learn::NodeIndex;
using plan::OpIndex;

/// What is rebuilt on the way stays for so many ops: without an end to it, long chains of removals
/// would fill the memory when they are rebuilt.
constexpr OpIndex kHorizon = 24;

/// What a plan is tried with: memory for the load, in steps of the limit down to what it needs, and
/// variables that come back sooner or later; the fastest come first. Of equals those that come back
/// later, which take fewer addresses.
constexpr double kLoadStep = 0.01;
constexpr int kMostLoads = 12;
constexpr std::array kPrefetches = {plan::kPrefetchJustInTime, 0.8, plan::kPrefetchEarly};
constexpr int kMostTries = 6;
/// Of what a plan misses by, what the next has less for its load.
constexpr double kGiveWay = 0.5;

}  // namespace

DqnEnvironment::DqnEnvironment(const Question& question, bool may_remove)
    : question_(question), evaluator_(question) {
  Nanoseconds now = 0;
  for (const plan::Op& op : question.problem.ops) {
    start_ns_.push_back(now);
    now += op.duration_ns;
  }
  start_ns_.push_back(now);
  DqnCandidates chosen = ChooseDqnCandidates(question, evaluator_, may_remove);
  candidates_ = std::move(chosen.candidates);
  gap_of_ = std::move(chosen.gaps);
  if (candidates_.empty()) return;
  starts_.resize(question.problem.ops.size());
  for (std::size_t k = 0; k < candidates_.size(); ++k) {
    starts_[At(candidates_[k].gap.after)].push_back(k);
  }
  graph_ = learn::MakeOperationGraph(question.problem, question.machine, candidates_);
  action_at_.assign(graph_.size(), -1);
  for (std::size_t a = 0; a < graph_.actions.size(); ++a) {
    action_at_[At(graph_.actions[a].node)] = static_cast<std::int32_t>(a);
  }
}

void DqnEnvironment::Reset(Bytes target_bytes, double prefetch) {
  evaluator_.set_target(target_bytes);
  joint_ = {};
  joint_.horizon = kHorizon;
  joint_.prefetch = prefetch;
  joint_.choices.assign(evaluator_.gaps().size(), Choice::kKeep);
  banned_.assign(candidates_.size(), false);
  link_free_ns_ = 0;
  op_ = -1;
  done_ = false;
  failed_ = !evaluator_.Evaluate(&joint_);
  if (failed_) return;
  Measure();
  Advance(-1);
  time_ns_ = Predict();
}

/// Takes note of where the load is above the target.
void DqnEnvironment::Measure() {
  const plan::Rewritten& made = *joint_.rewritten;
  const std::vector<Bytes> load =
      plan::LeastLoad(made.problem, joint_.swaps, question_.options.alignment);
  peak_bytes_ = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
  over_.assign(1, 0);
  Bytes highest = 0;
  plan::Position position = 0;
  for (std::size_t i = 0; i < made.problem.ops.size(); ++i) {
    for (; position <= made.problem.ops[i].position; ++position) {
      highest = std::max(highest, load[At(position)]);
    }
    if (made.is_replay[i] != 0) continue;  // Counts for the recorded op behind it.
    over_.push_back(over_.back() + (highest > evaluator_.target() ? 1 : 0));
    highest = 0;
  }
  for (; position < made.problem.period; ++position) {
    highest = std::max(highest, load[At(position)]);
  }
  over_.push_back(over_.back() + (highest > evaluator_.target() ? 1 : 0));
}

/// The iteration as rehearsed, with the target held up to the agent, and with as much memory as the
/// load still takes behind it: what is not to be had there is taken up to the agent by a variable
/// that nobody uses.
double DqnEnvironment::Predict() {
  plan::Problem& problem = joint_.rewritten->problem;
  plan::ScheduleOptions schedule = ToScheduleOptions(question_.options);
  schedule.load_limit_bytes = std::max(evaluator_.target(), peak_bytes_);
  schedule.prefetch = joint_.prefetch;
  const bool ballast = peak_bytes_ > evaluator_.target() && op_ >= 0;
  if (ballast) {
    problem.variables.push_back({.size_bytes = peak_bytes_ - evaluator_.target(),
                                 .begin = 0,
                                 .end = MadePosition(op_) + 1});
  }
  const auto predicted = plan::PredictIteration(problem, joint_.swaps, question_.machine, schedule);
  if (ballast) problem.variables.pop_back();
  return predicted ? static_cast<double>(*predicted) : kNever;
}

/// Where a recorded op stands in the rewritten problem.
plan::Position DqnEnvironment::MadePosition(OpIndex op) const {
  const plan::Rewritten& made = *joint_.rewritten;
  for (std::size_t i = At(op); i < made.op_source.size(); ++i) {
    if (made.is_replay[i] == 0 && made.op_source[i] == op) return made.problem.ops[i].position;
  }
  return made.problem.period - 1;
}

bool DqnEnvironment::IsOverWithin(OpIndex from, OpIndex to) const {
  return from < to && over_[At(to)] > over_[At(from)];
}

/// Whether the candidate's variable would be away at a load above the target, in [from, to).
bool DqnEnvironment::Spans(std::size_t candidate, OpIndex from, OpIndex to) const {
  const plan::Gap& gap = candidates_[candidate].gap;
  if (gap.end < question_.problem.period) {
    return IsOverWithin(std::max(from, gap.after + 1), std::min(to, gap.before));
  }
  return IsOverWithin(std::max(from, gap.after + 1), to) ||
         IsOverWithin(from, std::min(to, gap.before));
}

/// Whether the candidate is in memory, not in use, and of use for what is ahead.
bool DqnEnvironment::IsValid(std::size_t candidate) const {
  const plan::Gap& gap = candidates_[candidate].gap;
  const auto end = static_cast<OpIndex>(question_.problem.ops.size()) + 1;
  const bool around = gap.end >= question_.problem.period;
  if (joint_.choices[gap_of_[candidate]] != Choice::kKeep) return false;
  if (gap.after > op_ && !(around && op_ < gap.before)) return false;
  return Spans(candidate, op_ + 1, end);
}

bool DqnEnvironment::blocked() const {
  return At(op_ + 2) < over_.size() && IsOverWithin(op_ + 1, op_ + 2);
}

/// Moves the agent to the first op from `from` on at which there is something to decide.
void DqnEnvironment::Advance(OpIndex from) {
  const auto last = static_cast<OpIndex>(question_.problem.ops.size()) - 1;
  const auto valid = [&](std::size_t candidate) { return IsValid(candidate); };
  while (over_.back() > 0) {
    for (; op_ <= last && !blocked(); ++op_) {
      if (op_ >= std::max(from, OpIndex{0}) && std::ranges::any_of(starts_[At(op_)], valid)) break;
    }
    ListValid();
    if (!state_.valid.empty()) return;
    failed_ = op_ > last || !SwapAnything();
    if (failed_) return;
  }
  done_ = true;
  state_ = {};
}

void DqnEnvironment::ListValid() {
  state_ = {};
  const plan::Problem& problem = question_.problem;
  const auto last = static_cast<OpIndex>(problem.ops.size()) - 1;
  if (op_ > last) return;
  if (op_ >= 0) state_.current = graph_.NodeAt(problem.ops[At(op_)].position);
  const bool must_act = blocked();
  for (const learn::Action& action : graph_.actions) {
    if (action.kind == ActionKind::kNothing) {
      if (!must_act) state_.valid.push_back(action.node);
      continue;
    }
    const auto candidate = At(action.candidate);
    if (action.kind == ActionKind::kRemove && banned_[candidate]) continue;
    if (!IsValid(candidate) || (must_act && !Spans(candidate, op_ + 1, op_ + 2))) continue;
    state_.valid.push_back(action.node);
  }
}

/// Swaps the largest variable that is away from the op ahead, be it a candidate or not, since the
/// agent has nothing left that it could do about that op. False if there is none.
bool DqnEnvironment::SwapAnything() {
  const std::vector<plan::Gap>& gaps = evaluator_.gaps();
  const OpIndex ahead = op_ + 1;
  std::optional<std::size_t> best;
  for (std::size_t g = 0; g < gaps.size(); ++g) {
    const bool around = gaps[g].end >= question_.problem.period;
    const bool behind = gaps[g].after < ahead;
    const bool spans = around ? behind || ahead < gaps[g].before : behind && ahead < gaps[g].before;
    if (!spans || joint_.choices[g] != Choice::kKeep) continue;
    if (!best || evaluator_.SizeOf(g) > evaluator_.SizeOf(*best)) best = g;
  }
  if (!best || !TryChoice(*best, Choice::kSwap)) return false;
  Measure();
  return true;
}

bool DqnEnvironment::TryChoice(std::size_t gap, Choice choice) {
  JointState next;
  next.choices = joint_.choices;
  next.horizon = joint_.horizon;
  next.prefetch = joint_.prefetch;
  next.choices[gap] = choice;
  if (!evaluator_.Evaluate(&next)) return false;
  joint_ = std::move(next);
  return true;
}

double DqnEnvironment::Take(NodeIndex node) {
  const learn::Action& action = graph_.actions[At(action_at_[At(node)])];
  OpIndex next = op_ + 1;
  if (action.kind != ActionKind::kNothing) {
    const auto candidate = At(action.candidate);
    const bool swap = action.kind == ActionKind::kSwap;
    if (!TryChoice(gap_of_[candidate], swap ? Choice::kSwap : Choice::kDrop)) {
      banned_[candidate] = true;
      next = op_;
    } else {
      Measure();
      if (swap) next = std::max(next, CopyOut(candidate));
    }
  }
  Advance(next);
  return failed_ ? -kFailure : Charge();
}

Attempt DqnEnvironment::Make(double below_ns, const std::function<bool()>& give_up) {
  const Try as_is{time_ns_, evaluator_.target(), joint_.prefetch};
  std::vector<Try> tries = ListTries(below_ns);
  if (std::ranges::find(tries, as_is) == tries.end()) tries.push_back(as_is);
  std::optional<Attempt> attempt;
  int made = 0;
  Bytes most = question_.options.limit_bytes;
  for (const Try& x : tries) {
    const bool last = &x == &tries.back();
    if (!last && (x.load_bytes > most || made == kMostTries)) continue;
    if (attempt && give_up()) break;
    Set(x);
    attempt = evaluator_.Make(joint_);
    const auto* misfit = std::get_if<plan::Misfit>(&attempt->made);
    // Where the host has no room, with less load even more would go there.
    if (misfit == nullptr || misfit->host) break;
    const double share = static_cast<double>(misfit->needed_bytes) /
                         static_cast<double>(question_.options.limit_bytes);
    most = static_cast<Bytes>((1 - kGiveWay * (share - 1)) * static_cast<double>(x.load_bytes));
    ++made;
  }
  Set(as_is);
  return std::move(*attempt);
}

void DqnEnvironment::Set(const Try& x) {
  evaluator_.set_target(x.load_bytes);
  joint_.prefetch = x.prefetch;
}

/// The fastest first, none that takes as long as `below_ns`.
std::vector<DqnEnvironment::Try> DqnEnvironment::ListTries(double below_ns) {
  std::vector<Try> tries;
  for (int k = 0; k < kMostLoads; ++k) {
    const double share = 1 - kLoadStep * k;
    const auto load =
        static_cast<Bytes>(share * static_cast<double>(question_.options.limit_bytes));
    if (load < peak_bytes_) break;
    for (const double prefetch : kPrefetches) {
      Set({0, load, prefetch});
      const double ns = Predict();
      if (ns < below_ns) tries.push_back({ns, load, prefetch});
    }
  }
  std::ranges::stable_sort(tries, {}, &Try::ns);
  return tries;
}

/// Sends a variable out; returns the op that begins when it has left, rounded up (section 4.6).
OpIndex DqnEnvironment::CopyOut(std::size_t candidate) {
  const Bytes size = evaluator_.SizeOf(gap_of_[candidate]);
  link_free_ns_ = std::max(link_free_ns_, start_ns_[At(std::max(op_, OpIndex{0}))]) +
                  question_.machine.out_ns(size);
  const auto place = std::lower_bound(start_ns_.begin(), start_ns_.end() - 1, link_free_ns_);
  return static_cast<OpIndex>(place - start_ns_.begin());
}

/// The reward: by how much the iteration has become shorter.
double DqnEnvironment::Charge() {
  const double before_ns = time_ns_;
  const double now_ns = Predict();
  if (now_ns == kNever) {
    // Some swap is too short to be of use. In the end that will not do.
    failed_ = done_;
    return failed_ ? -kFailure : 0;
  }
  time_ns_ = now_ns;
  return (before_ns - time_ns_) / (kRewardUnit * static_cast<double>(start_ns_.back()));
}

}  // namespace plimsoll::planners

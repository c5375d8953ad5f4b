// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/rehearsal.h"
#include "plimsoll/plan/schedule.h"
#include "plimsoll/planners/joint_search_internal.h"

namespace plimsoll::planners {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMostRehearsals = 4;

}  // namespace

JointSearch::JointSearch(const plan::Rewriter& rewriter, const plan::Machine& machine,
                         Bytes alignment, std::uint64_t seed)
    : rewriter_(rewriter),
      machine_(machine),
      gaps_(rewriter.gaps()),
      work_(rewriter.gaps().size() * rewriter.problem().ops.size()),
      base_ns_(rewriter.problem().iteration_ns()),
      sketch_(rewriter, alignment),
      random_(seed) {
  const plan::RewriteModel& model = rewriter.model();
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    double sum = rewriter.CanDrop(g) ? 0 : kNever;
    for (const plan::OpIndex op : model.writers[At(gaps_[g].variable)]) {
      if (op <= gaps_[g].after) sum += static_cast<double>(model.problem.ops[At(op)].duration_ns);
    }
    own_ns_.push_back(sum);
  }
  learned_.assign(gaps_.size(), kNever);
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (IsOfMoment(g)) moments_.push_back(g);
  }
  made_of_.resize(model.problem.variables.size());
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (own_ns_[g] == kNever) continue;
    for (const plan::OpIndex op : model.writers[At(gaps_[g].variable)]) {
      if (op > gaps_[g].after) break;
      for (const plan::RewriteModel::Use& use : model.uses[At(op)]) {
        const bool other = use.reads && use.variable != gaps_[g].variable;
        if (other && model.IsInside(use.variable)) made_of_[At(use.variable)].push_back(g);
      }
    }
  }
}

bool JointSearch::IsOfMoment(std::size_t gap) const {
  const plan::Gap& x = gaps_[gap];
  const bool around = x.before <= x.after;
  return around && plan::IsMoment(rewriter_.problem(), x.variable, x.before, x.after);
}

Bytes JointSearch::SizeOf(std::size_t gap) const {
  return rewriter_.problem().variables[At(gaps_[gap].variable)].size_bytes;
}

double JointSearch::CopyNs(std::size_t gap) const {
  const Bytes size = SizeOf(gap);
  return static_cast<double>(machine_.out_ns(size) + machine_.in_ns(size));
}

bool JointSearch::IsWithinHost(const Choices& choices) const {
  if (host_limit_ == kMaxBytes) return true;
  Bytes left = host_limit_;
  for (std::size_t g = 0; g < gaps_.size() && left >= 0; ++g) {
    if (choices.gaps[g] == Choice::kSwap) left -= SizeOf(g);
  }
  return left >= 0;
}

bool JointSearch::Draw(const Choices& choices, Nanoseconds below_ns) {
  ++evaluations_;
  return IsWithinHost(choices) && sketch_.Draw(choices, below_ns - base_ns_);
}

bool JointSearch::Weigh(const Choices& choices, Worth* worth, Nanoseconds below_ns) {
  if (!Draw(choices, below_ns)) return false;
  worth->excess = sketch_.highest_bytes() <= target_ ? 0 : sketch_.ExcessOver(target_);
  worth->replay_ns = sketch_.replay_ns();
  worth->time_ns = Worth::kNoTime;
  return true;
}

bool JointSearch::Time(const Choices& choices, Worth* worth, Nanoseconds below_ns, bool roughly) {
  if (!Weigh(choices, worth, below_ns)) return false;
  if (worth->excess <= 0) TimeDrawn(choices, worth, below_ns, roughly);
  return true;
}

void JointSearch::TimeDrawn(const Choices& choices, Worth* worth, Nanoseconds below_ns,
                            bool roughly) {
  worth->excess = 0;
  worth->replay_ns = sketch_.replay_ns();
  if (!roughly) {
    worth->time_ns = Rehearse(choices.prefetch);
    return;
  }
  worth->time_ns = estimator_.Run(sketch_.script(), machine_, target_, choices.prefetch, below_ns);
  useless_.clear();
  for (const std::size_t e : estimator_.useless()) useless_.push_back(sketch_.exit_gaps()[e]);
}

void JointSearch::KeepUseless(Choices* choices) const {
  for (const std::size_t g : useless_) choices->gaps[g] = Choice::kKeep;
}

/// Rehearses what is drawn. What is needed again before it is gone stays; if there is no room for
/// it, there is no time.
Nanoseconds JointSearch::Rehearse(double prefetch) {
  script_ = sketch_.script();
  exit_gaps_ = sketch_.exit_gaps();
  useless_.clear();
  Nanoseconds time_ns = Worth::kNoTime;
  for (int k = 0; k < kMostRehearsals; ++k) {
    time_ns = plan::Perform(script_, machine_, target_, prefetch, &outcomes_);
    std::size_t kept = 0;
    for (std::size_t e = 0; e < outcomes_.size(); ++e) {
      const plan::Outcome& outcome = outcomes_[e];
      const bool useless =
          outcome.cancelled || (outcome.timed && outcome.released >= outcome.acquired);
      if (useless && !Stay(script_.exits[e])) return Worth::kNoTime;
      if (useless) {
        useless_.push_back(exit_gaps_[e]);
      } else {
        exit_gaps_[kept] = exit_gaps_[e];
        script_.exits[kept++] = script_.exits[e];
      }
    }
    if (kept == script_.exits.size()) break;
    script_.exits.resize(kept);
    SaveAgain();
  }
  return time_ns;
}

/// What a useless exit would have saved, others must.
void JointSearch::SaveAgain() {
  for (std::size_t e = 0; e < script_.exits.size(); ++e) {
    const plan::VariableIndex v = gaps_[exit_gaps_[e]].variable;
    script_.exits[e].saves = script_.exits[e].saves ||
                             std::any_of(useless_.begin(), useless_.end(),
                                         [&](std::size_t g) { return gaps_[g].variable == v; });
  }
}

/// Gives an exit its bytes back. False if there is no room for them.
bool JointSearch::Stay(const plan::Exit& exit) {
  const auto steps = static_cast<plan::Slot>(script_.needs_bytes.size());
  const plan::Slot end = exit.before + (exit.around ? steps : 0);
  for (plan::Slot s = exit.after + 1; s < end; ++s) {
    Bytes& needs = script_.needs_bytes[At(s % steps)];
    needs += exit.held_bytes;
    if (needs > target_) return false;
  }
  return true;
}

}  // namespace plimsoll::planners

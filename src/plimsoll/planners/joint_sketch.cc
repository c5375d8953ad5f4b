// SPDX-License-Identifier: Apache-2.0
//
// What happens at the ops of a sketch, in their order. joint_sketch_replays.cc rebuilds what is not
// there, joint_sketch_exits.cc says what leaves and lines up the steps.
#include <algorithm>
#include <bit>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_sketch_internal.h"

namespace plimsoll::planners {
namespace {

using plan::Gap;
using plan::OpIndex;
using plan::RewriteModel;
using plan::Slot;
using plan::VariableIndex;

}  // namespace

Sketch::Sketch(const plan::Rewriter& rewriter, Bytes alignment)
    : model_(rewriter.model()), load_(rewriter.model(), alignment) {
  ListLives();
  ListOps();
  ListGaps();
  exits_of_.assign(lives_.size(), 0);
  marked_.assign(ops_.size() / 64 + 1, 0);
  relic_bytes_.assign(ops_.size() + 1, 0);
}

/// For whom every variable is there.
void Sketch::ListLives() {
  const std::size_t variables = model_.problem.variables.size();
  const auto ops = static_cast<OpIndex>(model_.problem.ops.size());
  lives_.resize(variables);
  for (std::size_t v = 0; v < variables; ++v) {
    Life& life = lives_[v];
    life.held_bytes = load_.held_bytes[v];
    life.inside = model_.IsInside(static_cast<VariableIndex>(v));
    life.death = ops + 1;
    life.free_before = ops;
    life.first_writer = static_cast<std::uint32_t>(writers_.size());
    writers_.insert(writers_.end(), model_.writers[v].begin(), model_.writers[v].end());
    life.end_writer = static_cast<std::uint32_t>(writers_.size());
  }
  for (OpIndex i = 0; i < ops; ++i) {
    for (std::size_t e = load_.first_event[At(i)]; e < load_.first_event[At(i) + 1]; ++e) {
      Life& life = LifeOf(model_.events[e].variable);
      if (!life.inside) continue;
      if (model_.events[e].is_malloc) {
        life.birth = i;
      } else {
        life.death = e < load_.first_malloc[At(i)] ? i : i + 1;
        life.free_before = i;
      }
    }
  }
}

void Sketch::ListOps() {
  for (std::size_t i = 0; i < model_.problem.ops.size(); ++i) {
    RecordedOp op;
    op.duration_ns = model_.problem.ops[i].duration_ns;
    op.scratch_bytes = load_.scratch_bytes[i];
    op.replayable = model_.replayable[i];
    op.first_use = static_cast<std::uint32_t>(uses_.size());
    uses_.insert(uses_.end(), model_.uses[i].begin(), model_.uses[i].end());
    op.end_use = static_cast<std::uint32_t>(uses_.size());
    ops_.push_back(op);
    durations_ns_.push_back(op.duration_ns);
  }
}

void Sketch::ListGaps() {
  const plan::Problem& problem = model_.problem;
  std::vector<std::vector<std::size_t>> before(ops_.size());
  for (std::size_t g = 0; g < model_.gaps.size(); ++g) {
    const Gap& gap = model_.gaps[g];
    const plan::Variable& variable = problem.variables[At(gap.variable)];
    const std::vector<OpIndex>& writers = model_.writers[At(gap.variable)];
    RecordedGap recorded{.variable = gap.variable, .after = gap.after, .before = gap.before};
    recorded.around = gap.end >= problem.period;
    recorded.was_there = gap.begin <= variable.begin || variable.persistent();
    recorded.writes = static_cast<std::int32_t>(
        std::upper_bound(writers.begin(), writers.end(), gap.after) - writers.begin());
    recorded.writer = recorded.writes > 0 ? writers[At(recorded.writes - 1)] : -1;
    const bool of_another_life = recorded.writes > 0 && gap.begin > variable.begin &&
                                 problem.ops[At(recorded.writer)].position < variable.begin;
    if (of_another_life) recorded.writer = plan::Exit::kAtLastUse;
    gaps_.push_back(recorded);
    if (recorded.around) around_.push_back(g);
    before[At(gap.before)].push_back(g);
  }
  // In the order in which the op uses their variables.
  std::vector<std::size_t> rank(problem.variables.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const std::vector<RewriteModel::Use>& uses = model_.uses[i];
    for (std::size_t k = 0; k < uses.size(); ++k) rank[At(uses[k].variable)] = k;
    std::sort(before[i].begin(), before[i].end(), [&](std::size_t a, std::size_t b) {
      return rank[At(gaps_[a].variable)] < rank[At(gaps_[b].variable)];
    });
  }
  gaps_before_ = GapLists(before);
  gaps_after_ = GapLists(model_.gaps_after);
}

Sketch::GapLists::GapLists(const std::vector<std::vector<std::size_t>>& lists) {
  first.push_back(0);
  for (const std::vector<std::size_t>& list : lists) {
    for (const std::size_t g : list) gaps.push_back(static_cast<std::uint32_t>(g));
    first.push_back(static_cast<std::uint32_t>(gaps.size()));
  }
}

bool Sketch::Draw(const Choices& choices, Nanoseconds most_replay_ns) {
  most_replay_ns_ = most_replay_ns;
  Start(choices);
  if (!RunMarked()) return false;
  step_ = static_cast<Slot>(ops_.size() + replays_.size());
  CloseAround();
  AddExits();
  LineUp();
  return true;
}

/// Forgets the drawing before, and marks the ops at which something happens.
void Sketch::Start(const Choices& choices) {
  choices_ = &choices;
  script_.cyclic = model_.problem.cyclic;
  for (const VariableIndex v : stirred_) {
    Life& life = LifeOf(v);
    if (life.relic_end >= 0 && life.death == life.free_before) relic_bytes_[At(life.death)] = 0;
    life.dropped = life.goes_around = false;
    life.trip = life.rebuilt_at = life.relic_end = -1;
  }
  stirred_.clear();
  change_bytes_.assign(ops_.size() + 1, 0);
  replays_.clear();
  instances_.clear();
  holders_.clear();
  trips_.clear();
  revenants_.clear();
  late_.clear();
  gap_replay_ns_.assign(gaps_.size(), 0);
  replays_left_ = static_cast<std::int64_t>(4 * ops_.size());
  replay_ns_ = 0;
  std::fill(marked_.begin(), marked_.end(), std::uint64_t{0});
  for (std::size_t g = 0; g < gaps_.size(); ++g) {
    if (choices.gaps[g] == Choice::kKeep) continue;
    Mark(gaps_[g].after);
    Mark(gaps_[g].before);
  }
  for (const std::size_t g : around_) {
    if (choices.gaps[g] != Choice::kSwap) continue;
    Life& life = LifeOf(gaps_[g].variable);
    life.trip = static_cast<std::int32_t>(trips_.size());
    life.goes_around = true;
    stirred_.push_back(gaps_[g].variable);
    trips_.push_back({.gap = g, .around = true});
  }
  around_count_ = trips_.size();
}

bool Sketch::RunMarked() {
  for (std::size_t w = 0; w < marked_.size(); ++w) {
    for (std::uint64_t bits = marked_[w]; bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits);
      if (!RunRecorded(static_cast<OpIndex>(w * 64) + bit)) return false;
    }
  }
  return true;
}

/// Runs a recorded op, after what it needs has been brought back.
bool Sketch::RunRecorded(OpIndex op) {
  current_ = op;
  const std::size_t replays = replays_.size();
  step_ = op + static_cast<Slot>(replays);
  if (!BringBack(op)) return false;
  if (replays_.size() > replays) late_.emplace_back(op, static_cast<Slot>(replays_.size()));
  for (const std::uint32_t g : gaps_before_[op]) {
    if (LifeOf(gaps_[g].variable).trip >= 0) EndTrip(gaps_[g].variable);
  }
  ++step_;
  for (const std::uint32_t g : gaps_after_[op]) {
    if (choices_->gaps[g] == Choice::kSwap) {
      OpenTrip(g);
    } else if (choices_->gaps[g] == Choice::kDrop) {
      Life& life = LifeOf(gaps_[g].variable);
      Change(step_, -life.held_bytes);
      life.dropped = true;
      life.gap = static_cast<std::int32_t>(g);
      stirred_.push_back(gaps_[g].variable);
    }
  }
  return true;
}

/// How far recorded ops are behind because of replays: the last of them before `op`.
Slot Sketch::BehindAt(OpIndex op) const {
  if (late_.empty() || late_.back().first < op) return late_.empty() ? 0 : late_.back().second;
  const auto next = std::lower_bound(late_.begin(), late_.end(), std::pair(op, Slot{0}));
  return next == late_.begin() ? 0 : std::prev(next)->second;
}

/// The step before which a variable was freed.
Slot Sketch::FreedAt(const Life& life) const {
  const OpIndex op = life.free_before;
  const bool at_once = life.death == op;
  return op + BehindAt(at_once ? op : op + 1);
}

}  // namespace plimsoll::planners

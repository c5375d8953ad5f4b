// SPDX-License-Identifier: Apache-2.0
//
// Replays of a sketch: how what was dropped is rebuilt. See plan/rewrite.cc, which does the same
// with a problem.
#include <algorithm>
#include <span>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_sketch_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::RewriteModel;
using plan::VariableIndex;

/// Ops use more variables than this only if they update all weights at once.
constexpr std::size_t kMostUses = 128;

}  // namespace

/// How many writes a variable has seen when the op at hand is to run.
std::int32_t Sketch::VersionOf(const Life& life) const {
  std::uint32_t end = life.end_writer;
  while (end > life.first_writer && writers_[end - 1] >= current_) --end;
  return static_cast<std::int32_t>(end - life.first_writer);
}

/// Who holds what recorded ops want of a variable.
Sketch::Holder Sketch::HolderOf(VariableIndex v) const {
  const Life& life = LifeOf(v);
  if (!life.inside) return kHere;
  if (life.birth >= current_) return kNobody;
  if (current_ < life.death) return life.dropped ? kNobody : kHere;
  return !choices_->lingers.empty() && choices_->lingers[At(v)] ? kRelic : kNobody;
}

/// Rebuilds what the op uses and does not find.
bool Sketch::BringBack(OpIndex op) {
  for (const std::uint32_t g : gaps_before_[op]) {
    const VariableIndex v = gaps_[g].variable;
    Life& life = LifeOf(v);
    if (!life.dropped) continue;
    const Nanoseconds before = replay_ns_;
    const Holder rebuilt = Provide(v, gaps_[At(life.gap)].writes, false);
    if (rebuilt == kFailed) return false;
    gap_replay_ns_[At(life.gap)] += replay_ns_ - before;
    if (rebuilt >= 0) instances_[At(rebuilt)].variable = -1;
    if (life.dropped) life.rebuilt_at = step_ - 1;
    life.dropped = false;
  }
  if (!instances_.empty()) EndInstances();
  return true;
}

/// What was rebuilt on the way and does not stay goes right behind its last use.
void Sketch::EndInstances() {
  for (const Instance& x : instances_) {
    if (x.variable >= 0) Change(x.last_use + 1, -LifeOf(x.variable).held_bytes);
  }
  instances_.clear();
}

Sketch::Holder Sketch::Provide(VariableIndex v, std::int32_t version, bool own) {
  if (own) return Rebuild(v, version, own);
  const Holder holder = HolderOf(v);
  const bool current = holder != kNobody && VersionOf(LifeOf(v)) == version;
  if (current && holder == kHere) return kHere;
  for (std::size_t k = instances_.size(); k-- > 0;) {
    if (instances_[k].variable == v && instances_[k].version == version) {
      return static_cast<Holder>(k);
    }
  }
  if (current && holder == kRelic) return kRelic;
  return Rebuild(v, version, own);
}

Sketch::Holder Sketch::Rebuild(VariableIndex v, std::int32_t version, bool own) {
  const Life& life = LifeOf(v);
  const bool has_writers =
      life.end_writer - life.first_writer >= static_cast<std::uint32_t>(version);
  if (!life.inside || version == 0 || !has_writers) return kFailed;
  const Nanoseconds before = replay_ns_;
  Holder rebuilt = kNobody;
  for (std::int32_t k = 0; k < version; ++k) {
    rebuilt = Replay(writers_[life.first_writer + static_cast<std::uint32_t>(k)], v, rebuilt);
    if (rebuilt == kFailed) return kFailed;
  }
  if (current_ >= life.death) revenants_.push_back({v, replay_ns_ - before});
  if (own) return rebuilt;
  Keep(v, version, rebuilt);
  return HolderOf(v) == kHere && VersionOf(life) == version ? kHere : rebuilt;
}

/// Notes who holds a version: for recorded ops if it is the one that they want, else for as long
/// as replays need it.
void Sketch::Keep(VariableIndex v, std::int32_t version, Holder instance) {
  Life& life = LifeOf(v);
  if (life.dropped && VersionOf(life) == version && IsNear(v)) {
    life.dropped = false;
    life.rebuilt_at = step_ - 1;
    instances_[At(instance)].variable = -1;
  } else {
    instances_[At(instance)].version = version;
  }
}

/// Whether the next recorded op to use a variable is not too far ahead.
bool Sketch::IsNear(VariableIndex v) const {
  if (choices_->horizon == plan::Rewriter::kFar) return true;
  const std::vector<OpIndex>& users = model_.users[At(v)];
  const auto next = std::lower_bound(users.begin(), users.end(), current_);
  return next != users.end() && *next - current_ <= choices_->horizon;
}

Sketch::Holder Sketch::AddInstance(VariableIndex v) {
  instances_.push_back({v, -1, step_});
  Change(step_, LifeOf(v).held_bytes);
  return static_cast<Holder>(instances_.size()) - 1;
}

/// A replay that is the next step uses what somebody holds.
void Sketch::Touch(VariableIndex v, Holder holder) {
  if (holder >= 0) {
    instances_[At(holder)].last_use = step_;
    return;
  }
  Life& life = LifeOf(v);
  if (holder == kRelic) {
    if (life.relic_end < 0) {
      life.relic_end = FreedAt(life);
      stirred_.push_back(v);
      if (life.death == life.free_before) relic_bytes_[At(life.death)] += life.held_bytes;
    }
    if (life.relic_end > step_) return;
    Change(life.relic_end, life.held_bytes);
    Change(step_ + 1, -life.held_bytes);
    life.relic_end = step_ + 1;
  } else if (life.trip >= 0) {
    Trip& trip = trips_[At(life.trip)];
    if (trip.last < 0) trip.first = step_;
    if (trip.last >= 0) Stretch(&trip, trip.last, step_);
    trip.last = step_;
  }
}

/// Runs an op again for the sake of `target`, of which `rebuilt` holds the version before, if it
/// has one. Returns who holds it now.
Sketch::Holder Sketch::Replay(OpIndex op, VariableIndex target, Holder rebuilt) {
  const RecordedOp& recorded = ops_[At(op)];
  const std::span<const RewriteModel::Use> uses(uses_.data() + recorded.first_use,
                                                uses_.data() + recorded.end_use);
  if (!recorded.replayable || --replays_left_ < 0 || uses.size() > kMostUses) return kFailed;
  const std::size_t first = holders_.size();
  holders_.resize(first + uses.size(), kNobody);
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const RewriteModel::Use& use = uses[k];
    if (use.variable == target ? rebuilt != kNobody : use.state) continue;
    if (use.version == 0 && use.writes) continue;
    const Holder holder = Provide(use.variable, use.version, use.writes);
    if (holder == kFailed) return kFailed;
    holders_[first + k] = holder;
  }
  Bytes passing_bytes = recorded.scratch_bytes;
  Holder result = rebuilt;
  Holder* const holders = holders_.data() + first;
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const RewriteModel::Use& use = uses[k];
    if (use.variable == target && rebuilt != kNobody) {
      holders[k] = rebuilt;
    } else if (holders[k] == kNobody) {
      if (use.state && use.variable != target) {
        passing_bytes += LifeOf(use.variable).held_bytes;
        continue;
      }
      holders[k] = AddInstance(use.variable);
    }
    if (use.variable == target) result = holders[k];
    Touch(use.variable, holders[k]);
  }
  AddReplay(recorded.duration_ns, load_.between_bytes[At(current_)] + passing_bytes);
  if (replay_ns_ > most_replay_ns_) return kFailed;
  for (std::size_t k = 0; k < uses.size(); ++k) {
    if (!uses[k].writes || uses[k].state || uses[k].variable == target) continue;
    if (holders[k] >= 0) Keep(uses[k].variable, uses[k].version + 1, holders[k]);
  }
  holders_.resize(first);
  return result;
}

void Sketch::AddReplay(Nanoseconds duration_ns, Bytes base_bytes) {
  replays_.push_back({duration_ns, base_bytes});
  change_bytes_.push_back(0);
  replay_ns_ += duration_ns;
  ++step_;
}

}  // namespace plimsoll::planners

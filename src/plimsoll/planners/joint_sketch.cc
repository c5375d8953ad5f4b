// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
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

/// Ops use more variables than this only if they update all weights at once.
constexpr std::size_t kUsesAtHand = 24;

}  // namespace

Sketch::Sketch(const plan::Rewriter& rewriter, Bytes alignment)
    : rewriter_(rewriter), model_(rewriter.model()), load_(rewriter.model(), alignment) {
  const plan::Problem& problem = model_.problem;
  const std::size_t variables = problem.variables.size();
  for (std::size_t v = 0; v < variables; ++v) {
    inside_.push_back(model_.IsInside(static_cast<VariableIndex>(v)) ? 1 : 0);
  }
  ListLives();
  dropped_.assign(variables, 0);
  gap_of_.assign(variables, -1);
  trip_of_.assign(variables, -1);
  goes_around_.assign(variables, 0);
  rebuilt_at_.assign(variables, -1);
  relic_end_.assign(variables, -1);
  exits_of_.assign(variables, 0);
  first_writer_.push_back(0);
  for (const std::vector<OpIndex>& writers : model_.writers) {
    writers_.insert(writers_.end(), writers.begin(), writers.end());
    first_writer_.push_back(writers_.size());
  }
  marked_.assign(problem.ops.size(), 0);
  for (const plan::Op& op : problem.ops) durations_ns_.push_back(op.duration_ns);
  ListGapsBefore();
  for (std::size_t g = 0; g < model_.gaps.size(); ++g) {
    const Gap& gap = model_.gaps[g];
    if (gap.end >= problem.period) around_.push_back(g);
    const std::vector<OpIndex>& writers = model_.writers[At(gap.variable)];
    writes_until_.push_back(static_cast<std::int32_t>(
        std::upper_bound(writers.begin(), writers.end(), gap.after) - writers.begin()));
  }
}

/// For whom every variable is there.
void Sketch::ListLives() {
  const std::size_t variables = model_.problem.variables.size();
  const auto ops = static_cast<OpIndex>(model_.problem.ops.size());
  birth_.assign(variables, -1);
  death_.assign(variables, ops + 1);
  free_before_.assign(variables, ops);
  for (OpIndex i = 0; i < ops; ++i) {
    for (std::size_t e = load_.first_event[At(i)]; e < load_.first_event[At(i) + 1]; ++e) {
      const std::size_t v = At(model_.events[e].variable);
      if (inside_[v] == 0) continue;
      if (model_.events[e].is_malloc) {
        birth_[v] = i;
      } else {
        death_[v] = e < load_.first_malloc[At(i)] ? i : i + 1;
        free_before_[v] = i;
      }
    }
  }
}

/// Lists the gaps that end at every op, in the order in which it uses their variables.
void Sketch::ListGapsBefore() {
  gaps_before_.resize(model_.problem.ops.size());
  for (std::size_t g = 0; g < model_.gaps.size(); ++g) {
    gaps_before_[At(model_.gaps[g].before)].push_back(g);
  }
  std::vector<std::size_t> rank(model_.problem.variables.size());
  for (std::size_t i = 0; i < gaps_before_.size(); ++i) {
    const std::vector<RewriteModel::Use>& uses = model_.uses[i];
    for (std::size_t k = 0; k < uses.size(); ++k) rank[At(uses[k].variable)] = k;
    std::sort(gaps_before_[i].begin(), gaps_before_[i].end(), [&](std::size_t a, std::size_t b) {
      return rank[At(model_.gaps[a].variable)] < rank[At(model_.gaps[b].variable)];
    });
  }
}

bool Sketch::Draw(const Choices& choices, Nanoseconds most_replay_ns) {
  Start(choices);
  const auto ops = static_cast<OpIndex>(model_.problem.ops.size());
  OpIndex begin = 0;
  for (OpIndex i = 0; i < ops; ++i) {
    if (marked_[At(i)] == 0) continue;
    AddRecorded(begin, i);
    begin = i + 1;
    if (!RunRecorded(i) || replay_ns_ > most_replay_ns) return false;
  }
  AddRecorded(begin, ops);
  CloseAround();
  AddExits();
  SumUp();
  return true;
}

double Sketch::ExcessOver(Bytes limit_bytes) const {
  double excess = static_cast<double>(std::max<Bytes>(tail_bytes_ - limit_bytes, 0));
  for (const Bytes bytes : script_.needs_bytes) {
    excess += static_cast<double>(std::max<Bytes>(bytes - limit_bytes, 0));
  }
  return excess;
}

void Sketch::ListNeeds(std::vector<Bytes>* needs_bytes) const {
  needs_bytes->resize(durations_ns_.size());
  std::size_t step = 0;
  auto late = late_.begin();
  Slot behind = 0;
  for (std::size_t i = 0; i < durations_ns_.size(); ++i) {
    if (late != late_.end() && At(late->first) == i) behind = (late++)->second;
    Bytes highest = 0;
    for (; step <= i + At(behind); ++step) {
      highest = std::max(highest, script_.needs_bytes[step]);
    }
    (*needs_bytes)[i] = highest;
  }
}

/// Forgets the drawing before, and marks the ops at which something happens.
void Sketch::Start(const Choices& choices) {
  choices_ = &choices;
  script_.cyclic = model_.problem.cyclic;
  script_.durations_ns.clear();
  base_bytes_.clear();
  change_bytes_.assign(1, 0);
  instances_.clear();
  trips_.clear();
  revenants_.clear();
  late_.clear();
  gap_replay_ns_.assign(model_.gaps.size(), 0);
  replays_left_ = static_cast<std::int64_t>(4 * model_.problem.ops.size());
  replay_ns_ = 0;
  std::fill(marked_.begin(), marked_.end(), std::uint8_t{0});
  std::fill(dropped_.begin(), dropped_.end(), std::uint8_t{0});
  std::fill(goes_around_.begin(), goes_around_.end(), std::uint8_t{0});
  std::fill(rebuilt_at_.begin(), rebuilt_at_.end(), -1);
  std::fill(trip_of_.begin(), trip_of_.end(), -1);
  if (!choices.lingers.empty()) relic_end_.assign(relic_end_.size(), -1);
  for (std::size_t g = 0; g < model_.gaps.size(); ++g) {
    if (choices.gaps[g] == Choice::kKeep) continue;
    marked_[At(model_.gaps[g].after)] = marked_[At(model_.gaps[g].before)] = 1;
  }
  for (const std::size_t g : around_) {
    if (choices.gaps[g] != Choice::kSwap) continue;
    trip_of_[At(model_.gaps[g].variable)] = static_cast<std::int32_t>(trips_.size());
    goes_around_[At(model_.gaps[g].variable)] = 1;
    trips_.push_back({.gap = g, .around = true});
  }
  around_count_ = trips_.size();
}

void Sketch::AddStep(Nanoseconds duration_ns, Bytes base_bytes) {
  script_.durations_ns.push_back(duration_ns);
  base_bytes_.push_back(base_bytes);
  change_bytes_.push_back(0);
}

/// Recorded ops at which nothing happens.
void Sketch::AddRecorded(OpIndex begin, OpIndex end) {
  script_.durations_ns.insert(script_.durations_ns.end(), durations_ns_.begin() + begin,
                              durations_ns_.begin() + end);
  base_bytes_.insert(base_bytes_.end(), load_.slot_bytes.begin() + begin,
                     load_.slot_bytes.begin() + end);
  change_bytes_.resize(script_.durations_ns.size() + 1, 0);
}

/// Runs a recorded op, after what it needs has been brought back.
bool Sketch::RunRecorded(OpIndex op) {
  const std::size_t i = At(op);
  current_ = op;
  const Slot first = step();
  if (!BringBack(op)) return false;
  const bool replays = step() > first;
  if (replays) {
    late_.emplace_back(op, step() - op);
    base_bytes_[At(first)] = std::max(base_bytes_[At(first)], load_.head_bytes[i]);
  }
  for (const std::size_t g : gaps_before_[i]) {
    if (trip_of_[At(model_.gaps[g].variable)] >= 0) EndTrip(model_.gaps[g].variable);
  }
  AddStep(durations_ns_[i], replays ? load_.rest_bytes[i] : load_.slot_bytes[i]);
  for (const std::size_t g : model_.gaps_after[i]) {
    const std::size_t v = At(model_.gaps[g].variable);
    if (choices_->gaps[g] == Choice::kSwap) {
      OpenTrip(g);
    } else if (choices_->gaps[g] == Choice::kDrop) {
      Change(step(), -load_.held_bytes[v]);
      dropped_[v] = 1;
      gap_of_[v] = static_cast<std::int32_t>(g);
    }
  }
  return true;
}

/// The step before which a variable was freed.
Slot Sketch::FreedAt(VariableIndex v) const {
  const OpIndex op = free_before_[At(v)];
  const bool at_once = death_[At(v)] == op;
  // How far recorded ops are behind because of replays.
  const auto next = at_once
                        ? std::lower_bound(late_.begin(), late_.end(), std::pair(op, Slot{0}))
                        : std::lower_bound(late_.begin(), late_.end(), std::pair(op + 1, Slot{0}));
  return op + (next == late_.begin() ? 0 : std::prev(next)->second);
}

/// How many writes a variable has seen when the op at hand is to run.
std::int32_t Sketch::VersionOf(VariableIndex v) const {
  const std::size_t first = first_writer_[At(v)];
  std::size_t end = first_writer_[At(v) + 1];
  while (end > first && writers_[end - 1] >= current_) --end;
  return static_cast<std::int32_t>(end - first);
}

/// Who holds what recorded ops want of a variable.
Sketch::Holder Sketch::HolderOf(VariableIndex v) const {
  const std::size_t x = At(v);
  if (inside_[x] == 0) return kHere;
  if (birth_[x] >= current_) return kNobody;
  if (current_ < death_[x]) return dropped_[x] != 0 ? kNobody : kHere;
  return !choices_->lingers.empty() && choices_->lingers[x] ? kRelic : kNobody;
}

/// Rebuilds what the op uses and does not find.
bool Sketch::BringBack(OpIndex op) {
  for (const std::size_t g : gaps_before_[At(op)]) {
    const VariableIndex variable = model_.gaps[g].variable;
    const std::size_t v = At(variable);
    if (dropped_[v] == 0) continue;
    const Nanoseconds before = replay_ns_;
    const Holder rebuilt = Provide(variable, writes_until_[At(gap_of_[v])], false);
    if (rebuilt == kFailed) return false;
    gap_replay_ns_[At(gap_of_[v])] += replay_ns_ - before;
    if (rebuilt >= 0) instances_[At(rebuilt)].variable = -1;
    if (dropped_[v] != 0) rebuilt_at_[v] = step() - 1;
    dropped_[v] = 0;
  }
  if (!instances_.empty()) EndInstances();
  return true;
}

/// What was rebuilt on the way and does not stay goes right behind its last use.
void Sketch::EndInstances() {
  for (const Instance& x : instances_) {
    if (x.variable >= 0) Change(x.last_use + 1, -load_.held_bytes[At(x.variable)]);
  }
  instances_.clear();
}

/// See plan/rewrite.cc, which does the same with a problem.
Sketch::Holder Sketch::Provide(VariableIndex v, std::int32_t version, bool own) {
  const std::size_t x = At(v);
  const bool current = VersionOf(v) == version;
  const Holder holder = HolderOf(v);
  if (!own) {
    if (current && holder == kHere) return kHere;
    for (std::size_t k = instances_.size(); k-- > 0;) {
      if (instances_[k].variable == v && instances_[k].version == version) {
        return static_cast<Holder>(k);
      }
    }
    if (current && holder == kRelic) return kRelic;
  }
  if (inside_[x] == 0 || version == 0 || model_.writers[x].size() < At(version)) return kFailed;
  const Nanoseconds before = replay_ns_;
  Holder rebuilt = kNobody;
  for (std::int32_t k = 0; k < version; ++k) {
    rebuilt = Replay(model_.writers[x][At(k)], v, rebuilt);
    if (rebuilt == kFailed) return kFailed;
  }
  if (current_ >= death_[x]) revenants_.push_back({v, replay_ns_ - before});
  if (!own) Keep(v, version, rebuilt);
  return !own && current && HolderOf(v) == kHere ? kHere : rebuilt;
}

/// Notes who holds a version: for recorded ops if it is the one that they want, else for as long
/// as replays need it.
void Sketch::Keep(VariableIndex v, std::int32_t version, Holder instance) {
  const std::size_t x = At(v);
  if (dropped_[x] != 0 && VersionOf(v) == version && IsNear(v)) {
    dropped_[x] = 0;
    rebuilt_at_[x] = step() - 1;
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
  instances_.push_back({v, -1, step()});
  Change(step(), load_.held_bytes[At(v)]);
  return static_cast<Holder>(instances_.size()) - 1;
}

/// A replay that is the next step uses what somebody holds.
void Sketch::Touch(VariableIndex v, Holder holder) {
  const std::size_t x = At(v);
  if (holder >= 0) {
    instances_[At(holder)].last_use = step();
  } else if (holder == kRelic) {
    if (relic_end_[x] < 0) relic_end_[x] = FreedAt(v);
    if (relic_end_[x] > step()) return;
    Change(relic_end_[x], load_.held_bytes[x]);
    Change(step() + 1, -load_.held_bytes[x]);
    relic_end_[x] = step() + 1;
  } else if (trip_of_[x] >= 0) {
    Trip& trip = trips_[At(trip_of_[x])];
    if (trip.last < 0) trip.first = step();
    if (trip.last >= 0) Stretch(&trip, trip.last, step());
    trip.last = step();
  }
}

/// Runs an op again for the sake of `target`, of which `rebuilt` holds the version before, if it
/// has one. Returns who holds it now.
Sketch::Holder Sketch::Replay(OpIndex op, VariableIndex target, Holder rebuilt) {
  const std::size_t i = At(op);
  const std::vector<RewriteModel::Use>& uses = model_.uses[i];
  if (!model_.replayable[i] || --replays_left_ < 0 || uses.size() > kUsesAtHand) return kFailed;
  std::array<Holder, kUsesAtHand> holders;
  holders.fill(kNobody);
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const RewriteModel::Use& use = uses[k];
    if (use.variable == target ? rebuilt != kNobody : use.state) continue;
    if (use.version == 0 && use.writes) continue;
    holders[k] = Provide(use.variable, use.version, use.writes);
    if (holders[k] == kFailed) return kFailed;
  }
  Bytes passing_bytes = load_.scratch_bytes[i];
  Holder result = rebuilt;
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const RewriteModel::Use& use = uses[k];
    if (use.variable == target && rebuilt != kNobody) {
      holders[k] = rebuilt;
    } else if (holders[k] == kNobody) {
      if (use.state && use.variable != target) {
        passing_bytes += load_.held_bytes[At(use.variable)];
        continue;
      }
      holders[k] = AddInstance(use.variable);
    }
    if (use.variable == target) result = holders[k];
    Touch(use.variable, holders[k]);
  }
  AddStep(model_.problem.ops[i].duration_ns, load_.between_bytes[At(current_)] + passing_bytes);
  replay_ns_ += model_.problem.ops[i].duration_ns;
  for (std::size_t k = 0; k < uses.size(); ++k) {
    if (!uses[k].writes || uses[k].state || uses[k].variable == target) continue;
    if (holders[k] >= 0) Keep(uses[k].variable, uses[k].version + 1, holders[k]);
  }
  return result;
}

}  // namespace plimsoll::planners

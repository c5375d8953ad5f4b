// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rewrite.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

using Use = RewriteModel::Use;
using Event = RewriteModel::Event;

constexpr VariableIndex kNobody = -1;

/// One rewriting. Walks through the recorded iteration and writes the new one.
class Pass {
 public:
  Pass(const RewriteModel& model, const std::vector<bool>& dropped, const RewriteOptions& options)
      : model_(model),
        old_(model.problem),
        dropped_(dropped),
        options_(options),
        replays_left_(options.most_replays),
        holder_(old_.variables.size(), kNobody),
        version_(old_.variables.size(), 0),
        alive_(old_.variables.size(), false),
        gap_of_(old_.variables.size(), -1),
        relic_(old_.variables.size(), kNobody) {
    result_.gap_replay_ns.assign(model.gaps.size(), 0);
    new_position_.assign(At(old_.period) + 1, 0);
  }

  std::optional<Rewritten> Run() {
    StartProblem();
    for (std::size_t i = 0; i < old_.ops.size() && !failed_; ++i) RunRecorded(i);
    if (failed_) return std::nullopt;
    TakeEvents(old_.period);
    FinishProblem();
    return std::move(result_);
  }

 private:
  Problem& made() { return result_.problem; }

  void StartProblem() {
    made().cyclic = old_.cyclic;
    made().laps = old_.laps;
    made().iterations = old_.iterations;
    made().first_event = old_.first_event;
    made().op_names = old_.op_names;
    for (std::size_t v = 0; v < old_.variables.size(); ++v) {
      const auto index = static_cast<VariableIndex>(v);
      if (old_.variables[v].persistent()) {
        holder_[v] = AddVariable(index);
        alive_[v] = true;
      } else if (!model_.IsInside(index)) {
        // Around the end: there from the beginning on, whenever its malloc comes.
        holder_[v] = AddVariable(index);
        alive_[v] = true;
      }
    }
    around_count_ = made().variables.size();
  }

  VariableIndex AddVariable(VariableIndex source) {
    Variable variable = old_.variables[At(source)];
    variable.begin = next_position_;
    variable.end = -1;
    made().variables.push_back(variable);
    result_.variable_source.push_back(source);
    last_use_.push_back(next_position_);
    return static_cast<VariableIndex>(made().variables.size()) - 1;
  }

  /// Malloc of something that only replays need, right before its first op.
  VariableIndex AddScratch(VariableIndex source) {
    const VariableIndex scratch = AddVariable(source);
    Variable& variable = made().variables.back();
    if (variable.persistent()) variable.kind = VariableKind::kTemporary;
    ++next_position_;
    return scratch;
  }

  /// Ends a variable right behind the last op that has used it.
  void EndAfterLastUse(VariableIndex v) {
    Variable& variable = made().variables[At(v)];
    variable.end = std::max(last_use_[At(v)], variable.begin) + 1;
  }

  /// Takes over recorded mallocs and frees up to a position.
  void TakeEvents(Position end) {
    for (; next_event_ < model_.events.size() && model_.events[next_event_].position < end;
         ++next_event_) {
      TakeEvent(model_.events[next_event_]);
    }
  }
  void TakeEvent(const Event& event) {
    const std::size_t v = At(event.variable);
    new_position_[At(event.position)] = next_position_;
    if (model_.IsInside(event.variable)) {
      if (event.is_malloc) {
        holder_[v] = AddVariable(event.variable);
      } else if (holder_[v] != kNobody) {
        made().variables[At(holder_[v])].end = next_position_;
        if (!options_.lingers.empty() && options_.lingers[v]) relic_[v] = holder_[v];
        holder_[v] = kNobody;
      }
      alive_[v] = event.is_malloc;
      if (event.is_malloc) version_[v] = 0;
    } else if (event.is_malloc) {
      made().variables[At(holder_[v])].begin = next_position_;
    }
    ++next_position_;
  }

  /// Runs a recorded op, after what it needs has been brought back.
  void RunRecorded(std::size_t i) {
    const Op& op = old_.ops[i];
    current_op_ = static_cast<OpIndex>(i);
    // Frees come first, then replays, so that these do not meet the op's own new variables.
    while (next_event_ < model_.events.size() &&
           model_.events[next_event_].position < op.position &&
           !model_.events[next_event_].is_malloc) {
      TakeEvent(model_.events[next_event_++]);
    }
    for (const Use& use : model_.uses[i]) {
      if (holder_[At(use.variable)] != kNobody || !alive_[At(use.variable)]) continue;
      const Nanoseconds before = result_.replay_ns;
      const VariableIndex rebuilt = Provide(use.variable, version_[At(use.variable)], false);
      if (failed_) return;
      const std::int64_t gap = gap_of_[At(use.variable)];
      if (gap >= 0) result_.gap_replay_ns[At(gap)] += result_.replay_ns - before;
      holder_[At(use.variable)] = rebuilt;
    }
    for (const auto& [content, scratch] : temporaries_) {
      if (holder_[At(content.first)] != scratch) EndAfterLastUse(scratch);
    }
    temporaries_.clear();
    TakeEvents(op.position);
    new_position_[At(op.position)] = next_position_;
    EmitOp(i, false, [&](VariableIndex v) { return holder_[At(v)]; });
    for (const Use& use : model_.uses[i]) {
      if (use.writes) ++version_[At(use.variable)];
    }
    for (const std::size_t g : model_.gaps_after[i]) {
      if (dropped_[g]) Drop(g);
    }
  }

  void Drop(std::size_t g) {
    const auto v = At(model_.gaps[g].variable);
    if (holder_[v] == kNobody) return;
    EndAfterLastUse(holder_[v]);
    holder_[v] = kNobody;
    gap_of_[v] = static_cast<std::int64_t>(g);
  }

  static std::string NotThere(VariableIndex v, std::size_t op) {
    return "variable " + std::to_string(v) + " is not there when op " + std::to_string(op) +
           " touches it: its malloc must come before the op, its free behind it";
  }

  template <typename Map>
  void EmitOp(std::size_t source, bool replay, Map&& map) {
    Op op = old_.ops[source];
    const std::int64_t first = op.first_operand;
    op.position = next_position_++;
    op.first_operand = static_cast<std::int64_t>(made().operands.size());
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = old_.operands[At(first + k)];
      const VariableIndex mapped = map(operand.variable);
      PLIMSOLL_CHECK(mapped != kNobody, NotThere(operand.variable, source));
      made().operands.push_back({mapped, operand.age});
      last_use_[At(mapped)] = op.position;
      Position& end = made().variables[At(mapped)].end;
      if (end >= 0) end = std::max(end, op.position + 1);  // It lingers.
    }
    made().ops.push_back(op);
    result_.op_source.push_back(static_cast<OpIndex>(source));
    result_.is_replay.push_back(replay ? 1 : 0);
    if (replay) result_.replay_ns += op.duration_ns;
  }

  /// Returns a variable that holds a version of a recorded one; rebuilds it if there is none. With
  /// `own`, the caller is going to write it, so it must be nobody else's.
  VariableIndex Provide(VariableIndex v, std::int32_t version, bool own) {
    const std::size_t x = At(v);
    const bool current = version_[x] == version && alive_[x];
    if (!own) {
      if (current && holder_[x] != kNobody) return holder_[x];
      const auto found = temporaries_.find({v, version});
      if (found != temporaries_.end()) return found->second;
      if (relic_[x] != kNobody && version_[x] == version) return relic_[x];
    }
    if (!model_.IsInside(v) || version == 0 ||
        model_.writers[x].size() < static_cast<std::size_t>(version)) {
      return Fail();
    }
    VariableIndex rebuilt = kNobody;
    for (std::int32_t k = 0; k < version; ++k) {
      rebuilt = Replay(model_.writers[x][At(k)], v, rebuilt);
      if (failed_) return kNobody;
    }
    result_.rebuilt_bytes += current ? old_.variables[x].size_bytes : 0;
    if (!own) Keep(v, version, rebuilt);
    return rebuilt;
  }

  /// Notes who holds a version: for recorded ops if it is the one that they want, else for as long
  /// as replays need it.
  void Keep(VariableIndex v, std::int32_t version, VariableIndex scratch) {
    const std::size_t x = At(v);
    if (alive_[x] && version_[x] == version && holder_[x] == kNobody && IsNear(v)) {
      holder_[x] = scratch;
    } else {
      temporaries_[{v, version}] = scratch;
    }
  }

  /// Whether the next recorded op to use a variable is not too far ahead.
  bool IsNear(VariableIndex v) const {
    if (options_.horizon == Rewriter::kFar) return true;
    const std::vector<OpIndex>& users = model_.users[At(v)];
    const auto next = std::lower_bound(users.begin(), users.end(), current_op_);
    return next != users.end() && *next - current_op_ <= options_.horizon;
  }

  VariableIndex Fail() {
    failed_ = true;
    return kNobody;
  }

  /// Runs an op again for the sake of `target`, of which `rebuilt` holds the version before, if it
  /// has one. Returns who holds it now.
  VariableIndex Replay(OpIndex source, VariableIndex target, VariableIndex rebuilt) {
    const std::size_t i = At(source);
    if (!model_.replayable[i] || --replays_left_ < 0) return Fail();
    std::map<VariableIndex, VariableIndex> mapped;
    for (const Use& use : model_.uses[i]) {
      if (use.variable == target ? rebuilt != kNobody : use.state) continue;
      if (use.version == 0 && use.writes) continue;  // New: has its malloc below.
      mapped[use.variable] = Provide(use.variable, use.version, use.writes);
      if (failed_) return kNobody;
    }
    std::vector<VariableIndex> passing;
    for (const Use& use : model_.uses[i]) {
      if (use.variable == target && rebuilt != kNobody) {
        mapped[use.variable] = rebuilt;
      } else if (!mapped.contains(use.variable)) {
        mapped[use.variable] = AddScratch(use.variable);
        if (use.state && use.variable != target) passing.push_back(mapped[use.variable]);
      }
    }
    for (const VariableIndex v : model_.workspaces[i]) passing.push_back(AddScratch(v));
    EmitOp(i, true, [&](VariableIndex v) { return mapped.at(v); });
    for (const VariableIndex v : passing) {
      last_use_[At(v)] = made().ops.back().position;
      EndAfterLastUse(v);
    }
    for (const Use& use : model_.uses[i]) {
      if (!use.writes || use.state || use.variable == target) continue;
      Keep(use.variable, use.version + 1, mapped[use.variable]);
    }
    return mapped.at(target);
  }

  void FinishProblem() {
    made().period = std::max<Position>(next_position_, 1);
    for (std::size_t v = 0; v < made().variables.size(); ++v) {
      Variable& variable = made().variables[v];
      const VariableIndex source = result_.variable_source[v];
      const Variable& old = old_.variables[At(source)];
      if (variable.persistent()) {
        variable.begin = 0;
        variable.end = made().period;
      } else if (v < around_count_) {
        // Not before the end, even if all that came before its free was no event.
        const Position end = std::max<Position>(new_position_[At(old.end - old_.period)], 1);
        variable.end = end + made().period;
      } else if (variable.end < 0 && holder_[At(source)] == static_cast<VariableIndex>(v)) {
        variable.end = made().period;
      } else if (variable.end < 0) {
        EndAfterLastUse(static_cast<VariableIndex>(v));  // A second one of the same content.
      }
    }
  }

  const RewriteModel& model_;
  const Problem& old_;
  const std::vector<bool>& dropped_;
  const RewriteOptions& options_;
  std::int64_t replays_left_;
  OpIndex current_op_ = 0;  // Recorded; the one that everything is rebuilt for.
  Rewritten result_;
  bool failed_ = false;
  std::size_t around_count_ = 0;  // Variables that are there from the beginning on, the first ones.
  Position next_position_ = 0;
  std::size_t next_event_ = 0;
  std::vector<Position> new_position_;  // Per recorded position of an event.
  // Per recorded variable.
  std::vector<VariableIndex> holder_;  // Who holds what recorded ops want of it; kNobody: dropped.
  std::vector<std::int32_t> version_;
  std::vector<bool> alive_;
  std::vector<std::int64_t> gap_of_;  // The last gap in which it was dropped.
  std::vector<VariableIndex> relic_;  // Who holds it beyond its free.
  std::vector<Position> last_use_;    // Per new variable.
  std::map<std::pair<VariableIndex, std::int32_t>, VariableIndex> temporaries_;
};

}  // namespace

Rewriter::Rewriter(const Problem& problem, Bytes least_bytes) : model_(problem, least_bytes) {}

bool Rewriter::CanDrop(std::size_t gap) const {
  const Gap& x = model_.gaps[gap];
  if (!model_.IsInside(x.variable)) return false;
  const std::vector<OpIndex>& writers = model_.writers[At(x.variable)];
  for (const OpIndex writer : writers) {
    if (writer > x.after) break;
    if (!model_.replayable[At(writer)]) return false;
  }
  return !writers.empty() && writers.front() <= x.after;
}

std::optional<Rewritten> Rewriter::Rewrite(const std::vector<bool>& dropped,
                                           const RewriteOptions& options) const {
  return Pass(model_, dropped, options).Run();
}

Rewriting ToRewriting(const Problem& original, const Rewritten& rewritten) {
  return {original, rewritten.op_source, rewritten.is_replay, rewritten.variable_source};
}

}  // namespace plimsoll::plan

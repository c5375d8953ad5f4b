// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rewrite_row.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/rewrite_model.h"

namespace plimsoll::plan {
namespace {

constexpr VariableIndex kNobody = -1;

using Use = RewriteModel::Use;
using Event = RewriteModel::Event;

/// Where the newest variable that stands for a recorded one is, and what it holds.
struct Holder {
  VariableIndex variable = kNobody;
  std::int32_t version = 0;
};

class RowPass {
 public:
  explicit RowPass(const Problem& problem)
      : old_(problem),
        model_(problem, kMaxBytes),  // Gaps do not matter here.
        holder_(problem.variables.size()),
        new_position_(At(problem.period) + 1, 0) {}

  std::optional<Rewritten> Run(const std::vector<OpIndex>& row) {
    Start();
    OpIndex next = 0;
    for (const OpIndex op : row) {
      const bool fits = op == next ? RunRecorded(At(next++)) : op < next && RunAgain(At(op), next);
      if (!fits) return std::nullopt;
    }
    if (next != static_cast<OpIndex>(old_.ops.size())) return std::nullopt;
    TakeEvents(old_.period + 1, false);
    Finish();
    return std::move(result_);
  }

 private:
  Problem& made() { return result_.problem; }

  /// An op that writes what lives around the end finds it changed when it runs again.
  bool IsReplayable(std::size_t op) const {
    return model_.replayable[op] &&
           std::none_of(model_.uses[op].begin(), model_.uses[op].end(), [&](const Use& use) {
             return use.writes && !use.state && !model_.IsInside(use.variable);
           });
  }

  void Start() {
    made().cyclic = old_.cyclic;
    made().laps = old_.laps;
    made().iterations = old_.iterations;
    made().first_event = old_.first_event;
    made().op_names = old_.op_names;
    for (std::size_t v = 0; v < old_.variables.size(); ++v) {
      const auto index = static_cast<VariableIndex>(v);
      // Around the end, or all along: there from the beginning on, and only once.
      if (!model_.IsInside(index)) holder_[v] = {AddVariable(index), 0};
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
    freed_.push_back(-1);
    return static_cast<VariableIndex>(made().variables.size()) - 1;
  }

  /// Malloc of something for a replay, right before it.
  VariableIndex AddForReplay(VariableIndex source) {
    const VariableIndex variable = AddVariable(source);
    Variable& x = made().variables.back();
    if (x.persistent()) x.kind = VariableKind::kTemporary;
    ++next_position_;
    return variable;
  }

  /// Takes over recorded mallocs and frees up to a position; or only the frees that come first.
  void TakeEvents(Position end, bool frees_only) {
    for (; next_event_ < model_.events.size() && model_.events[next_event_].position < end;
         ++next_event_) {
      const Event& event = model_.events[next_event_];
      if (frees_only && event.is_malloc) return;
      TakeEvent(event);
    }
  }

  void TakeEvent(const Event& event) {
    Holder& holder = holder_[At(event.variable)];
    new_position_[At(event.position)] = next_position_;
    if (model_.IsInside(event.variable)) {
      if (event.is_malloc) {
        holder = {AddVariable(event.variable), 0};
      } else if (holder.variable != kNobody) {
        freed_[At(holder.variable)] = next_position_;
      }
    } else if (event.is_malloc) {
      made().variables[At(holder.variable)].begin = next_position_;
    }
    ++next_position_;
  }

  bool RunRecorded(std::size_t i) {
    const Op& op = old_.ops[i];
    TakeEvents(op.position, false);
    new_position_[At(op.position)] = next_position_;
    for (const Use& use : model_.uses[i]) {
      Holder& holder = holder_[At(use.variable)];
      if (holder.variable == kNobody || holder.version != use.version) return false;
      if (use.writes) ++holder.version;
    }
    Emit(i, false, [this](VariableIndex v) { return holder_[At(v)].variable; });
    return true;
  }

  /// `next` is the recorded op that comes next.
  bool RunAgain(std::size_t i, OpIndex next) {
    if (!IsReplayable(i)) return false;
    if (At(next) < old_.ops.size()) TakeEvents(old_.ops[At(next)].position, true);
    std::map<VariableIndex, VariableIndex> mapped;
    std::vector<VariableIndex> scratch;
    for (const Use& use : model_.uses[i]) {
      Holder& holder = holder_[At(use.variable)];
      if (use.state) {
        mapped[use.variable] = AddForReplay(use.variable);
        scratch.push_back(mapped[use.variable]);
        continue;
      }
      if (use.writes && use.version == 0) holder = {AddForReplay(use.variable), 0};
      if (holder.variable == kNobody || holder.version != use.version) return false;
      if (use.writes) ++holder.version;
      mapped[use.variable] = holder.variable;
    }
    for (const VariableIndex v : model_.workspaces[i]) scratch.push_back(AddForReplay(v));
    Emit(i, true, [&](VariableIndex v) { return mapped.at(v); });
    for (const VariableIndex v : scratch) last_use_[At(v)] = made().ops.back().position;
    return true;
  }

  template <typename Map>
  void Emit(std::size_t source, bool replay, Map&& map) {
    Op op = old_.ops[source];
    const std::int64_t first = op.first_operand;
    op.position = next_position_++;
    op.first_operand = static_cast<std::int64_t>(made().operands.size());
    for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
      const Operand& operand = old_.operands[At(first + k)];
      const VariableIndex mapped = map(operand.variable);
      made().operands.push_back({mapped, operand.age});
      last_use_[At(mapped)] = op.position;
    }
    made().ops.push_back(op);
    result_.op_source.push_back(static_cast<OpIndex>(source));
    result_.is_replay.push_back(replay ? 1 : 0);
    if (replay) result_.replay_ns += op.duration_ns;
  }

  void Finish() {
    made().period = std::max<Position>(next_position_, 1);
    for (std::size_t v = 0; v < made().variables.size(); ++v) {
      Variable& variable = made().variables[v];
      const VariableIndex source = result_.variable_source[v];
      const Variable& old = old_.variables[At(source)];
      const bool newest = holder_[At(source)].variable == static_cast<VariableIndex>(v);
      const Position behind_use = std::max(last_use_[v], variable.begin) + 1;
      if (variable.persistent()) {
        variable.begin = 0;
        variable.end = made().period;
      } else if (v < around_count_) {
        const Position end = std::max<Position>(new_position_[At(old.end - old_.period)], 1);
        variable.end = end + made().period;
      } else {
        variable.end = newest ? std::max(freed_[v], behind_use) : behind_use;
      }
    }
    CountRebuilt();
  }

  /// What recorded ops find that replays have made.
  void CountRebuilt() {
    std::vector<bool> counted(made().variables.size());
    std::vector<bool> rebuilt(made().variables.size());
    for (std::size_t i = 0; i < made().ops.size(); ++i) {
      const Op& op = made().ops[i];
      for (const Operand& x : made().reads(op)) {
        if (result_.is_replay[i] != 0 || !rebuilt[At(x.variable)] || counted[At(x.variable)]) {
          continue;
        }
        counted[At(x.variable)] = true;
        result_.rebuilt_bytes += made().variables[At(x.variable)].size_bytes;
      }
      for (const Operand& x : made().writes(op)) {
        if (result_.is_replay[i] != 0) rebuilt[At(x.variable)] = true;
      }
    }
  }

  const Problem& old_;
  Rewritten result_;
  // Per recorded op.
  const RewriteModel model_;
  std::vector<Holder> holder_;          // Per recorded variable.
  std::vector<Position> new_position_;  // Per recorded position of an event.
  std::size_t around_count_ = 0;  // Variables that are there from the beginning on, the first ones.
  Position next_position_ = 0;
  std::size_t next_event_ = 0;
  // Per new variable.
  std::vector<Position> last_use_;
  std::vector<Position> freed_;  // Where it is freed as recorded; -1 if it is not.
};

}  // namespace

std::optional<Rewritten> RewriteRow(const Problem& problem, const std::vector<OpIndex>& row) {
  return RowPass(problem).Run(row);
}

}  // namespace plimsoll::plan

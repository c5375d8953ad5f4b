// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/lives.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"

namespace plimsoll::plan {
namespace {

/// An op on a variable's own axis: its index, and as much again for every iteration later.
using OpTime = std::int64_t;

/// In which order events come that were moved to the same place. Mallocs come before what is
/// recorded there, so that scratch which comes and goes before its op is not alone with it.
enum class Rank : std::uint8_t { kMovedFree, kMovedMalloc, kAsRecorded };

/// A malloc or a free.
struct Event {
  std::int64_t slot = 0;  ///< How many ops of the iteration come before it.
  Rank rank = Rank::kAsRecorded;
  Position recorded = 0;
  VariableIndex variable = 0;
  bool is_malloc = false;
  std::int64_t lap = 0;  ///< In which iteration of the variable's life.
};

class Trimmer {
 public:
  explicit Trimmer(const Problem& problem)
      : old_(problem),
        ops_(static_cast<std::int64_t>(problem.ops.size())),
        first_(problem.variables.size(), std::numeric_limits<OpTime>::max()),
        last_(problem.variables.size(), -1) {}

  Problem Run() {
    FindUses();
    for (std::size_t v = 0; v < old_.variables.size(); ++v) {
      if (!old_.variables[v].persistent()) AddEvents(static_cast<VariableIndex>(v));
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.slot, a.rank, a.recorded, a.variable) <
             std::tuple(b.slot, b.rank, b.recorded, b.variable);
    });
    return Number();
  }

 private:
  void FindUses() {
    for (std::int64_t i = 0; i < ops_; ++i) {
      const Op& op = old_.ops[At(i)];
      for (std::int64_t k = 0; k < op.read_count + op.write_count; ++k) {
        const Operand& operand = old_.operands[At(op.first_operand + k)];
        const OpTime time = i + operand.age * ops_;
        first_[At(operand.variable)] = std::min(first_[At(operand.variable)], time);
        last_[At(operand.variable)] = std::max(last_[At(operand.variable)], time);
      }
    }
  }

  /// How many ops come before a position of the iteration.
  std::int64_t SlotOf(Position position) const {
    const auto op =
        std::lower_bound(old_.ops.begin(), old_.ops.end(), position,
                         [](const Op& x, Position before) { return x.position < before; });
    return op - old_.ops.begin();
  }

  void AddEvents(VariableIndex v) {
    const Variable& x = old_.variables[At(v)];
    const OpTime first = first_[At(v)];
    const OpTime last = last_[At(v)];
    const bool used = last >= 0;
    const bool before = !old_.cyclic && x.begin == 0;
    const bool stays = !old_.cyclic && x.end == old_.period;
    Event malloc{SlotOf(x.begin), Rank::kAsRecorded, x.begin, v, true};
    if (used && !before && first < ops_ && first > malloc.slot) {
      malloc.slot = first;
      malloc.rank = Rank::kMovedMalloc;
    }
    events_.push_back(malloc);
    if (used && !stays) {
      events_.push_back({last % ops_ + 1, Rank::kMovedFree, x.end, v, false, last / ops_});
    } else if (x.end % old_.period != 0) {  // Else it has no position of its own.
      const Position end = x.end % old_.period;
      events_.push_back({SlotOf(end), Rank::kAsRecorded, end, v, false, x.end / old_.period});
    }
  }

  /// Gives every event and op its new position.
  Problem Number() {
    Problem made = old_;
    Position next = 0;
    std::vector<Position> free_at(old_.variables.size(), -1);
    std::vector<std::int64_t> free_lap(old_.variables.size(), 0);
    std::size_t e = 0;
    for (std::int64_t slot = 0; slot <= ops_; ++slot) {
      for (; e < events_.size() && events_[e].slot == slot; ++e, ++next) {
        const std::size_t v = At(events_[e].variable);
        if (events_[e].is_malloc) {
          made.variables[v].begin = next;
        } else {
          free_at[v] = next;
          free_lap[v] = events_[e].lap;
        }
      }
      if (slot < ops_) made.ops[At(slot)].position = next++;
    }
    made.period = std::max<Position>(next, 1);
    for (std::size_t v = 0; v < made.variables.size(); ++v) {
      Variable& x = made.variables[v];
      const bool ends_with_lap = x.persistent() || free_at[v] < 0;
      x.end = ends_with_lap ? x.end / old_.period * made.period
                            : free_at[v] + free_lap[v] * made.period;
      if (x.persistent()) continue;
      const Position length = x.end - x.begin;
      x.instances = static_cast<std::int32_t>((length + made.period - 1) / made.period);
    }
    return made;
  }

  const Problem& old_;
  const std::int64_t ops_;
  std::vector<OpTime> first_;  // By variable.
  std::vector<OpTime> last_;   // By variable; -1: no op names it.
  std::vector<Event> events_;
};

}  // namespace

Problem TrimLives(const Problem& problem) {
  return problem.ops.empty() ? problem : Trimmer(problem).Run();
}

Problem ProblemToPlan(const Problem& recorded) { return Unroll(TrimLives(recorded)); }

}  // namespace plimsoll::plan

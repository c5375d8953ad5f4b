// SPDX-License-Identifier: Apache-2.0
//
// Exits of a sketch: where in its steps swapped gaps begin and end.
#include <algorithm>
#include <utility>

#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_sketch_internal.h"

namespace plimsoll::planners {
namespace {

using plan::OpIndex;
using plan::Position;
using plan::Slot;
using plan::VariableIndex;

}  // namespace

/// The recorded op of the last step was the last to use the gap's variable before it.
void Sketch::OpenTrip(std::size_t gap) {
  std::size_t index = trips_.size();
  if (model_.gaps[gap].end >= model_.problem.period) {
    // They come first, in the order of their gaps.
    const auto end = trips_.begin() + static_cast<std::ptrdiff_t>(around_count_);
    index = static_cast<std::size_t>(
        std::lower_bound(trips_.begin(), end, gap,
                         [](const Trip& trip, std::size_t wanted) { return trip.gap < wanted; }) -
        trips_.begin());
  } else {
    trips_.push_back({.gap = gap});
  }
  trips_[index].written = WrittenAt(gap);
  trips_[index].last = step() - 1;
  trip_of_[At(model_.gaps[gap].variable)] = static_cast<std::int32_t>(index);
}

/// The last step that wrote a gap's variable, or rebuilt it; as plan::FindLastWriters() says it.
Slot Sketch::WrittenAt(std::size_t gap) const {
  const VariableIndex v = model_.gaps[gap].variable;
  const plan::Problem& problem = model_.problem;
  const plan::Variable& variable = problem.variables[At(v)];
  const bool was_there = model_.gaps[gap].begin <= variable.begin || variable.persistent();
  if (writes_until_[gap] == 0) {
    return was_there && goes_around_[At(v)] == 0 ? -1 : plan::Exit::kAtLastUse;
  }
  const OpIndex op = model_.writers[At(v)][At(writes_until_[gap] - 1)];
  if (model_.gaps[gap].begin > variable.begin && problem.ops[At(op)].position < variable.begin) {
    return plan::Exit::kAtLastUse;
  }
  const auto next = std::lower_bound(late_.begin(), late_.end(), std::pair(op + 1, Slot{0}));
  const Slot recorded = op + (next == late_.begin() ? 0 : std::prev(next)->second);
  return std::max(recorded, rebuilt_at_[At(v)]);
}

/// The recorded op that is the next step uses the variable.
void Sketch::EndTrip(VariableIndex v) {
  Touch(v, kHere);
  trip_of_[At(v)] = -1;
}

/// Ends the trips around the end.
void Sketch::CloseAround() {
  for (std::size_t k = 0; k < around_count_; ++k) {
    Trip& trip = trips_[k];
    const Slot length = trip.first + step() - trip.last;
    trip.around = length >= trip.before - trip.after;
    if (!trip.around) continue;
    trip.after = trip.last;
    trip.before = trip.first;
  }
}

void Sketch::Stretch(Trip* trip, Slot from, Slot to) {
  if (to - from <= trip->before - trip->after) return;
  trip->after = from;
  trip->before = to;
}

/// Takes what is away off the load.
void Sketch::AddExits() {
  // By the op that they leave behind, and by variable.
  order_.clear();
  for (std::size_t t = 0; t < trips_.size(); ++t) {
    const Trip& trip = trips_[t];
    if (!trip.around && trip.before <= trip.after + 1) continue;
    const auto v = static_cast<std::uint32_t>(model_.gaps[trip.gap].variable);
    order_.emplace_back(std::uint64_t{static_cast<std::uint32_t>(trip.after)} << 32 | v,
                        static_cast<std::uint32_t>(t));
  }
  std::sort(order_.begin(), order_.end());
  script_.exits.clear();
  exit_gaps_.clear();
  tail_bytes_ = load_.tail_bytes;
  for (const auto& [key, t] : order_) {
    const Trip& trip = trips_[t];
    const std::size_t v = At(model_.gaps[trip.gap].variable);
    const Bytes held = load_.held_bytes[v];
    Change(trip.after + 1, -held);
    if (trip.around) {
      if (trip.before > 0) tail_bytes_ -= held;  // Else it is back for what follows the last op.
      Change(step(), held);
      Change(0, -held);
    }
    Change(trip.before, held);
    script_.exits.push_back({trip.after, trip.before, trip.around, true,
                             model_.problem.variables[v].size_bytes, held, trip.written});
    exit_gaps_.push_back(trip.gap);
  }
  MarkSaves();
}

/// Finds the exits whose variable was not written since it came back from the one before.
void Sketch::MarkSaves() {
  // Exits by variable and time, of those that leave more than once.
  for (const std::size_t g : exit_gaps_) ++exits_of_[At(model_.gaps[g].variable)];
  std::vector<std::pair<VariableIndex, std::size_t>>& order = leavers_;
  order.clear();
  for (std::size_t k = 0; k < exit_gaps_.size(); ++k) {
    const VariableIndex v = model_.gaps[exit_gaps_[k]].variable;
    if (exits_of_[At(v)] > 1) order.emplace_back(v, k);
  }
  for (const std::size_t g : exit_gaps_) exits_of_[At(model_.gaps[g].variable)] = 0;
  std::sort(order.begin(), order.end());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const VariableIndex v = order[begin].first;
    while (end < order.size() && order[end].first == v) ++end;
    const auto writes = [&](std::size_t k) { return writes_until_[exit_gaps_[order[k].second]]; };
    bool any = false;
    for (std::size_t k = begin; k < end; ++k) {
      bool saves = true;
      if (k > begin) {
        saves = writes(k) > writes(k - 1);
      } else if (model_.problem.variables[At(v)].persistent()) {
        const auto all = static_cast<std::int32_t>(model_.writers[At(v)].size());
        saves = writes(begin) > 0 || writes(end - 1) < all;
      }
      script_.exits[order[k].second].saves = saves;
      any = any || saves;
    }
    script_.exits[order[begin].second].saves |= !any;
  }
}

void Sketch::SumUp() {
  script_.needs_bytes.resize(base_bytes_.size());
  Bytes change = 0;
  highest_bytes_ = 0;
  for (std::size_t k = 0; k < base_bytes_.size(); ++k) {
    change += change_bytes_[k];
    script_.needs_bytes[k] = base_bytes_[k] + change;
    highest_bytes_ = std::max(highest_bytes_, script_.needs_bytes[k]);
  }
  highest_bytes_ = std::max(highest_bytes_, tail_bytes_);
  if (!script_.needs_bytes.empty()) {
    script_.needs_bytes[0] = std::max(script_.needs_bytes[0], tail_bytes_);
  }
}

}  // namespace plimsoll::planners

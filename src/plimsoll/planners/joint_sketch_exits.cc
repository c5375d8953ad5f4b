// SPDX-License-Identifier: Apache-2.0
//
// Exits of a sketch: where in its steps swapped gaps begin and end; and the steps with their loads,
// one after the other.
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
  const RecordedGap& recorded = gaps_[gap];
  std::size_t index = trips_.size();
  if (recorded.around) {
    // They come first, in the order of their gaps.
    const auto end = trips_.begin() + static_cast<std::ptrdiff_t>(around_count_);
    index = static_cast<std::size_t>(
        std::lower_bound(trips_.begin(), end, gap,
                         [](const Trip& trip, std::size_t wanted) { return trip.gap < wanted; }) -
        trips_.begin());
  } else {
    trips_.push_back({.gap = gap});
  }
  trips_[index].written = WrittenAt(recorded);
  trips_[index].last = step_ - 1;
  LifeOf(recorded.variable).trip = static_cast<std::int32_t>(index);
  stirred_.push_back(recorded.variable);
}

/// The last step that wrote a gap's variable, or rebuilt it; as plan::FindLastWriters() says it.
Slot Sketch::WrittenAt(const RecordedGap& gap) const {
  const Life& life = LifeOf(gap.variable);
  if (gap.writes == 0) {
    return gap.was_there && !life.goes_around ? -1 : plan::Exit::kAtLastUse;
  }
  if (gap.writer == plan::Exit::kAtLastUse) return gap.writer;
  return std::max(gap.writer + BehindAt(gap.writer + 1), life.rebuilt_at);
}

/// The recorded op that is the next step uses the variable.
void Sketch::EndTrip(VariableIndex v) {
  Touch(v, kHere);
  LifeOf(v).trip = -1;
}

/// Ends the trips around the end.
void Sketch::CloseAround() {
  for (std::size_t k = 0; k < around_count_; ++k) {
    Trip& trip = trips_[k];
    const Slot length = trip.first + step_ - trip.last;
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
    const auto v = static_cast<std::uint32_t>(gaps_[trip.gap].variable);
    order_.emplace_back(std::uint64_t{static_cast<std::uint32_t>(trip.after)} << 32 | v,
                        static_cast<std::uint32_t>(t));
  }
  std::sort(order_.begin(), order_.end());
  script_.exits.clear();
  exit_gaps_.clear();
  tail_bytes_ = load_.tail_bytes;
  for (const auto& [key, t] : order_) {
    const Trip& trip = trips_[t];
    const std::size_t v = At(gaps_[trip.gap].variable);
    const Bytes held = lives_[v].held_bytes;
    Change(trip.after + 1, -held);
    if (trip.around) {
      if (trip.before > 0) tail_bytes_ -= held;  // Else it is back for what follows the last op.
      Change(step_, held);
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
  for (const std::size_t g : exit_gaps_) ++exits_of_[At(gaps_[g].variable)];
  std::vector<std::pair<VariableIndex, std::size_t>>& order = leavers_;
  order.clear();
  for (std::size_t k = 0; k < exit_gaps_.size(); ++k) {
    const VariableIndex v = gaps_[exit_gaps_[k]].variable;
    if (exits_of_[At(v)] > 1) order.emplace_back(v, k);
  }
  for (const std::size_t g : exit_gaps_) exits_of_[At(gaps_[g].variable)] = 0;
  std::sort(order.begin(), order.end());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const VariableIndex v = order[begin].first;
    while (end < order.size() && order[end].first == v) ++end;
    const auto writes = [&](std::size_t k) { return gaps_[exit_gaps_[order[k].second]].writes; };
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

/// Puts replays between recorded ops, and adds up the load.
void Sketch::LineUp() {
  script_.durations_ns.resize(At(step_));
  script_.needs_bytes.resize(At(step_));
  Nanoseconds* durations_ns = script_.durations_ns.data();
  Bytes* needs_bytes = script_.needs_bytes.data();
  const Bytes* change_bytes = change_bytes_.data();
  Bytes change = 0;
  const auto add_step = [&](Bytes base_bytes) {
    change += *change_bytes++;
    *needs_bytes++ = base_bytes + change;
  };
  const auto add_recorded = [&](OpIndex begin, OpIndex end) {
    durations_ns =
        std::copy(durations_ns_.begin() + begin, durations_ns_.begin() + end, durations_ns);
    for (OpIndex i = begin; i < end; ++i) add_step(load_.slot_bytes[At(i)]);
  };
  OpIndex begin = 0;
  Slot replays = 0;
  for (const auto& [op, behind] : late_) {
    add_recorded(begin, op);
    Bytes& first_bytes = replays_[At(replays)].base_bytes;
    first_bytes = std::max(first_bytes, HeadAt(op));
    for (; replays < behind; ++replays) {
      *durations_ns++ = replays_[At(replays)].duration_ns;
      add_step(replays_[At(replays)].base_bytes);
    }
    // What is freed right before the op is freed before its replays.
    *durations_ns++ = durations_ns_[At(op)];
    add_step(load_.rest_bytes[At(op)]);
    begin = op + 1;
  }
  add_recorded(begin, static_cast<OpIndex>(ops_.size()));
  MendHeads();
  highest_bytes_ = tail_bytes_;
  for (const Bytes bytes : script_.needs_bytes) highest_bytes_ = std::max(highest_bytes_, bytes);
  if (step_ > 0) script_.needs_bytes[0] = std::max(script_.needs_bytes[0], tail_bytes_);
}

/// Of the load while the frees come right before an op: what is above the changes, which have all
/// that lingers from the first of them on.
Bytes Sketch::HeadAt(OpIndex op) const {
  const Bytes relic_bytes = relic_bytes_[At(op)];
  if (relic_bytes == 0) return load_.head_bytes[At(op)];
  Bytes highest = 0;
  Bytes lingering = 0;
  for (std::size_t e = load_.first_event[At(op)]; e < load_.first_malloc[At(op)]; ++e) {
    const Life& life = LifeOf(model_.events[e].variable);
    if (life.relic_end >= 0) lingering += life.held_bytes;
    highest = std::max(highest, load_.event_bytes[e] + lingering);
  }
  return highest - relic_bytes;
}

/// Slots of recorded ops right before which something was freed that lingers.
void Sketch::MendHeads() {
  for (const VariableIndex v : stirred_) {
    const Life& life = LifeOf(v);
    if (life.relic_end < 0 || relic_bytes_[At(life.death)] == 0) continue;
    const OpIndex op = life.death;
    const Bytes slot_bytes = std::max(HeadAt(op), load_.rest_bytes[At(op)]);
    const Slot behind = BehindAt(op);
    if (BehindAt(op + 1) == behind) {  // Else its replays come first.
      script_.needs_bytes[At(op + behind)] += slot_bytes - load_.slot_bytes[At(op)];
    }
    relic_bytes_[At(op)] = 0;
  }
}

/// Bytes above a limit, summed over steps.
double Sketch::ExcessOver(Bytes limit_bytes) const {
  double excess = static_cast<double>(std::max<Bytes>(tail_bytes_ - limit_bytes, 0));
  for (const Bytes bytes : script_.needs_bytes) {
    excess += static_cast<double>(std::max<Bytes>(bytes - limit_bytes, 0));
  }
  return excess;
}

void Sketch::ListNeeds(std::vector<Bytes>* needs_bytes) const {
  needs_bytes->resize(ops_.size());
  std::size_t step = 0;
  auto late = late_.begin();
  Slot behind = 0;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (late != late_.end() && At(late->first) == i) behind = (late++)->second;
    Bytes highest = 0;
    for (; step <= i + At(behind); ++step) {
      highest = std::max(highest, script_.needs_bytes[step]);
    }
    (*needs_bytes)[i] = highest;
  }
}

}  // namespace plimsoll::planners

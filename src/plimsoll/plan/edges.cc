// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/edges.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "plimsoll/base/index.h"
#include "plimsoll/plan/gaps.h"

namespace plimsoll::plan {
namespace {

/// A command that touches a residency, `shift` iterations after the one in which it begins.
struct Touch {
  CommandIndex command = -1;
  std::int64_t shift = 0;
};

/// The first and the last command, and the first and the last op, that touch a residency.
struct Touches {
  Touch first;
  Touch last;
  Touch first_op;
  Touch last_op;
  Touch last_write;  ///< The last op that writes it, or of the iteration before that of last_op.
};

class EdgeDrawer {
 public:
  explicit EdgeDrawer(Plan* plan) : plan_(*plan), latest_(plan->commands.size()) {
    for (const auto& queue : plan_.queues) {
      for (std::size_t k = 0; k < queue.size(); ++k) {
        if (rank_.size() <= At(queue[k])) rank_.resize(plan_.commands.size());
        rank_[At(queue[k])] = static_cast<std::int64_t>(k);
      }
    }
    FindTouches();
  }

  void Run() {
    DrawDataEdges();
    DrawAddressEdges();
    for (std::size_t c = 0; c < latest_.size(); ++c) {
      plan_.commands[c].waits.clear();
      for (const Latest& latest : latest_[c]) {
        if (latest.command >= 0) {
          plan_.commands[c].waits.push_back(
              {latest.command, static_cast<std::int32_t>(latest.lag)});
        }
      }
    }
  }

 private:
  struct Latest {
    CommandIndex command = -1;
    std::int64_t lag = 0;
    std::int64_t order = std::numeric_limits<std::int64_t>::min();
  };

  void FindTouches() {
    const std::vector<std::vector<Access>> accesses = ListAccesses(plan_.problem);
    touches_.reserve(plan_.residencies.size());
    for (const Residency& residency : plan_.residencies) {
      const Variable& variable = plan_.problem.variables[At(residency.variable)];
      const std::vector<Access>& own = accesses[At(residency.variable)];
      touches_.push_back(variable.kind == VariableKind::kWorkspace ? TouchesOfScratch(own)
                                                                   : TouchesOf(residency, own));
    }
  }

  /// Its op may come after its free.
  Touches TouchesOfScratch(const std::vector<Access>& accesses) const {
    if (accesses.empty()) return {};
    const Touch touch = {accesses[0].op, accesses[0].time / plan_.problem.period};
    return {touch, touch, touch, touch, touch};
  }

  Touches TouchesOf(const Residency& residency, const std::vector<Access>& accesses) const {
    const Position period = plan_.problem.period;
    Touches touches;
    Position first = std::numeric_limits<Position>::max();
    Position last = -1;
    Position last_write = -1;
    for (const Access& access : accesses) {
      // The same access, in whichever iteration falls into the residency.
      for (Position time = access.time % period; time < residency.end; time += period) {
        if (time < residency.begin) continue;
        if (time < first) touches.first_op = {access.op, time / period};
        if (time > last) touches.last_op = {access.op, time / period};
        if (access.writes && time > last_write) {
          touches.last_write = {access.op, time / period};
          last_write = time;
        }
        first = std::min(first, time);
        last = std::max(last, time);
      }
    }
    if (touches.last_write.command < 0 || touches.last_write.shift != touches.last_op.shift) {
      // It came into this iteration as it is, if it was there before.
      const auto last_command = static_cast<CommandIndex>(plan_.problem.ops.size()) - 1;
      touches.last_write = touches.first_op.shift < touches.last_op.shift
                               ? Touch{last_command, touches.last_op.shift - 1}
                               : touches.last_op;
    }
    touches.first = residency.copy_in >= 0 ? Touch{residency.copy_in, 0} : touches.first_op;
    // A copy out runs in the iteration of the last op, and may end before that op.
    touches.last = residency.copy_out >= 0 ? Touch{residency.copy_out, touches.last_op.shift}
                                           : touches.last_op;
    return touches;
  }

  /// Makes `waiting`, in some iteration, wait for `touch` of `lag` iterations earlier.
  void Draw(CommandIndex waiting, CommandIndex earlier, std::int64_t lag) {
    if (waiting < 0 || earlier < 0 || (lag > 0 && !plan_.problem.cyclic)) return;
    const Queue queue = plan_.commands[At(earlier)].queue;
    const auto length =
        static_cast<std::int64_t>(plan_.queues[static_cast<std::size_t>(queue)].size());
    const std::int64_t order = rank_[At(earlier)] - lag * length;
    if (queue == plan_.commands[At(waiting)].queue && order < rank_[At(waiting)]) return;
    Latest& latest = latest_[At(waiting)][static_cast<std::size_t>(queue)];
    if (order > latest.order) latest = {earlier, lag, order};
  }

  void DrawDataEdges() {
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      const Residency& residency = plan_.residencies[r];
      const Touches& touches = touches_[r];
      if (residency.copy_out >= 0) {
        Draw(residency.copy_out, touches.last_write.command,
             touches.last_op.shift - touches.last_write.shift);
      }
      if (residency.copy_in >= 0) {
        Draw(touches.first_op.command, residency.copy_in, touches.first_op.shift);
      }
    }
    std::vector<std::vector<std::size_t>> of_variable(plan_.problem.variables.size());
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      of_variable[At(plan_.residencies[r].variable)].push_back(r);
    }
    for (std::size_t v = 0; v < of_variable.size(); ++v) {
      if (of_variable[v].size() > 1 || plan_.problem.variables[v].persistent()) {
        DrawCopiesOf(plan_.problem.variables[v], &of_variable[v]);
      }
    }
  }

  /// Makes every copy in of a variable wait for the last copy out before it.
  void DrawCopiesOf(const Variable& variable, std::vector<std::size_t>* own) {
    // In the order of its life: what begins before the malloc is of the iteration after.
    const auto lap = [&](std::size_t r) {
      return plan_.residencies[r].begin < variable.begin ? std::int64_t{1} : 0;
    };
    std::sort(own->begin(), own->end(), [&](std::size_t a, std::size_t b) {
      return std::pair(lap(a), plan_.residencies[a].begin) <
             std::pair(lap(b), plan_.residencies[b].begin);
    });
    Touch saved;  // In which iteration of the variable's life.
    // Around the cycle, what the end saves is what the beginning brings back.
    for (std::int64_t around = variable.persistent() ? 0 : 1; around < 2; ++around) {
      for (const std::size_t r : *own) {
        const Residency& residency = plan_.residencies[r];
        const std::int64_t begins = lap(r) + around;
        if (residency.copy_in >= 0 && saved.command >= 0) {
          Draw(residency.copy_in, saved.command, begins - saved.shift);
        }
        if (residency.copy_out >= 0) {
          saved = {residency.copy_out, begins + touches_[r].last_op.shift};
        }
      }
    }
  }

  /// The smallest number of iterations after which a residency that begins at `begin` follows one
  /// that ends at `end`.
  std::int64_t LapsUntil(Position end, Position begin) const {
    const Position period = plan_.problem.period;
    return end <= begin ? 0 : (end - begin + period - 1) / period;
  }

  /// A line sweeps over the offsets and keeps who has its byte, in the order of positions. Whoever
  /// follows another there waits for it; who is further back waits for those between.
  void DrawAddressEdges() {
    struct Event {
      Bytes offset;
      bool enters;
      std::size_t residency;
    };
    std::vector<Event> events;
    for (std::size_t r = 0; r < plan_.residencies.size(); ++r) {
      if (SizeOf(r) == 0 || touches_[r].first.command < 0) continue;
      events.push_back({plan_.residencies[r].offset, true, r});
      events.push_back({plan_.residencies[r].offset + SizeOf(r), false, r});
    }
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.offset < b.offset; });
    for (std::size_t first = 0; first < events.size();) {
      std::size_t end = first;
      for (; end < events.size() && events[end].offset == events[first].offset; ++end) {
        if (!events[end].enters) ring_.erase(KeyOf(events[end].residency));
      }
      for (std::size_t e = first; e < end; ++e) {
        if (events[e].enters) ring_.insert(KeyOf(events[e].residency));
      }
      for (std::size_t e = first; e < end; ++e) DrawAround(events[e].residency);
      first = end;
    }
  }

  using Key = std::pair<Position, std::size_t>;
  Key KeyOf(std::size_t r) const { return {plan_.residencies[r].begin, r}; }

  /// Draws the edges of a residency that has come to the line with its neighbours, or between the
  /// neighbours of one that has gone.
  void DrawAround(std::size_t r) {
    if (ring_.empty()) return;
    const auto next = [&](auto place) { return place == ring_.end() ? ring_.begin() : place; };
    const auto here = ring_.lower_bound(KeyOf(r));
    const auto before = here == ring_.begin() ? std::prev(ring_.end()) : std::prev(here);
    DrawFollowing(before->second, next(here)->second);
    if (here != ring_.end() && here->second == r) {
      DrawFollowing(r, next(std::next(here))->second);
    }
  }

  void DrawFollowing(std::size_t earlier, std::size_t later) {
    const Residency& x = plan_.residencies[earlier];
    const Residency& y = plan_.residencies[later];
    if (x.copy_out < 0 && y.copy_in < 0) return;  // Two ops.
    std::int64_t laps = LapsUntil(x.end, y.begin);
    if (earlier == later) laps = std::max<std::int64_t>(laps, 1);
    for (const Touch& last : {touches_[earlier].last, touches_[earlier].last_op}) {
      Draw(touches_[later].first.command, last.command,
           laps + touches_[later].first.shift - last.shift);
    }
  }

  Bytes SizeOf(std::size_t r) const {
    return plan_.problem.variables[At(plan_.residencies[r].variable)].size_bytes;
  }

  Plan& plan_;
  std::vector<std::array<Latest, kQueues>> latest_;  // By waiting command.
  std::vector<std::int64_t> rank_;                   // By command: its place in its queue.
  std::vector<Touches> touches_;                     // By residency.
  std::set<Key> ring_;                               // Who has the byte at the line.
};

}  // namespace

void DrawEdges(Plan* plan) { EdgeDrawer(plan).Run(); }

}  // namespace plimsoll::plan

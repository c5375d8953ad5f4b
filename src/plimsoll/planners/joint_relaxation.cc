// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/joint_relaxation.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>
#include <unordered_set>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/index.h"
#include "plimsoll/planners/joint_relaxation_internal.h"

namespace plimsoll::planners {
namespace {

constexpr std::int32_t kNone = -1;

/// Something under way in a queue.
struct Running {
  std::int32_t what = kNone;  ///< An op or a content.
  std::int32_t unused = 0;
  Nanoseconds left_ns = 0;
};

struct State {
  Mask device = 0;  ///< Without what is being written or copied in.
  Mask host = 0;
  std::int64_t next = 0;  ///< Recorded op that has not ended.
  Running compute;
  Running out;
  Running in;

  friend bool operator==(const State& a, const State& b) {
    return std::memcmp(&a, &b, sizeof(State)) == 0;
  }
};
static_assert(sizeof(State) == 64, "compared and hashed as bytes: no padding");

struct StateHash {
  std::size_t operator()(const State& state) const {
    std::uint64_t words[sizeof(State) / 8];
    std::memcpy(words, &state, sizeof(State));
    std::uint64_t hash = 0;
    for (const std::uint64_t word : words) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct Entry {
  Nanoseconds least_ns = 0;  ///< Of any schedule from here on, from the beginning.
  Nanoseconds now_ns = 0;
  State state;
  bool operator<(const Entry& other) const {
    if (least_ns != other.least_ns) return least_ns > other.least_ns;
    return now_ns < other.now_ns;
  }
};

class ScheduleSearch {
 public:
  ScheduleSearch(const plan::Problem& problem, const plan::Machine& machine, Bytes limit_bytes)
      : model_(problem, machine), limit_bytes_(limit_bytes) {}

  std::optional<Nanoseconds> Run(std::int64_t most_states) {
    Push(State{}, 0);
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      if (!closed_.insert(entry.state).second) continue;
      if (entry.state.next == static_cast<std::int64_t>(model_.ops.size())) return entry.now_ns;
      if (static_cast<std::int64_t>(closed_.size()) > most_states) return std::nullopt;
      now_ns_ = entry.now_ns;
      Expand(entry.state);
    }
    return std::nullopt;
  }

 private:
  void Push(State state, Nanoseconds now_ns) {
    const std::size_t next = At(state.next);
    state.device &= model_.useful[next] | Pinned(state);
    state.host &= model_.useful[next];
    const bool recorded = state.compute.what == state.next;
    const Nanoseconds to_go_ns = model_.to_go_ns[next + (recorded ? 1 : 0)];
    queue_.push({now_ns + state.compute.left_ns + to_go_ns, now_ns, state});
  }

  /// What must stay on the device for now.
  Mask Pinned(const State& state) const {
    Mask pinned = state.out.what == kNone ? 0 : Bit(state.out.what);
    if (state.compute.what != kNone) pinned |= model_.ops[At(state.compute.what)].finds;
    return pinned & state.device;
  }

  Bytes Sum(Mask mask) const {
    Bytes bytes = 0;
    ForEach(mask, [&](std::int32_t c) { bytes += model_.bytes[At(c)]; });
    return bytes;
  }
  Bytes Load(const State& state) const {
    Bytes load = Sum(state.device);
    if (state.in.what != kNone) load += model_.bytes[At(state.in.what)];
    if (state.compute.what != kNone) load += Sum(model_.ops[At(state.compute.what)].leaves);
    return load;
  }

  void Expand(const State& state) {
    if (state.compute.what == kNone) {
      for (std::int64_t op = 0; op <= state.next; ++op) StartOp(state, op);
    }
    if (state.out.what == kNone) {
      ForEach(state.device & ~state.host, [&](std::int32_t c) {
        State started = state;
        started.out = {c, 0, model_.out_ns[At(c)]};
        Push(started, now_ns_);
      });
    }
    if (state.in.what == kNone) {
      ForEach(state.host & ~state.device & ~Leaving(state), [&](std::int32_t c) {
        State started = state;
        started.in = {c, 0, model_.in_ns[At(c)]};
        MakeRoom(started);
      });
    }
    Advance(state);
  }

  /// What the op under way leaves when it ends.
  Mask Leaving(const State& state) const {
    return state.compute.what == kNone ? 0 : model_.ops[At(state.compute.what)].leaves;
  }

  void StartOp(const State& state, std::int64_t index) {
    const OpContents& op = model_.ops[At(index)];
    const bool replay = index < state.next;
    if ((op.finds & ~state.device) != 0) return;
    // What comes in by the link already, or is there, need not be written as well.
    if (replay &&
        (!op.replayable || (op.leaves & ~state.device & model_.useful[At(state.next)]) == 0)) {
      return;
    }
    if (state.in.what != kNone && (Bit(state.in.what) & op.leaves) != 0) return;
    const std::size_t after = At(replay ? state.next : state.next + 1);
    const Mask copied = state.out.what == kNone ? 0 : Bit(state.out.what);
    // Of what it changes, any part may be left as it was, if somebody may want it.
    const Mask open = op.changes & model_.useful[after];
    for (Mask left = open;; left = (left - 1) & open) {
      const Mask taken_over = op.changes & ~left;
      if ((taken_over & copied) == 0) {
        State started = state;
        started.compute = {static_cast<std::int32_t>(index), 0, model_.op_ns[At(index)]};
        started.device &= ~taken_over;
        MakeRoom(started);
      }
      if (left == 0) break;
    }
  }

  /// Pushes the state with every smallest set of contents off the device that makes it fit.
  void MakeRoom(const State& state) {
    const Bytes lacking = Load(state) - limit_bytes_;
    if (lacking <= 0) {
      Push(state, now_ns_);
      return;
    }
    const Mask loose = state.device & ~Pinned(state);
    if (Sum(loose) < lacking) return;
    for (Mask gone = loose; gone != 0; gone = (gone - 1) & loose) {
      const Bytes bytes = Sum(gone);
      if (bytes < lacking) continue;
      bool smallest = true;
      ForEach(gone, [&](std::int32_t c) {
        smallest = smallest && bytes - model_.bytes[At(c)] < lacking;
      });
      if (!smallest) continue;
      State freed = state;
      freed.device &= ~gone;
      Push(freed, now_ns_);
    }
  }

  /// Lets time pass until something ends.
  void Advance(State state) {
    Nanoseconds step_ns = std::numeric_limits<Nanoseconds>::max();
    for (const Running* running : {&state.compute, &state.out, &state.in}) {
      if (running->what != kNone) step_ns = std::min(step_ns, running->left_ns);
    }
    if (step_ns == std::numeric_limits<Nanoseconds>::max()) return;
    const auto ends = [&](Running* running) {
      if (running->what == kNone) return false;
      running->left_ns -= step_ns;
      return running->left_ns == 0;
    };
    if (ends(&state.compute)) {
      state.device |= model_.ops[At(state.compute.what)].leaves;
      if (state.compute.what == state.next) ++state.next;
      state.compute = {};
    }
    if (ends(&state.out)) {
      state.host |= Bit(state.out.what);
      state.out = {};
    }
    if (ends(&state.in)) {
      state.device |= Bit(state.in.what);
      state.in = {};
    }
    Push(state, now_ns_ + step_ns);
  }

  const ContentModel model_;
  const Bytes limit_bytes_;
  Nanoseconds now_ns_ = 0;
  std::priority_queue<Entry> queue_;
  std::unordered_set<State, StateHash> closed_;
};

}  // namespace

std::optional<Nanoseconds> LeastScheduleNs(const plan::Problem& problem,
                                           const plan::Machine& machine, Bytes limit_bytes,
                                           std::int64_t most_states) {
  PLIMSOLL_CHECK(machine.out_bytes_per_s == machine.both_out_bytes_per_s &&
                     machine.in_bytes_per_s == machine.both_in_bytes_per_s,
                 "rates depend on the other direction");
  return ScheduleSearch(problem, machine, limit_bytes).Run(most_states);
}

}  // namespace plimsoll::planners

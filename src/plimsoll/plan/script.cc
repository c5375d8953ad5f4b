// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/script.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "plimsoll/base/index.h"
#include "plimsoll/place/load_tree.h"
#include "plimsoll/plan/engine.h"

namespace plimsoll::plan {
namespace {

/// An exit in one lap.
struct Trip {
  enum class State : std::uint8_t { kHere, kLeaving, kAway, kComing, kBack, kCancelled };

  std::size_t exit = 0;
  Slot written = 0;  ///< The op behind which it can be copied out.
  Slot after = 0;    ///< The op that it follows; negative if before the first lap.
  Slot before = 0;   ///< The op that needs the variable back.
  State state = State::kHere;
  bool saved = false;       ///< Whether it was copied out before it could leave.
  bool gave_bytes = false;  ///< Whether `released` is set.
  Slot released = 0;
  Slot acquired = 0;
};

class Performance {
 public:
  Performance(const Script& script, const Machine& machine, Bytes load_limit_bytes, double prefetch)
      : script_(script),
        machine_(machine),
        load_limit_bytes_(load_limit_bytes),
        prefetch_(prefetch),
        exits_(script.exits),
        ops_(static_cast<Slot>(script.durations_ns.size())),
        laps_(LapsOf(script)),
        slots_(laps_ * ops_),
        load_(Needs()),
        engine_(machine) {
    AddTrips();
    SumLatestStarts();
  }

  Nanoseconds Run(std::vector<Outcome>* outcomes) {
    do {
      NoteLap();
      if (IsDone()) break;
      StartCopyOut();
      StartOp();
      StartCopyIn();
    } while (Advance());
    if (outcomes != nullptr) Conclude(outcomes);
    if (!script_.cyclic) return lap_ends_[1];
    const auto lap = At(counted_lap());
    return std::max(lap_ends_[lap + 1] - lap_ends_[lap], LinkTime());
  }

 private:
  /// Where every variable is back at the end, one lap tells all. Else, the second of three counts:
  /// it knows what the first leaves behind.
  static Slot LapsOf(const Script& script) {
    const bool around = std::any_of(script.exits.begin(), script.exits.end(),
                                    [](const Exit& exit) { return exit.around; });
    return script.cyclic && around ? 3 : 1;
  }
  Slot counted_lap() const { return laps_ == 3 ? 1 : 0; }

  using State = Trip::State;

  Bytes SizeOf(const Trip& trip) const { return exits_[trip.exit].held_bytes; }
  Bytes CopiedBytes(const Trip& trip) const { return exits_[trip.exit].size_bytes; }

  /// The load of every slot, of all laps, with all that can be away being away.
  std::vector<Bytes> Needs() const {
    std::vector<Bytes> needs = script_.needs_bytes;
    needs.reserve(At(slots_));
    while (needs.size() < At(slots_)) needs.push_back(needs[needs.size() - At(ops_)]);
    return needs;
  }

  void AddTrips() {
    for (Slot lap = -1; lap * ops_ < slots_; ++lap) {
      for (std::size_t k = 0; k < exits_.size(); ++k) {
        const Slot around = exits_[k].around ? ops_ : 0;
        Trip trip;
        trip.exit = k;
        trip.written = exits_[k].copied_behind() + lap * ops_;
        trip.after = exits_[k].after + lap * ops_;
        trip.before = exits_[k].before + lap * ops_ + around;
        if (trip.before < 0 || (trip.after < 0 && around == 0) || trip.before >= slots_) continue;
        if (trip.after < 0) {
          trip.state = State::kAway;
          trip.gave_bytes = true;
        }
        trips_.push_back(trip);
      }
    }
    for (std::size_t t = 0; t < trips_.size(); ++t) {
      if (trips_[t].after >= 0) outs_.push_back(t);
    }
    ins_.resize(trips_.size());
    std::iota(ins_.begin(), ins_.end(), 0);
    std::stable_sort(ins_.begin(), ins_.end(), [&](std::size_t a, std::size_t b) {
      return trips_[a].before < trips_[b].before;
    });
  }

  /// For each place in the copy-in queue, the latest moment, with ops that never wait, at which
  /// the queue must have come so far.
  void SumLatestStarts() {
    start_ns_.assign(1, 0);
    for (Slot s = 0; s < slots_; ++s) {
      start_ns_.push_back(start_ns_.back() + script_.durations_ns[At(s % ops_)]);
    }
    latest_ns_.resize(ins_.size());
    auto latest = std::numeric_limits<double>::max();
    for (std::size_t k = ins_.size(); k-- > 0;) {
      const Trip& trip = trips_[ins_[k]];
      // At least a nanosecond: what takes no time may be asked to come early, too.
      const Nanoseconds lead = std::max<Nanoseconds>(1, machine_.in_ns(CopiedBytes(trip)));
      latest = std::min(latest, static_cast<double>(start_ns_[At(trip.before)])) -
               prefetch_ * static_cast<double>(lead);
      latest_ns_[k] = latest;
    }
  }

  /// The op that is running, or the next one to run.
  Slot slot() const { return engine_.busy(Queue::kCompute) ? next_op_ - 1 : next_op_; }

  /// Notes when each lap ends.
  void NoteLap() {
    if (engine_.busy(Queue::kCompute) || next_op_ % ops_ != 0) return;
    lap_ends_[At(next_op_ / ops_)] = engine_.now_ns();
  }

  bool IsDone() const { return next_op_ == slots_ && !engine_.busy(Queue::kCompute); }

  void StartCopyOut() {
    if (engine_.busy(Queue::kCopyOut)) return;
    while (next_out_ < outs_.size()) {
      Trip& trip = trips_[outs_[next_out_]];
      const bool over = trip.written < next_op_ - (engine_.busy(Queue::kCompute) ? 1 : 0);
      if (!over) return;
      if (trip.state == State::kCancelled || !exits_[trip.exit].saves) {
        ++next_out_;
        continue;
      }
      engine_.StartCopy(Queue::kCopyOut, CopiedBytes(trip));
      return;
    }
  }

  void StartOp() {
    if (engine_.busy(Queue::kCompute) || next_op_ == slots_) return;
    if (!HasOperands() || !HasRoom(next_op_)) return;
    const Nanoseconds handover = hands_over_ ? machine_.handover_ns : 0;
    engine_.StartOp(script_.durations_ns[At(next_op_ % ops_)] + handover);
    hands_over_ = false;
    ++next_op_;
  }

  /// Whether all that the next op needs back is back. What has not even left need not leave.
  bool HasOperands() {
    bool ready = true;
    for (; first_due_ < ins_.size() && trips_[ins_[first_due_]].before < next_op_; ++first_due_) {
    }
    for (std::size_t k = first_due_; k < ins_.size(); ++k) {
      Trip& trip = trips_[ins_[k]];
      if (trip.before != next_op_) break;
      if (!trip.gave_bytes && trip.state == State::kLeaving) {
        trip.state = State::kCancelled;
        leaving_bytes_ -= SizeOf(trip);
      }
      ready = ready && (trip.state == State::kBack || trip.state == State::kCancelled);
      hands_over_ = hands_over_ || trip.state == State::kBack;
    }
    return ready;
  }

  /// Whether the slot has its bytes. Takes from copies out what is missing; these must end first.
  bool HasRoom(Slot slot) {
    const Bytes needed = load_.HighestIn(slot, slot + 1);
    for (; needed + leaving_bytes_ > load_limit_bytes_ && next_leaving_ < outs_.size();
         ++next_leaving_) {
      Trip& trip = trips_[outs_[next_leaving_]];
      if (trip.after >= slot) break;
      if (trip.state != State::kLeaving || trip.gave_bytes) continue;
      GiveBytes(&trip, slot);
      awaited_out_ = next_leaving_ + 1;
    }
    return next_out_ >= awaited_out_;
  }

  void GiveBytes(Trip* trip, Slot slot) {
    trip->gave_bytes = true;
    trip->released = slot;
    leaving_bytes_ -= SizeOf(*trip);
    hands_over_ = hands_over_ || exits_[trip->exit].saves;
  }

  void StartCopyIn() {
    while (next_in_ < ins_.size() && trips_[ins_[next_in_]].state == State::kCancelled) ++next_in_;
    if (engine_.busy(Queue::kCopyIn) || next_in_ == ins_.size()) return;
    Trip& trip = trips_[ins_[next_in_]];
    if (trip.state != State::kAway) return;
    const Slot now = slot();
    if (now < trip.before) {
      const Bytes size = SizeOf(trip);
      if (!IsDue() || !Fits(now, now + 1, size + leaving_bytes_) || !Fits(now, trip.before, size)) {
        return;
      }
      load_.Add(now, trip.before, size);
    } else if (!HasRoom(now)) {
      return;
    }
    trip.state = State::kComing;
    trip.acquired = now;
    engine_.StartCopy(Queue::kCopyIn, CopiedBytes(trip));
  }

  /// Whether there is room for so much more in all slots from `begin` to `end`.
  bool Fits(Slot begin, Slot end, Bytes more) const {
    return load_.HighestIn(begin, end) + more <= load_limit_bytes_;
  }

  /// Whether the next copy in must begin now for all to arrive in time: with the next slot it would
  /// be too late.
  bool IsDue() const {
    return static_cast<double>(start_ns_[At(slot()) + 1]) > latest_ns_[next_in_];
  }

  bool Advance() {
    if (!engine_.Advance()) return false;
    if (engine_.ended(Queue::kCompute)) {
      for (; next_leave_ < outs_.size() && trips_[outs_[next_leave_]].after < next_op_;
           ++next_leave_) {
        Leave(&trips_[outs_[next_leave_]]);
      }
    }
    if (engine_.ended(Queue::kCopyOut)) {
      Trip& trip = trips_[outs_[next_out_++]];
      trip.saved = true;
      if (trip.state == State::kLeaving) {
        if (!trip.gave_bytes) GiveBytes(&trip, next_op_);
        trip.state = State::kAway;
      }
    }
    if (engine_.ended(Queue::kCopyIn)) trips_[ins_[next_in_++]].state = State::kBack;
    return true;
  }

  /// The op before the absence has ended.
  void Leave(Trip* trip) {
    trip->state = State::kLeaving;
    leaving_bytes_ += SizeOf(*trip);
    if (exits_[trip->exit].saves && !trip->saved) return;
    GiveBytes(trip, trip->after + 1);
    trip->state = State::kAway;
  }

  /// How long the busier direction of the link is busy in every iteration. Copies may fall behind
  /// in one lap after the other; in the long run they cannot.
  Nanoseconds LinkTime() const {
    Nanoseconds out = 0;
    Nanoseconds in = 0;
    for (const Exit& exit : exits_) {
      if (exit.saves) out += machine_.out_ns(exit.size_bytes);
      in += machine_.in_ns(exit.size_bytes);
    }
    return std::max(out, in);
  }

  void Conclude(std::vector<Outcome>* outcomes) const {
    const Slot lap = counted_lap() * ops_;
    outcomes->assign(exits_.size(), {});
    for (const Trip& trip : trips_) {
      if (trip.after < lap || trip.after >= lap + ops_) continue;
      Outcome& outcome = (*outcomes)[trip.exit];
      outcome.cancelled = trip.state == State::kCancelled;
      outcome.timed = trip.state == State::kComing || trip.state == State::kBack;
      outcome.released = trip.released - lap;
      outcome.acquired = trip.acquired - lap;
    }
  }

  const Script& script_;
  const Machine& machine_;
  const Bytes load_limit_bytes_;
  const double prefetch_;
  const std::vector<Exit>& exits_;
  const Slot ops_;
  const Slot laps_;
  const Slot slots_;
  place::LoadTree load_;  // By slot: with all away that can be, but for what has been let in early.
  Engine engine_;
  std::vector<Trip> trips_;
  std::vector<std::size_t> outs_;  // Trips in the order of the copy-out queue.
  std::vector<std::size_t> ins_;   // And of the copy-in queue.
  std::vector<Nanoseconds> start_ns_;
  std::vector<double> latest_ns_;  // By place in ins_.
  std::array<Nanoseconds, 4> lap_ends_{};
  Slot next_op_ = 0;
  std::size_t next_out_ = 0;      // The copy out that runs, or is next to.
  std::size_t next_leave_ = 0;    // The first whose op has not ended.
  std::size_t next_leaving_ = 0;  // Those before have given their bytes, or are cancelled.
  std::size_t awaited_out_ = 0;   // Copies out before this one must end before anything starts.
  std::size_t next_in_ = 0;
  std::size_t first_due_ = 0;
  Bytes leaving_bytes_ = 0;  // Of variables that are being copied out and still have their bytes.
  bool hands_over_ = false;  // Whether the next op waits for copies.
};

}  // namespace

Nanoseconds Perform(const Script& script, const Machine& machine, Bytes load_limit_bytes,
                    double prefetch, std::vector<Outcome>* outcomes) {
  if (script.exits.empty() || script.durations_ns.empty()) {
    if (outcomes != nullptr) outcomes->clear();
    return std::accumulate(script.durations_ns.begin(), script.durations_ns.end(), Nanoseconds{0});
  }
  return Performance(script, machine, load_limit_bytes, prefetch).Run(outcomes);
}

}  // namespace plimsoll::plan

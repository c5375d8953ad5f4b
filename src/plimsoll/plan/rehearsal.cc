// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/rehearsal.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "plimsoll/place/load_tree.h"
#include "plimsoll/plan/engine.h"
#include "plimsoll/plan/schedule.h"

namespace plimsoll::plan {
namespace {

using Slot = std::int32_t;

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

/// An absence in one lap.
struct Trip {
  enum class State : std::uint8_t { kHere, kLeaving, kAway, kComing, kBack, kCancelled };

  std::size_t absence = 0;
  Slot after = 0;   ///< The op that it follows; negative if before the first lap.
  Slot before = 0;  ///< The op that needs the variable back.
  State state = State::kHere;
  bool gave_bytes = false;  ///< Whether `released` is set.
  Slot released = 0;
  Slot acquired = 0;
};

class Rehearsal {
 public:
  Rehearsal(const Problem& problem, const Machine& machine, const RehearsalOptions& options,
            std::vector<Absence>* absences)
      : problem_(problem),
        machine_(machine),
        options_(options),
        absences_(*absences),
        ops_(static_cast<Slot>(problem.ops.size())),
        slots_(problem.cyclic ? 3 * ops_ : ops_),
        load_(Needs()),
        engine_(machine) {
    AddTrips();
    SumLatestStarts();
  }

  Nanoseconds Run() {
    do {
      NoteLap();
      if (IsDone()) break;
      StartCopyOut();
      StartOp();
      StartCopyIn();
    } while (Advance());
    Conclude();
    if (!problem_.cyclic) return lap_ends_[1];
    return std::max(lap_ends_[2] - lap_ends_[1], LinkTime());
  }

 private:
  using State = Trip::State;

  Bytes SizeOf(const Trip& trip) const {
    const VariableIndex v = absences_[trip.absence].gap.variable;
    return AlignUp(problem_.variables[At(v)].size_bytes, options_.alignment);
  }
  Bytes CopiedBytes(const Trip& trip) const {
    return problem_.variables[At(absences_[trip.absence].gap.variable)].size_bytes;
  }

  /// The load of every slot, of all laps, with all that can be away being away.
  std::vector<Bytes> Needs() const {
    Decision decision;
    for (const Absence& absence : absences_) decision.swapped.push_back(absence.gap);
    const std::vector<Bytes> load = LeastLoad(problem_, decision, options_.alignment);
    std::vector<Bytes> needs(At(ops_), 0);
    Position position = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      for (; position <= problem_.ops[i].position; ++position) {
        needs[i] = std::max(needs[i], load[At(position)]);
      }
    }
    // What follows the last op belongs to the first slot of the next lap.
    for (; position < problem_.period; ++position) {
      needs[0] = std::max(needs[0], load[At(position)]);
    }
    needs.reserve(At(slots_));
    while (needs.size() < At(slots_)) needs.push_back(needs[needs.size() - At(ops_)]);
    return needs;
  }

  void AddTrips() {
    for (Slot lap = -1; lap * ops_ < slots_; ++lap) {
      for (std::size_t k = 0; k < absences_.size(); ++k) {
        const Gap& gap = absences_[k].gap;
        const Slot around = gap.end >= problem_.period ? ops_ : 0;
        Trip trip;
        trip.absence = k;
        trip.after = gap.after + lap * ops_;
        trip.before = gap.before + lap * ops_ + around;
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
      start_ns_.push_back(start_ns_.back() + problem_.ops[At(s % ops_)].duration_ns);
    }
    latest_ns_.resize(ins_.size());
    auto latest = std::numeric_limits<double>::max();
    for (std::size_t k = ins_.size(); k-- > 0;) {
      const Trip& trip = trips_[ins_[k]];
      // At least a nanosecond: what takes no time may be asked to come early, too.
      const Nanoseconds lead = std::max<Nanoseconds>(1, machine_.in_ns(CopiedBytes(trip)));
      latest = std::min(latest, static_cast<double>(start_ns_[At(trip.before)])) -
               options_.prefetch * static_cast<double>(lead);
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
      const bool over = trip.after < next_op_ - (engine_.busy(Queue::kCompute) ? 1 : 0);
      if (!over) return;
      if (trip.state == State::kCancelled || !absences_[trip.absence].saves) {
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
    engine_.StartOp(problem_.ops[At(next_op_ % ops_)].duration_ns);
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
    }
    return ready;
  }

  /// Whether the slot has its bytes. Takes from copies out what is missing; these must end first.
  bool HasRoom(Slot slot) {
    const Bytes needed = load_.HighestIn(slot, slot + 1);
    for (; needed + leaving_bytes_ > options_.load_limit_bytes && next_leaving_ < outs_.size();
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
    return load_.HighestIn(begin, end) + more <= options_.load_limit_bytes;
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
    if (absences_[trip->absence].saves) return;
    GiveBytes(trip, trip->after + 1);
    trip->state = State::kAway;
  }

  /// How long the busier direction of the link is busy in every iteration. Copies may fall behind
  /// in one lap after the other; in the long run they cannot.
  Nanoseconds LinkTime() const {
    Nanoseconds out = 0;
    Nanoseconds in = 0;
    for (const Absence& absence : absences_) {
      const Bytes bytes = problem_.variables[At(absence.gap.variable)].size_bytes;
      if (absence.saves) out += machine_.out_ns(bytes);
      in += machine_.in_ns(bytes);
    }
    return std::max(out, in);
  }

  /// The position at which a slot of an absence's own lap begins.
  Position Begin(Slot slot) const {
    const Slot op = slot - 1;
    return problem_.ops[At(op % ops_)].position + 1 + op / ops_ * problem_.period;
  }

  void Conclude() {
    const Slot lap = problem_.cyclic ? ops_ : 0;
    std::vector<bool> useless(absences_.size(), false);
    for (const Trip& trip : trips_) {
      if (trip.after < lap || trip.after >= lap + ops_) continue;
      Absence& absence = absences_[trip.absence];
      const Position end = AbsenceEnd(problem_, absence.gap);
      absence.released = absence.gap.begin;
      absence.acquired = end;
      if (trip.state == State::kComing || trip.state == State::kBack) {
        absence.released = std::clamp(Begin(trip.released - lap), absence.gap.begin, end);
        absence.acquired = std::clamp(Begin(trip.acquired - lap), absence.released, end);
      }
      useless[trip.absence] =
          trip.state == State::kCancelled || absence.released >= absence.acquired;
    }
    std::size_t kept = 0;
    for (std::size_t k = 0; k < absences_.size(); ++k) {
      if (!useless[k]) absences_[kept++] = absences_[k];
    }
    absences_.resize(kept);
  }

  const Problem& problem_;
  const Machine& machine_;
  const RehearsalOptions& options_;
  std::vector<Absence>& absences_;
  const Slot ops_;
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
};

}  // namespace

Nanoseconds Rehearse(const Problem& problem, const Machine& machine,
                     const RehearsalOptions& options, std::vector<Absence>* absences) {
  if (absences->empty() || problem.ops.empty()) return problem.iteration_ns();
  return Rehearsal(problem, machine, options, absences).Run();
}

}  // namespace plimsoll::plan

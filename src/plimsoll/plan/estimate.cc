// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/plan/estimate.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/index.h"

namespace plimsoll::plan {
namespace {

Nanoseconds Scale(Nanoseconds ns, double by) {
  return static_cast<Nanoseconds>(static_cast<double>(ns) * by);
}

/// A moment before everything.
constexpr double kLongAgo = -1e18;

}  // namespace

Nanoseconds Estimator::Run(const Script& script, const Machine& machine, Bytes load_limit_bytes,
                           double prefetch, Nanoseconds below_ns) {
  script_ = &script;
  machine_ = &machine;
  limit_bytes_ = load_limit_bytes;
  prefetch_ = prefetch;
  Prepare();
  if (!RunLap(below_ns)) return now_ns_;
  if (script.cyclic && out_free_ns_ > now_ns_) {
    SpillOver();
    if (!RunLap(below_ns)) return now_ns_;
  }
  return std::max({now_ns_, out_busy_ns_, in_busy_ns_});
}

/// Runs all ops. False, with the least time that they take as of now, if that is too much.
bool Estimator::RunLap(Nanoseconds below_ns) {
  const auto ops = static_cast<Slot>(script_->durations_ns.size());
  highest_bytes_ = 0;
  for (Slot slot = 0; slot < ops; ++slot) {
    if (next_gone_ < next_leave_ || next_spilled_ < spilled_.size()) MakeRoom(slot);
    highest_bytes_ = std::max(highest_bytes_, load_bytes_[At(slot)] + leaving_bytes_);
    Await(slot);
    const Nanoseconds least = now_ns_ + begin_ns_[At(ops)] - begin_ns_[At(slot)];
    if (least > below_ns) {
      now_ns_ = least;
      return false;
    }
    const Nanoseconds end = now_ns_ + DurationOf(slot);
    BringIn(slot, end);
    now_ns_ = end_ns_[At(slot)] = end;
    Leave(slot);
  }
  return true;
}

/// Begins the next iteration, with what this one leaves behind.
void Estimator::SpillOver() {
  const Nanoseconds lap_ns = now_ns_;
  const Nanoseconds out_free_ns = out_free_ns_ - lap_ns;
  const Nanoseconds in_free_ns = in_free_ns_ - lap_ns;
  std::vector<Spilled> spilled = std::move(spilled_);
  spilled.clear();
  for (std::size_t e = 0; e < trips_.size(); ++e) {
    const bool late = trips_[e].state == State::kLeaving && trips_[e].out_end_ns > lap_ns;
    if (late && script_->exits[e].around) spilled.push_back({e, trips_[e].out_end_ns - lap_ns});
  }
  Prepare();
  out_free_ns_ = out_free_ns;
  in_free_ns_ = in_free_ns;
  for (const Spilled& x : spilled) {
    trips_[x.exit].out_end_ns = x.out_end_ns;
    leaving_bytes_ += script_->exits[x.exit].held_bytes;
  }
  spilled_ = std::move(spilled);
}

/// Of the slot's op, which begins now.
Nanoseconds Estimator::DurationOf(Slot slot) {
  Nanoseconds duration = script_->durations_ns[At(slot)];
  if (hands_over_) duration += machine_->handover_ns;
  hands_over_ = false;
  if (!machine_->slows_ops()) return duration;
  const auto slowed = [&](Nanoseconds busy_until, double slowdown) {
    return Scale(std::clamp<Nanoseconds>(busy_until - now_ns_, 0, duration), slowdown - 1);
  };
  return duration + slowed(out_free_ns_, machine_->slowdown_by_out) +
         slowed(in_free_ns_, machine_->slowdown_by_in);
}

void Estimator::Prepare() {
  const std::vector<Exit>& exits = script_->exits;
  const std::size_t slots = script_->durations_ns.size();
  trips_.assign(exits.size(), {});
  load_bytes_ = script_->needs_bytes;
  begin_ns_.resize(slots + 1);
  end_ns_.resize(slots);
  begin_ns_[0] = 0;
  for (std::size_t s = 0; s < slots; ++s)
    begin_ns_[s + 1] = begin_ns_[s] + script_->durations_ns[s];
  order_.resize(exits.size());
  for (std::size_t e = 0; e < exits.size(); ++e) {
    order_[e] = std::uint64_t{static_cast<std::uint32_t>(exits[e].before)} << 32 | e;
  }
  std::sort(order_.begin(), order_.end());
  for (std::uint64_t& e : order_) e &= std::numeric_limits<std::uint32_t>::max();
  auto latest = std::numeric_limits<double>::max();
  for (std::size_t k = order_.size(); k-- > 0;) {
    const Exit& exit = exits[order_[k]];
    latest = std::min(latest, static_cast<double>(begin_ns_[At(exit.before)])) -
             prefetch_ * static_cast<double>(machine_->in_ns(exit.size_bytes));
    trips_[order_[k]].latest_ns = latest;
    if (exit.around) trips_[order_[k]].state = State::kAway;
  }
  useless_.clear();
  spilled_.clear();
  next_spilled_ = 0;
  now_ns_ = out_free_ns_ = out_busy_ns_ = in_busy_ns_ = 0;
  in_free_ns_ = std::numeric_limits<Nanoseconds>::min() / 2;
  leaving_bytes_ = 0;
  hands_over_ = false;
  next_leave_ = next_gone_ = next_in_ = next_due_ = 0;
  barred_exit_ = exits.size();
}

void Estimator::GiveBytes(std::size_t exit) {
  trips_[exit].state = State::kAway;
  leaving_bytes_ -= script_->exits[exit].held_bytes;
  hands_over_ = hands_over_ || script_->exits[exit].saves;
}

/// Takes the bytes of copies out that have ended; waits for as many as the slot needs.
void Estimator::MakeRoom(Slot slot) {
  for (; next_spilled_ < spilled_.size(); ++next_spilled_) {
    const Spilled& x = spilled_[next_spilled_];
    const bool short_of = load_bytes_[At(slot)] + leaving_bytes_ > limit_bytes_;
    if (x.out_end_ns > now_ns_ && !short_of) return;
    now_ns_ = std::max(now_ns_, x.out_end_ns);
    leaving_bytes_ -= script_->exits[x.exit].held_bytes;
    hands_over_ = true;
  }
  for (; next_gone_ < next_leave_; ++next_gone_) {
    const Trip& trip = trips_[next_gone_];
    if (trip.state != State::kLeaving) continue;
    const bool short_of = load_bytes_[At(slot)] + leaving_bytes_ > limit_bytes_;
    if (trip.out_end_ns > now_ns_ && !short_of) return;
    now_ns_ = std::max(now_ns_, trip.out_end_ns);
    GiveBytes(next_gone_);
  }
}

/// Waits for what the op needs back. What has not even gone stays.
void Estimator::Await(Slot slot) {
  for (; next_due_ < order_.size(); ++next_due_) {
    const std::size_t e = order_[next_due_];
    if (script_->exits[e].before > slot) return;
    if (trips_[e].state == State::kLeaving) {
      useless_.push_back(e);
      GiveBytes(e);
      trips_[e].state = State::kComing;
      next_in_ = std::max(next_in_, next_due_ + 1);
      continue;
    }
    if (trips_[e].state == State::kAway) {
      StartIn(e, std::max(now_ns_, trips_[e].out_end_ns));
      next_in_ = std::max(next_in_, next_due_ + 1);
    }
    now_ns_ = std::max(now_ns_, trips_[e].in_end_ns);
    hands_over_ = true;
  }
}

void Estimator::StartIn(std::size_t exit, Nanoseconds begin_ns) {
  begin_ns = std::max(begin_ns, in_free_ns_);
  Nanoseconds duration = machine_->in_ns(script_->exits[exit].size_bytes);
  if (out_free_ns_ > begin_ns) {
    duration = Scale(duration, machine_->in_bytes_per_s / machine_->both_in_bytes_per_s);
  }
  in_free_ns_ = begin_ns + duration;
  in_busy_ns_ += duration;
  trips_[exit].in_end_ns = in_free_ns_;
  trips_[exit].state = State::kComing;
}

/// Begins copies in that are due while the slot's op runs, if there is room for them.
void Estimator::BringIn(Slot slot, Nanoseconds end_ns) {
  for (; next_in_ < order_.size(); ++next_in_) {
    const std::size_t e = order_[next_in_];
    const Exit& exit = script_->exits[e];
    Trip& trip = trips_[e];
    if (trip.state == State::kComing) continue;
    if (trip.state != State::kAway || exit.before <= slot) return;
    if (static_cast<double>(begin_ns_[At(slot) + 1]) <= trip.latest_ns) return;
    Nanoseconds begin = std::max({now_ns_, in_free_ns_, trip.out_end_ns});
    // What comes from around the end may have begun before.
    if (slot == 0 && exit.around) {
      begin = std::max(static_cast<Nanoseconds>(std::max(trip.latest_ns, kLongAgo)), in_free_ns_);
    }
    if (begin >= end_ns || !HasRoom(slot, e)) return;
    Bytes* const load = load_bytes_.data();
    const Bytes held = exit.held_bytes;
    for (Slot s = slot, before = exit.before; s < before; ++s) load[s] += held;
    StartIn(e, begin);
  }
}

/// Whether the next to come may come back for all slots up to its op. Loads do not change while it
/// waits, so the last slot that is too full for it is looked for once.
bool Estimator::HasRoom(Slot slot, std::size_t exit) {
  const Bytes* const load = load_bytes_.data();
  const Bytes room = limit_bytes_ - script_->exits[exit].held_bytes;
  if (load[slot] + leaving_bytes_ > room) return false;
  if (barred_exit_ != exit) {
    barred_exit_ = exit;
    barred_until_ = script_->exits[exit].before - 1;
    while (barred_until_ > slot && load[barred_until_] <= room) --barred_until_;
  }
  return slot >= barred_until_;
}

/// The op of the slot has ended.
void Estimator::Leave(Slot slot) {
  const std::vector<Exit>& exits = script_->exits;
  for (; next_leave_ < exits.size() && exits[next_leave_].after <= slot; ++next_leave_) {
    const Exit& exit = exits[next_leave_];
    Trip& trip = trips_[next_leave_];
    trip.state = State::kLeaving;
    leaving_bytes_ += exit.held_bytes;
    trip.out_end_ns = now_ns_;
    if (!exit.saves) {
      GiveBytes(next_leave_);
      continue;
    }
    Nanoseconds duration = machine_->out_ns(exit.size_bytes);
    const Slot behind = exit.copied_behind();
    const Nanoseconds begin = std::max(out_free_ns_, behind < 0 ? 0 : end_ns_[At(behind)]);
    if (in_free_ns_ > begin) {
      duration = Scale(duration, machine_->out_bytes_per_s / machine_->both_out_bytes_per_s);
    }
    out_free_ns_ = begin + duration;
    out_busy_ns_ += duration;
    trip.out_end_ns = out_free_ns_;
  }
}

}  // namespace plimsoll::plan

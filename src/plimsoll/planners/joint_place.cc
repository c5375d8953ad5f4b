// SPDX-License-Identifier: Apache-2.0
//
// The part of `joint` that makes plans of choices, and finds others where they cannot be placed.
#include <algorithm>
#include <array>
#include <utility>

#include "plimsoll/planners/joint_internal.h"

namespace plimsoll::planners {
namespace {

/// Of the target, what is given up if a plan cannot be placed.
constexpr double kGiveUp = 0.006;
constexpr double kGiveUpFirst = 0.02;
/// How often a first plan and a last one are tried, and so many parts of the search around a
/// misfit.
constexpr int kMostFirst = 16;
constexpr int kMostLast = 3;
constexpr int kChunksPerMisfit = 3;
/// How many misfits there are before a lower target is tried; at once if more of the limit is
/// missing than this.
constexpr int kTriesPerTarget = 3;
constexpr double kCloseToPlaced = 0.05;
/// How much more overhead is taken for more room, until there have been so many misfits; and of a
/// plan that is gone back to.
constexpr double kDearer = 1.03;
constexpr int kPatience = 10;
constexpr double kMuchDearer = 1.3;
/// For others that need fewer addresses: how much more overhead they may have, which part of the
/// budget they may take, how far the next is from the one before, and how hot it gets if nothing
/// changes.
constexpr double kSqueezedOverhead = 0.02;
constexpr double kSqueezeShare = 0.1;
constexpr std::int64_t kSqueezeChunk = 40;
constexpr double kSqueezeHeat = 0.3;
constexpr double kMostSqueezeHeat = 10;
/// Of the limit: what misses by less is brought under a target that is lower by so many times that,
/// and by this at least.
constexpr double kSlightly = 0.006;
constexpr double kSlightMargin = 1.5;
constexpr double kLeastSlight = 0.001;
/// Where placed plans are walked through: targets in turn, of the limit; how many evaluations a
/// step takes, how hot it is at least, and how much more overhead than the best it may have.
constexpr std::array kWalkTargets = {1.0, 0.985, 0.97, 0.955, 0.94, 0.92, 0.9};
constexpr std::int64_t kWalkChunk = 80;
constexpr double kWalkHeat = 0.3;
constexpr double kWalkDearer = 1.02;
constexpr std::size_t kMostWalkedOps = 400;
/// Of the limit: targets that differ by less are the same.
constexpr double kStep = 0.004;
/// By how much a plan may be slower than predicted.
constexpr double kPredicted = 0.002;

}  // namespace

void Joint::MakeFirst() {
  Scored state = best_;
  double part = search_.IsSmall() ? kGiveUp : kGiveUpFirst;
  for (int k = 0; k < kMostFirst && !Make(state); ++k) {
    GiveUp(part);
    part = std::min(2 * part, kGiveUpFirst);
    if (!Tighten(&state)) break;
  }
  search_.set_target(question_.options.limit_bytes);
}

void Joint::MakeLast() {
  for (int k = 0; k < kMostLast && best_.worth.time_ns < made_ns_; ++k) {
    // Whoever stops a long search wants what it has found: that takes one more plan.
    if (IsStopped() && (k > 0 || !search_.IsSmall())) return;
    if (Make(best_) || IsStopped() || !LowerTarget()) return;
  }
}

bool Joint::MakeAsPredicted() {
  return Make(best_) && static_cast<double>(made_ns_) <=
                            (1 + kPredicted) * static_cast<double>(best_.worth.time_ns);
}

bool Joint::Make(const Scored& state) {
  needed_bytes_ = 0;
  evaluator_.set_target(search_.target());
  JointState exact;
  exact.choices = state.choices.gaps;
  exact.lingers = state.choices.lingers;
  exact.horizon = state.choices.horizon;
  exact.prefetch = state.choices.prefetch;
  if (!evaluator_.Evaluate(&exact)) return false;
  Attempt attempt = evaluator_.Make(exact);
  if (const auto* misfit = std::get_if<plan::Misfit>(&attempt.made)) {
    needed_bytes_ = misfit->needed_bytes;
    return false;
  }
  if (Take(std::move(attempt))) {
    placed_ = state;
    placed_target_ = search_.target();
  }
  return true;
}

bool Joint::Squeeze(Scored* state) {
  Worth worth;
  search_.Time(best_.choices, &worth, Worth::kNoTime, /*roughly=*/true);
  const auto more = kSqueezedOverhead * static_cast<double>(best_.worth.time_ns - base_ns_);
  const Nanoseconds most =
      std::max(best_.worth.time_ns, worth.time_ns) + static_cast<Nanoseconds>(more);
  if (ComeLater(most, state)) return true;
  if (GiveWay(state)) return true;
  const double end = Progress() + kSqueezeShare;
  Scored current = best_;
  Bytes needed = needed_bytes_;
  double heat = kSqueezeHeat;
  while (!IsOver(std::min(end, 1.0))) {
    Scored next = current;
    Scored found;
    search_.Anneal(&next, &found, kSqueezeChunk, HeatOf(best_) * heat, Until(1));
    const bool stuck = next.choices == current.choices;
    heat = std::clamp(stuck ? 2 * heat : heat / 2, kSqueezeHeat, kMostSqueezeHeat);
    if (stuck || next.worth.time_ns > most) continue;
    if (Make(next)) {
      best_ = next;
      *state = next;
      return true;
    }
    if (needed_bytes_ > needed) continue;
    needed = needed_bytes_;
    current = std::move(next);
  }
  return false;
}

bool Joint::ComeLater(Nanoseconds most_ns, Scored* state) {
  for (const double prefetch : JointSearch::kPrefetches) {
    if (prefetch >= best_.choices.prefetch || IsOver()) return false;
    Scored later = best_;
    later.choices.prefetch = prefetch;
    search_.Time(later.choices, &later.worth);
    if (later.worth.time_ns > most_ns || later.worth.time_ns >= made_ns_) continue;
    // What comes earlier than need be only takes addresses.
    search_.set_most_prefetch(prefetch);
    best_ = later;
    *state = std::move(later);
    return Make(best_);
  }
  return false;
}

bool Joint::GiveWay(Scored* state) {
  if (needed_bytes_ == 0 || Missing() > kSlightly || IsOver()) return false;
  const Bytes target = search_.target();
  const double part = std::max(kSlightMargin * Missing(), kLeastSlight);
  search_.set_target(static_cast<Bytes>(static_cast<double>(target) * (1 - part)));
  Scored lower = best_;
  if (!Tighten(&lower) || lower.worth.time_ns >= made_ns_) {
    search_.set_target(target);
    return false;
  }
  best_ = lower;
  *state = std::move(lower);
  return Make(best_);
}

void Joint::WalkPlaced() {
  Scored current = placed_;
  double heat = kWalkHeat;
  for (std::size_t k = 0; !IsOver(); ++k) {
    const double share = kWalkTargets[k % kWalkTargets.size()];
    search_.set_target(static_cast<Bytes>(share * Limit()));
    Scored next = current;
    Scored found;
    search_.Anneal(&next, &found, kWalkChunk, HeatOf(current) * heat, Until(1));
    const bool stuck = next.choices == current.choices;
    heat = std::clamp(stuck ? 2 * heat : heat / 1.5, kWalkHeat, kMostSqueezeHeat);
    if (stuck) continue;
    const auto most = static_cast<double>(made_ns_ - base_ns_) * kWalkDearer;
    if (static_cast<double>(next.worth.time_ns - base_ns_) > most) continue;
    if (Make(next)) current = std::move(next);
  }
}

bool Joint::GoBack() {
  if (placed_.worth.time_ns == Worth::kNoTime) return false;
  best_ = placed_;
  search_.set_target(placed_target_);
  return true;
}

bool Joint::MayWalk() const {
  const bool short_enough = question_.problem.ops.size() <= kMostWalkedOps && search_.IsSmall();
  const bool far = Missing() > kCloseToPlaced && placed_.worth.time_ns < Worth::kNoTime;
  return short_enough && far && Progress() >= walks_from_;
}

bool Joint::ComeDown(Scored* state) {
  const auto above = static_cast<double>(search_.target() - placed_target_);
  const auto overhead = static_cast<double>(best_.worth.time_ns - base_ns_);
  const auto placed_overhead = static_cast<double>(placed_.worth.time_ns - base_ns_);
  const bool near = placed_overhead <= kMuchDearer * overhead;
  if (!search_.IsSmall() || above <= kStep * Limit() || !near) return false;
  ceiling_ = search_.target();
  if (!GoBack()) return false;
  *state = best_;
  Raise();
  return true;
}

void Joint::Raise() {
  const Bytes target = (search_.target() + ceiling_) / 2;
  if (!search_.IsSmall() || static_cast<double>(ceiling_ - target) < kStep / 2 * Limit()) return;
  search_.set_target(target);
}

void Joint::GiveUp(double part) {
  const double share = 1 - std::clamp(Missing() / 2, part, 0.1);
  search_.set_target(static_cast<Bytes>(static_cast<double>(search_.target()) * share));
}

bool Joint::Tighten(Scored* state) {
  search_.Descend(state, false, [] { return false; });
  if (state->worth.time_ns == Worth::kNoTime && made_ns_ == Worth::kNoTime) {
    search_.SwapForReplays(state, [this] { return IsStopped(); });
  }
  return state->worth.time_ns < Worth::kNoTime;
}

void Joint::Retreat(Scored* state) {
  const Scored misfit = best_;
  // Not where much is missing, and in a long iteration there is no time for it.
  const bool close = Missing() < kCloseToPlaced && search_.IsSmall();
  const bool try_lower = ++misfits_ % kTriesPerTarget == 0 || !close;
  const Bytes target = search_.target();
  if (try_lower && LowerTarget()) {
    const double before = static_cast<double>(misfit.worth.time_ns - base_ns_);
    const double after = static_cast<double>(best_.worth.time_ns - base_ns_);
    const bool any = misfits_ >= kPatience && best_.worth.time_ns < made_ns_;
    if (after <= kDearer * before || any || !close) {
      *state = best_;
      return;
    }
    search_.set_target(target);
  }
  LookAround(misfit, state);
}

void Joint::LookAround(const Scored& misfit, Scored* state) {
  *state = misfit;
  best_.worth.time_ns = Worth::kNoTime;
  for (int k = 0; k < kChunksPerMisfit && !IsOver(); ++k) AnnealOn(state);
  if (best_.worth.time_ns == Worth::kNoTime) best_ = misfit;
}

bool Joint::LowerTarget() {
  const Bytes target = search_.target();
  for (const double part : {std::clamp(Missing() / 2, kGiveUp, 0.1), kGiveUp}) {
    Scored lower = best_;
    search_.set_target(static_cast<Bytes>(static_cast<double>(target) * (1 - part)));
    if (Tighten(&lower)) {
      best_ = std::move(lower);
      return true;
    }
  }
  search_.set_target(target);
  return false;
}

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::planners {

/// More states than this are given up on, unless told otherwise.
inline constexpr std::int64_t kMostScheduleStates = 2'000'000;

/// Returns the least time in which the recorded ops of a small problem can run within a limit of
/// the load: over all schedules of ops, replays, copies out and copies in, not only those that our
/// scheduler makes. Nothing if there is none, or if that is not known after `most_states` states.
///
/// What moves are *contents*: a variable in the version that its k-th writer leaves. At any moment
/// a content may be on the device, on the host, on both or nowhere.
///
///     compute    │ F0 │ F1 │ F2 │ F0 again │ B2 │ ...   one op at a time; recorded ops in order
///     copy out             │  content    │              one at a time, at the link's single rate
///     copy in                             │ content │    likewise
///
///   - An op runs if all that it finds is on the device, stays there while it runs, and what it
///     writes has room. An op that changes a variable in place may take its bytes over, or leave
///     the version before where it is and take others.
///   - A copy out leaves its content on the device while it runs, a copy in takes its bytes when it
///     begins. The host is large enough.
///   - Bytes of the device are counted, not placed: a load, not a footprint. Nothing is kept that
///   is
///     not wanted, whatever the recorded frees say, and anything may be kept beyond them.
///
/// So it is at or below the time of every plan, and no bound may be above it. Both are tested.
///
/// Best first over states: where each content is, the next recorded op, what is under way and for
/// how long still; by the time so far and the recorded ops to come. Something begins only when
/// something else ends: in any schedule, all that begins may be moved ahead to the last beginning
/// or end before it, which changes no order, lets nobody wait longer and no byte be taken twice.
/// What is on the device leaves it only when its bytes are wanted, and no more than are wanted.
///
/// A cyclic problem is run once: if nothing lives around its end, no iteration is shorter than what
/// lies between the beginnings of its first op and the end of its last.
///
/// REQUIRES: nothing is persistent or lives around the end; some op writes every variable before
/// any reads it (there are no workspaces); at most 32 contents; the machine's rates do not depend
/// on whether both directions are busy.
std::optional<Nanoseconds> LeastScheduleNs(const plan::Problem& problem,
                                           const plan::Machine& machine, Bytes limit_bytes,
                                           std::int64_t most_states = kMostScheduleStates);

}  // namespace plimsoll::planners

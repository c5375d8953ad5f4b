// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/machine.h"
#include "plimsoll/plan/problem.h"

namespace plimsoll::planners {

/// Returns a time that no iteration of a plan can beat, at this limit, on this machine, whether it
/// swaps, recomputes or does both; or, if it may not recompute, swaps and does nothing else. At
/// least the sum of the ops. Whether any plan meets the limit is another question
/// (plan::LoadOps()).
///
/// Proof. Take any recorded op p, and the moment at which it begins, once per iteration. As in
/// swap_bound.h, of what has content from before and is needed later (held, see plan/op_load.h), at
/// least E = held + new - limit bytes are not on the device at that moment, in any version, and p
/// touches none of them. They are of three kinds.
///
///   - What is malloc'ed before p and freed behind it, in this iteration: a candidate. Either a
///     version of it that the host has at that moment comes in before the next op that touches it:
///     it is *swapped*, and that version went out after the first op that wrote it and before p. Or
///     none does: then it is *recomputed*, from nothing. Every op that has written it since its
///     malloc runs again behind p, and before the end of the iteration.
///   - What is persistent and touched by a later op of this iteration, L bytes: it comes in behind
///     the beginning of p and before that op. When it went out is left open.
///   - All else, F bytes: it comes in once per period.
///
///     compute    │ ops before p        │ p, ops behind it, replays    │ next iteration
///     copy out   │     [out bytes    ] │                              │
///     copy in    │                     │ [in bytes        ]           │
///                └─ before ────────────┴─ behind ─────────────────────┘
///
/// The compute queue runs one op at a time, and all of this lies between the beginnings of two
/// iterations. Let x of the E bytes come in by the link and r = E - x be recomputed. At least
/// in = x - F come in behind the beginning of p, and at least out = x - F - L go out before it. So
/// an iteration takes at least LinkSeconds(x, x - clean), and at least before + behind, with
///
///     before >= ops before p,               before >= out / bandwidth + lead
///     behind >= ops from p on + R(r),       behind >= in / bandwidth + lead from the end
///     lead = the largest, over ops o, of (ops up to o - candidates written before o / bandwidth)
///
/// The lead says that the link cannot move what is not written yet: of what goes out, only
/// candidates that are first written before o can leave before o has ended. The same holds from the
/// end backwards for what is needed next, and by whom.
///
/// R(r) is the least time of replays that rebuild r bytes. An op that has written several
/// candidates runs once for all of them. Its time is shared out by bytes over all that it has
/// written, so that a set of variables is never charged more than its replays take; and variables
/// may be rebuilt in part, cheapest bytes first. What has been written by an op that must not run
/// again is not rebuilt. All of this only lowers the result, and makes it convex in x: the best
/// plan's x is found by ternary search.
///
/// A second bound, of which the higher is taken, also counts what replays read. Let a candidate's
/// writer have read u, which is *dead*: of this iteration, and last touched before p. If the
/// candidate is recomputed, then behind p some version of u is there to be read, and one of these
/// holds:
///
///   - u is on the device when p begins. It is none of what is held, so that its bytes are missing
///     there: E is larger by them.
///   - It is not, and comes in by the link behind p. Then the host has it, it went out before p,
///   and
///     it counts in x. But nothing of what is held is on the host for it: of the E bytes, x less
///     these come in.
///   - Neither. Then all that had written u before its first such reader runs again behind p.
///
/// The first two are the same: u is *held*, r must be larger by its bytes. Let d be 1 for what is
/// recomputed and 0 for other candidates, and h and e be 1 for dead inputs that are held or
/// rebuilt. Then h(u) + e(u) >= d(v) for each of the candidates that are made of u, and so for
/// their mean, weighted by bytes: each has to see to its share of u. Ops are shared out by bytes
/// over candidates and dead inputs. So the best plan satisfies, with sums over candidates v, dead
/// inputs u, ops o and what these have written,
///
///     sum of bytes(v) d(v) - sum of bytes(u) h(u)  >=  E - x
///     h(u) + e(u)  >=  sum of share(u, v) d(v)
///     replays  >=  sum of time(o) share(o, w) (d or e)(w)
///
/// R(r) is the least of the last for r = E - x with all of d, h and e anywhere from 0 to 1. That
/// falls apart by candidates: a part of v is worth its bytes less its share of dead inputs that are
/// held, and takes its share of the writers of v and of dead inputs that are rebuilt. Each input is
/// rebuilt rather than held from some price of bytes on, so that v is a chain of pieces that are
/// ever dearer, and the cheapest pieces of all are taken. What dead inputs were made of is left
/// open. Leads count dead inputs among what may have gone out and come in, with the last op that
/// needs anything made of them.
///
/// Any set of ops p gives a bound. Those with the largest excess are taken, and as many spread over
/// the iteration. Neither latencies nor alignment are counted.
///
/// O(n log n) in variables and operands for each of at most 2 * kJointBoundSlots ops.
/// REQUIRES: every variable of the problem has one instance (plan::Unroll()).
Nanoseconds JointBound(const plan::Problem& problem, const plan::Machine& machine,
                       Bytes limit_bytes, bool may_recompute = true);

inline constexpr std::size_t kJointBoundSlots = 100;

}  // namespace plimsoll::planners

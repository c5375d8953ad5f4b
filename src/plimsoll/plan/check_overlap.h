// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/check_content.h"
#include "plimsoll/plan/check_reach.h"
#include "plimsoll/plan/check_report.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// Judges kAddress and kHostAddress: that those who share a byte have it one after the other, in
/// this iteration and around its end.
///
///     offset        ┌─────────┐
///       ▲   ┌───────┤    C    ├──┐          sweep line at this byte: A, C, B, then A again
///     ──┼───┤   A   └──┬──────┴──┴──┬────   A.last ──▶ C.first, C.last ──▶ B.first,
///       │   └──────────┤     B      │       B.last ──▶ A.first of the next iteration
///       │              └────────────┘
///
/// At every byte, those who have it must form a ring in which each one's last touch has ended
/// before the next one's first touch starts. A line sweeps over the offsets and keeps the ring of
/// its byte, sorted by the first touch; whoever enters is compared with its two neighbours, and
/// when one leaves its neighbours are compared with each other. That is enough, as paths are
/// transitive, and it takes O(n log n) where pairs would be O(n^2).
///
/// On the device a tenant is a residency, from its copy in or first op to its last op and copy out.
/// On the host it is what a copy out has saved, until all copies in that read it are over.
///
/// Two who are touched by the same op may share bytes if one was freed before the other was
/// malloc'ed: that is what the program did.
///
/// REQUIRES: the laws about contents hold.
void CheckOverlaps(const Plan& plan, const Contents& contents, const Reach& reach,
                   CheckReport* report);

}  // namespace plimsoll::plan

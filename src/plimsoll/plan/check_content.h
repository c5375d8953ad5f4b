// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/plan/check_reach.h"
#include "plimsoll/plan/check_report.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

/// The commands that touch stay 0 of a residency, with the iterations in which they do.
///
///     copy_in ──▶ first_op ── ... ──▶ last_write ── ... ──▶ last_op
///                                          └──▶ copy_out, unless freed or dropped
struct Stay {
  Moment copy_in;
  Moment first_op;
  Moment last_write;
  Moment last_op;
  Moment copy_out;
};

/// A copy out and all copies in that bring the same version back, in the order of the stays that
/// they fill, by iterations of one stay.
struct HostCopy {
  Moment out;
  std::vector<Moment> ins;
};

/// What the content laws find out on their way.
struct Contents {
  std::vector<Stay> stays;            ///< By residency.
  std::vector<HostCopy> host_copies;  ///< Every copy in is in one of them.
};

/// Finds who touches each residency, and judges kContent, and kBoundary of persistent variables:
/// that the residencies of a variable follow each other from its malloc to its free, or around the
/// cycle, each but the first filled by a copy, each but the last saved or, if it still is what
/// filled it, dropped, and serve every access.
/// REQUIRES: the plan is in shape.
Contents CheckResidencies(const Plan& plan, CheckReport* report);

/// Judges the order of each stay's own commands: kSaved, kArrival, kCopiedWrite and the part of
/// kContent that is a matter of order.
void CheckVersions(const Plan& plan, const Contents& contents, const Reach& reach,
                   CheckReport* report);

}  // namespace plimsoll::plan

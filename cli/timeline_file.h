// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plimsoll/plan/plan.h"
#include "plimsoll/sim/simulate.h"

namespace plimsoll::cli {

/// Writes when each command of a plan ran, predicted and measured, as CSV: whole or not at all.
/// Throws FileError.
void WriteTimeline(const std::string& path, const plan::Plan& plan, const sim::Timeline& predicted,
                   const sim::Timeline& measured);

/// Reads what was measured from such a file; its iteration lasts from the beginning of the first op
/// to the end of the last. Throws InputError if the file is damaged or of another plan.
sim::Timeline ReadMeasuredTimeline(const std::string& path, const plan::Plan& plan);

}  // namespace plimsoll::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plimsoll/plan/problem.h"

namespace plimsoll::plan {

/// Tells what each variable is for, and in which phase it is made, from the ops that touch it.
/// Persistent variables stay persistent.
void ClassifyVariables(Problem* problem);

}  // namespace plimsoll::plan

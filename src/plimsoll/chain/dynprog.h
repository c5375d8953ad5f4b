// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/chain/planner.h"

namespace plimsoll::chain {

/// S of paper 002, section 5.3.2.
inline constexpr std::int64_t kDynProgSlots = 500;

/// Returns a mark for each of x_0 .. x_{n-1}: the set with the least idle time if transfers could
/// be interrupted, as Algorithm 1 finds it in memory cut into `slots`. Its ordered schedule fits.
/// Nothing if no discretisation leads to such a set.
std::optional<std::vector<char>> DynProgSet(const Question& question, std::int64_t slots);

}  // namespace plimsoll::chain

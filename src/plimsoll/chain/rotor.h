// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/chain/planner.h"
#include "plimsoll/chain/rotor_table.h"

namespace plimsoll::chain {

/// How finely memory is cut for so many stages: 500 slots, as in the paper, or up to ten times as
/// many in short chains, where they cost little.
std::int64_t RotorSlots(std::size_t stages);

/// Returns a table for the question's limit: `slots` of them, at least a byte each, and some more,
/// since sizes that were rounded up may add up to more than the limit.
RotorTable MakeRotorTable(const Question& question, std::int64_t slots);

/// Returns the order with the least time that keeps the limit in real bytes, among those that the
/// table has for about as many slots as the limit; nothing if none does.
std::optional<Order> RotorOrder(const Question& question, const RotorTable& table);

}  // namespace plimsoll::chain

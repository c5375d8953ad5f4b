// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plimsoll/report/subject.h"

namespace plimsoll::report {

/// What a plan does with a variable.
enum class Choice : std::uint8_t { kKept, kSwapped, kRecomputed, kBoth };

/// Why, as far as it can be told from the plan. The page has the words.
enum class Reason : std::uint8_t {
  kNoLimit,      ///< Nothing has to leave.
  kAlwaysInUse,  ///< No gap between two uses has room for another op.
  kOffPeak,      ///< Away in its gaps it would not lower any load above the limit.
  kGapTooShort,  ///< The copies there and back take longer than its longest gap.
  kNotNeeded,    ///< It could have left; the limit is met without.
  kHidden,       ///< Its copies run beside the ops; none waits for it.
  kWaitedFor,    ///< Ops wait for its copies: `stall_ns`.
  kCheaper,      ///< Running its ops again takes less time than its copies would.
  kFreesLink,    ///< It takes more, but the link is left to others.
};

/// A recorded variable with what became of it. Times are of all planned iterations together.
struct DecisionRow {
  plan::VariableIndex variable = 0;  ///< Of the recorded problem.
  plan::VariableIndex planned = 0;   ///< The first variable of the plan that holds its contents.
  Nanoseconds gap_ns = 0;            ///< The longest stretch between two of its uses.
  Choice choice = Choice::kKept;
  Reason reason = Reason::kNoLimit;
  Nanoseconds round_trip_ns =
      0;                       ///< What a copy out and one back take with the link to themselves.
  Nanoseconds copies_ns = 0;   ///< Of all its copies.
  Nanoseconds replays_ns = 0;  ///< Of ops that run again for it, its share by bytes.
  Nanoseconds stall_ns = 0;    ///< What ops wait for its copies.
  std::int32_t replays = 0;    ///< Ops that run again and write it.
};

/// Returns a row for each recorded variable, in their order. O(n log n).
std::vector<DecisionRow> ListDecisions(const Subject& subject);

}  // namespace plimsoll::report

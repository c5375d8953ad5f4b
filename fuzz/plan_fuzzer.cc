// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the plan reader, which ignores the checksum here: a fuzzer would hardly
// find a right one. Whatever it accepts must survive being written and read again and be judged; if
// it is found valid, it must run. Whatever it refuses must be refused by an InputError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/base/error.h"
#include "plimsoll/plan/check.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/planners/swap_bound.h"
#include "plimsoll/sim/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::plan::Plan plan;
  try {
    plan = plimsoll::plan::ParsePlan({reinterpret_cast<const char*>(data), size}, "fuzz",
                                     plimsoll::plan::ChecksumMode::kIgnore);
  } catch (const plimsoll::InputError&) {
    return 0;
  }
  const std::string text = plimsoll::plan::FormatPlan(plan);
  const plimsoll::plan::Plan again = plimsoll::plan::ParsePlan(text, "written");
  PLIMSOLL_CHECK(plan == again, text + "\nbecame\n" + plimsoll::plan::FormatPlan(again));
  if (!plimsoll::plan::CheckPlan(plan).empty()) return 0;
  PLIMSOLL_CHECK(!plimsoll::sim::Simulate(plan).deadlocked, text + "\ndeadlocks");
  static_cast<void>(plimsoll::planners::SwapBound(plan.problem, plan.machine, plan.limit_bytes));
  return 0;
}

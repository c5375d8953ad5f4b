// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/host_shortage.h"

#include <fmt/format.h>

namespace plimsoll::exec {
namespace {

std::string DescribeCost(const HostShortage& shortage) {
  const auto ms = [](Nanoseconds ns) { return static_cast<double>(ns) / 1e6; };
  if (shortage.replans == 0) return "what leaves the device goes there in smaller pieces";
  if (shortage.present_plan_ns == 0) return "planned again for that, on demand until a plan fits";
  return fmt::format("planned again for that: {:.1f} ms an iteration instead of {:.1f} ms",
                     ms(shortage.present_plan_ns), ms(shortage.lost_plan_ns));
}

}  // namespace

std::string Describe(const HostShortage& shortage) {
  return fmt::format("of {} of host memory {} could be had; {}", FormatBytes(shortage.asked_bytes),
                     FormatBytes(shortage.got_bytes), DescribeCost(shortage));
}

}  // namespace plimsoll::exec

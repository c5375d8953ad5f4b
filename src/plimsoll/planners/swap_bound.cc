// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/planners/swap_bound.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/plan/op_load.h"

namespace plimsoll::planners {

double LinkSeconds(const plan::Machine& machine, Bytes in, Bytes out) {
  const auto bytes_in = static_cast<double>(in);
  const auto bytes_out = static_cast<double>(out);
  const auto total = [&](double both) {
    return both + (bytes_in - both * machine.both_in_bytes_per_s) / machine.in_bytes_per_s +
           (bytes_out - both * machine.both_out_bytes_per_s) / machine.out_bytes_per_s;
  };
  const double longest =
      std::min(bytes_in / machine.both_in_bytes_per_s, bytes_out / machine.both_out_bytes_per_s);
  return std::min(total(0), total(longest));
}

Nanoseconds SwapBound(const plan::Problem& problem, const plan::Machine& machine,
                      Bytes limit_bytes) {
  double seconds = 0;
  for (const plan::OpLoad& load : plan::LoadOps(problem)) {
    const Bytes in = std::max<Bytes>(load.held_bytes + load.new_bytes - limit_bytes, 0);
    const Bytes out = std::max<Bytes>(in - load.clean_bytes, 0);
    seconds = std::max(seconds, LinkSeconds(machine, in, out));
  }
  // Rounded down, and a little further than sums of doubles are off.
  return std::max(problem.iteration_ns(),
                  static_cast<Nanoseconds>(std::floor(seconds * 1e9 * (1 - 1e-12))));
}

}  // namespace plimsoll::planners

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/sim/stalls.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/index.h"

namespace plimsoll::sim {
namespace {

using plan::CommandIndex;

/// Returns what ends last of all that a command waits for.
CommandIndex FindAwaited(const plan::Plan& plan, const Timeline& timeline, CommandIndex command) {
  CommandIndex awaited = -1;
  Nanoseconds latest = std::numeric_limits<Nanoseconds>::min();
  for (const plan::Wait& wait : plan.commands[At(command)].waits) {
    const Nanoseconds end =
        timeline.spans[At(wait.command)].end_ns - wait.lag * timeline.iteration_ns;
    if (end <= latest) continue;
    latest = end;
    awaited = wait.command;
  }
  return awaited;
}

std::vector<Stall> ListStalls(const plan::Plan& plan, const Timeline& timeline) {
  std::vector<Stall> stalls;
  const std::vector<CommandIndex>& compute = plan.queues[0];
  // The first op follows the last one of the iteration before.
  Nanoseconds end_ns = 0;
  if (plan.problem.cyclic && !compute.empty()) {
    end_ns = timeline.spans[At(compute.back())].end_ns - timeline.iteration_ns;
  }
  for (const CommandIndex c : compute) {
    const Span& span = timeline.spans[At(c)];
    if (span.start_ns > end_ns) {
      stalls.push_back({c, FindAwaited(plan, timeline, c), end_ns, span.start_ns - end_ns});
    }
    end_ns = span.end_ns;
  }
  return stalls;
}

}  // namespace

Usage MeasureUsage(const plan::Plan& plan, const Timeline& timeline, std::size_t most) {
  Usage usage;
  for (std::size_t c = 0; c < plan.commands.size(); ++c) {
    const Span& span = timeline.spans[c];
    usage.busy_ns[static_cast<std::size_t>(plan.commands[c].queue)] += span.end_ns - span.start_ns;
  }
  usage.stall_ns = timeline.iteration_ns - usage.busy_ns[0];
  usage.stalls = ListStalls(plan, timeline);
  std::stable_sort(usage.stalls.begin(), usage.stalls.end(),
                   [](const Stall& a, const Stall& b) { return a.length_ns > b.length_ns; });
  if (usage.stalls.size() > most) usage.stalls.resize(most);
  return usage;
}

}  // namespace plimsoll::sim

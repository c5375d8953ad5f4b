// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/load.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace plimsoll::place {
namespace {

/// A moment at which a buffer comes (positive) or goes (negative).
struct Step {
  Time time;
  bool comes;
  std::size_t buffer;
};

/// All comings and goings in the order of time, goings first.
std::vector<Step> ListSteps(const Problem& problem) {
  std::vector<Step> steps;
  steps.reserve(2 * problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].size_bytes == 0) continue;
    for (const Interval& live : LiveIntervals(problem.buffers[i])) {
      steps.push_back({live.lower, true, i});
      steps.push_back({live.upper, false, i});
    }
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.time != b.time ? a.time < b.time : a.comes < b.comes;
  });
  return steps;
}

/// The alignment that every offset has, and so every difference of two offsets.
Bytes SharedAlignment(const Problem& problem) {
  Bytes shared = 0;
  for (const Buffer& buffer : problem.buffers) shared = std::gcd(shared, buffer.alignment);
  return std::max<Bytes>(shared, 1);
}

}  // namespace

Bytes PeakLoad(const Problem& problem) {
  Bytes load = 0;
  Bytes peak = 0;
  for (const Step& step : ListSteps(problem)) {
    const Bytes size = problem.buffers[step.buffer].size_bytes;
    load += step.comes ? size : -size;
    peak = std::max(peak, load);
  }
  return peak;
}

Bytes LowerBound(const Problem& problem) {
  const Bytes unit = SharedAlignment(problem);
  Bytes bound = 0;
  for (const Buffer& buffer : problem.buffers) {
    // Also of those that are never live: they have a top.
    if (buffer.size_bytes > 0) {
      bound = std::max(bound, buffer.fixed_offset.value_or(0) + buffer.size_bytes);
    }
  }
  // Whatever lies on top needs no padding, so the largest one among the live buffers is not
  // counted.
  Bytes load = 0;
  std::multiset<Bytes> paddings;
  for (const Step& step : ListSteps(problem)) {
    const Bytes size = problem.buffers[step.buffer].size_bytes;
    const Bytes padded = AlignUp(size, unit);
    if (step.comes) {
      load += padded;
      if (unit > 1) paddings.insert(padded - size);
      bound = std::max(bound, load - (unit > 1 ? *paddings.rbegin() : 0));
    } else {
      load -= padded;
      if (unit > 1) paddings.erase(paddings.find(padded - size));
    }
  }
  return bound;
}

}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/core.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace plimsoll::place {
namespace {

/// Beyond these a node of the search costs too much for it to get anywhere.
constexpr std::size_t kMostBuffers = 12'000;
constexpr std::size_t kMostIncidences = 20'000'000;
/// Below this many a search is so cheap that a thinner core is not worth a try.
constexpr std::size_t kFewBuffers = 1000;

/// The start or the end of a range of an item, in sections of the whole problem.
struct Edge {
  SectionIndex section;
  std::int32_t start;  // 0 for an end: ends come first.
  std::size_t buffer;
};

/// Cuts time anew, into the maximal sets of the given items alone: items that never meet in a
/// loaded section may meet in a valley between two of them.
SectionIndex CutAgain(const Reduced& reduced, const std::vector<std::size_t>& items,
                      std::vector<std::vector<SectionRange>>* ranges) {
  std::vector<Edge> edges;
  for (std::size_t k = 0; k < items.size(); ++k) {
    for (const SectionRange& range : reduced.items[items[k]].ranges) {
      edges.push_back({range.begin, 1, k});
      edges.push_back({range.end, 0, k});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.section != b.section ? a.section < b.section : a.start < b.start;
  });
  ranges->assign(items.size(), {});
  SectionIndex section = -1;
  bool after_end = true;
  for (const Edge& edge : edges) {
    std::vector<SectionRange>& own = (*ranges)[edge.buffer];
    if (edge.start == 0) {
      own.back().end = section + 1;
      after_end = true;
      continue;
    }
    if (after_end) ++section;
    after_end = false;
    own.push_back({section, section});
  }
  return section + 1;
}

}  // namespace

Core ExtractCore(const Reduced& reduced, Units threshold) {
  std::vector<SectionIndex> selected_before(reduced.load.size() + 1, 0);
  for (std::size_t s = 0; s < reduced.load.size(); ++s) {
    selected_before[s + 1] = selected_before[s] + (reduced.load[s] >= threshold ? 1 : 0);
  }
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < reduced.items.size(); ++i) {
    for (const SectionRange& range : reduced.items[i].ranges) {
      if (selected_before[static_cast<std::size_t>(range.begin)] ==
          selected_before[static_cast<std::size_t>(range.end)]) {
        continue;
      }
      chosen.push_back(i);
      break;
    }
  }
  Core core;
  std::vector<std::vector<SectionRange>> ranges;
  core.problem.section_count = CutAgain(reduced, chosen, &ranges);
  const bool may_stack = !reduced.has_fixed && reduced.uniform_alignment;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    const Reduced::Item& item = reduced.items[chosen[k]];
    SearchBuffer buffer;
    buffer.ranges = std::move(ranges[k]);
    if (may_stack && buffer.ranges.size() == 1 && buffer.ranges.front().begin == 0 &&
        buffer.ranges.front().end == core.problem.section_count) {
      core.base.push_back(chosen[k]);
      continue;
    }
    for (const SectionRange& range : buffer.ranges) {
      core.incidences += static_cast<std::size_t>(range.end - range.begin);
    }
    buffer.size = item.size;
    buffer.alignment = item.alignment;
    buffer.fixed_offset = item.fixed_offset;
    buffer.length = item.length;
    core.problem.buffers.push_back(std::move(buffer));
    core.items.push_back(chosen[k]);
  }
  std::sort(core.base.begin(), core.base.end(), [&](std::size_t x, std::size_t y) {
    const double a = reduced.items[x].length;
    const double b = reduced.items[y].length;
    return a != b ? a > b : x < y;
  });
  for (const std::size_t i : core.base) core.base_height += reduced.items[i].size;
  return core;
}

std::vector<Core> ExtractCores(const Reduced& reduced, Units capacity) {
  constexpr std::array<double, 11> kThresholds = {0.98, 0.95, 0.9, 0.85, 0.8, 0.75,
                                                  0.7,  0.6,  0.5, 0.25, 0};
  std::vector<Core> cores;
  for (const double threshold : kThresholds) {
    Core core = ExtractCore(reduced, static_cast<Units>(threshold * static_cast<double>(capacity)));
    if (core.items.size() > kMostBuffers || core.incidences > kMostIncidences) break;
    if (!cores.empty()) {
      const std::size_t before = cores.back().items.size() + cores.back().base.size();
      if (core.items.size() + core.base.size() == before) continue;
      if (core.items.size() <= kFewBuffers) cores.pop_back();
    }
    cores.push_back(std::move(core));
  }
  return cores;
}

}  // namespace plimsoll::place

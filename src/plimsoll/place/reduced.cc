// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/reduced.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/bytes.h"

namespace plimsoll::place {
namespace {

/// The start or the end of a live interval of an item.
struct Edge {
  Time time;
  std::int32_t start;  // 0 for an end: at equal times, ends come first.
  std::int32_t item;
};

/// Sorts by time, ends first: by counting where times are dense, as those of traces are.
void SortByTime(std::vector<Edge>* edges) {
  const auto before = [](const Edge& a, const Edge& b) {
    return a.time != b.time ? a.time < b.time : a.start < b.start;
  };
  if (edges->empty()) return;
  const auto by_time = [](const Edge& a, const Edge& b) { return a.time < b.time; };
  const auto [first, last] = std::minmax_element(edges->begin(), edges->end(), by_time);
  const Time begin = first->time;
  const auto span = static_cast<std::uint64_t>(last->time) - static_cast<std::uint64_t>(begin);
  if (span > 4 * edges->size()) {
    std::sort(edges->begin(), edges->end(), before);
    return;
  }
  const auto slot = [&](const Edge& edge) {
    return static_cast<std::size_t>(2 * (edge.time - begin) + edge.start);
  };
  std::vector<std::size_t> next(2 * span + 3, 0);
  for (const Edge& edge : *edges) ++next[slot(edge) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Edge> sorted(edges->size());
  for (const Edge& edge : *edges) sorted[next[slot(edge)]++] = edge;
  *edges = std::move(sorted);
}

/// Gives every item its section ranges.
void CutIntoSections(const Problem& problem, Reduced* reduced) {
  std::vector<Edge> edges;
  edges.reserve(2 * reduced->items.size());
  for (std::size_t i = 0; i < reduced->items.size(); ++i) {
    const Buffer& buffer = problem.buffers[reduced->items[i].buffer];
    const auto item = static_cast<std::int32_t>(i);
    if (buffer.gaps.empty()) {
      edges.push_back({buffer.lifetime.lower, 1, item});
      edges.push_back({buffer.lifetime.upper, 0, item});
      continue;
    }
    for (const Interval& live : LiveIntervals(buffer)) {
      edges.push_back({live.lower, 1, item});
      edges.push_back({live.upper, 0, item});
    }
  }
  SortByTime(&edges);
  SectionIndex section = -1;
  bool after_end = true;
  for (const Edge& edge : edges) {
    std::vector<SectionRange>& ranges = reduced->items[static_cast<std::size_t>(edge.item)].ranges;
    if (edge.start == 0) {
      ranges.back().end = section + 1;
      after_end = true;
      continue;
    }
    if (after_end) ++section;
    after_end = false;
    ranges.push_back({section, section});
  }
  reduced->section_count = section + 1;
}

void SumLoads(Reduced* reduced) {
  std::vector<Units> change(static_cast<std::size_t>(reduced->section_count) + 1, 0);
  for (const Reduced::Item& item : reduced->items) {
    for (const SectionRange& range : item.ranges) {
      change[static_cast<std::size_t>(range.begin)] += item.size;
      change[static_cast<std::size_t>(range.end)] -= item.size;
    }
    reduced->lower_bound = std::max(reduced->lower_bound, item.fixed_offset + item.size);
  }
  change.pop_back();
  std::partial_sum(change.begin(), change.end(), change.begin());
  reduced->load = std::move(change);
  for (const Units load : reduced->load) {
    reduced->lower_bound = std::max(reduced->lower_bound, load);
  }
}

}  // namespace

Reduced Reduce(const Problem& problem) {
  Reduced reduced;
  Bytes shared = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.size_bytes > 0) shared = std::gcd(shared, buffer.alignment);
  }
  shared = std::max<Bytes>(shared, 1);
  Bytes unit = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.size_bytes == 0) continue;
    unit = std::gcd(unit, AlignUp(buffer.size_bytes, shared));
    unit = std::gcd(unit, buffer.fixed_offset.value_or(0));
    // A stricter alignment than the shared one must be a whole number of units.
    if (buffer.alignment != shared) unit = std::gcd(unit, buffer.alignment);
  }
  reduced.unit = std::max<Bytes>(unit, 1);
  reduced.items.reserve(problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0) continue;
    if (!buffer.gaps.empty() && LiveIntervals(buffer).empty()) {
      // In nobody's way, but it has a top.
      const Bytes top = buffer.fixed_offset.value_or(0) + buffer.size_bytes;
      reduced.has_padding = reduced.has_padding || top % reduced.unit != 0;
      reduced.lower_bound =
          std::max(reduced.lower_bound, AlignUp(top, reduced.unit) / reduced.unit);
      continue;
    }
    Reduced::Item item;
    item.buffer = i;
    item.size = AlignUp(buffer.size_bytes, shared) / reduced.unit;
    item.alignment = std::max<Units>(1, buffer.alignment / reduced.unit);
    reduced.has_padding = reduced.has_padding || item.size * reduced.unit != buffer.size_bytes;
    if (buffer.fixed_offset) item.fixed_offset = *buffer.fixed_offset / reduced.unit;
    item.length =
        static_cast<double>(buffer.lifetime.upper) - static_cast<double>(buffer.lifetime.lower);
    reduced.has_fixed = reduced.has_fixed || buffer.fixed_offset.has_value();
    reduced.has_gaps = reduced.has_gaps || !buffer.gaps.empty();
    reduced.uniform_alignment = reduced.uniform_alignment && item.alignment == 1;
    reduced.items.push_back(std::move(item));
  }
  CutIntoSections(problem, &reduced);
  SumLoads(&reduced);
  return reduced;
}

std::vector<Bytes> Reduced::Expand(const Problem& problem,
                                   const std::vector<Units>& offsets) const {
  std::vector<Bytes> expanded(problem.buffers.size(), 0);
  for (std::size_t b = 0; b < expanded.size(); ++b) {
    expanded[b] = problem.buffers[b].fixed_offset.value_or(0);
  }
  for (std::size_t i = 0; i < items.size(); ++i) expanded[items[i].buffer] = offsets[i] * unit;
  return expanded;
}

Units Reduced::Height(const std::vector<Units>& offsets) const {
  Units height = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    height = std::max(height, offsets[i] + items[i].size);
  }
  return height;
}

}  // namespace plimsoll::place

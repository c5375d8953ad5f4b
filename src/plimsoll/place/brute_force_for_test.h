// SPDX-License-Identifier: Apache-2.0
//
// Random problems, and slow but obvious answers to hold the planners against. For tests only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/random_for_test.h"
#include "plimsoll/place/problem.h"
#include "plimsoll/place/search.h"

namespace plimsoll::place {

using plimsoll::CaseCount;
using plimsoll::TestRandom;

/// Whether the buffer holds its bytes in [time, time + 1).
inline bool IsLiveAt(const Buffer& buffer, Time time) {
  const auto contains = [&](const Interval& interval) {
    return interval.lower <= time && time < interval.upper;
  };
  return contains(buffer.lifetime) &&
         std::none_of(buffer.gaps.begin(), buffer.gaps.end(), contains);
}

/// Whether two buffers are ever live at the same time: looks at every moment.
inline bool OverlapInTime(const Buffer& a, const Buffer& b) {
  for (Time time = a.lifetime.lower; time < a.lifetime.upper; ++time) {
    if (IsLiveAt(a, time) && IsLiveAt(b, time)) return true;
  }
  return false;
}

/// Judges a placement by looking at every pair of buffers at every moment.
inline bool IsValidByDefinition(const Problem& problem, const std::vector<Bytes>& offsets,
                                Bytes capacity = -1) {
  const std::vector<Buffer>& buffers = problem.buffers;
  if (offsets.size() != buffers.size()) return false;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Bytes top = offsets[i] + buffers[i].size_bytes;
    if (offsets[i] < 0 || offsets[i] % buffers[i].alignment != 0) return false;
    if (buffers[i].fixed_offset.value_or(offsets[i]) != offsets[i]) return false;
    if (buffers[i].size_bytes == 0) continue;
    if (capacity >= 0 && top > capacity) return false;
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = top <= offsets[j] || offsets[j] + buffers[j].size_bytes <= offsets[i];
      if (apart || buffers[j].size_bytes == 0) continue;
      if (OverlapInTime(buffers[i], buffers[j])) return false;
    }
  }
  return true;
}

/// What a brute-force search needs to know of a problem of any kind.
struct BruteProblem {
  struct Item {
    std::int64_t size = 0;
    std::int64_t alignment = 1;
    std::int64_t fixed_offset = -1;  ///< Negative if it may move.
  };
  std::vector<Item> items;
  std::vector<std::vector<bool>> meet;  ///< Per pair of items: whether they live together.
};

inline BruteProblem ToBrute(const Problem& problem) {
  BruteProblem brute;
  for (const Buffer& a : problem.buffers) {
    brute.items.push_back({a.size_bytes, a.alignment, a.fixed_offset.value_or(-1)});
    brute.meet.emplace_back();
    for (const Buffer& b : problem.buffers) brute.meet.back().push_back(OverlapInTime(a, b));
  }
  return brute;
}

inline BruteProblem ToBrute(const SearchProblem& problem) {
  const auto lives_in = [](const SearchBuffer& buffer, SectionIndex section) {
    return std::any_of(buffer.ranges.begin(), buffer.ranges.end(), [&](const SectionRange& range) {
      return range.begin <= section && section < range.end;
    });
  };
  BruteProblem brute;
  for (const SearchBuffer& a : problem.buffers) {
    brute.items.push_back({a.size, a.alignment, a.fixed_offset});
    brute.meet.emplace_back();
    for (const SearchBuffer& b : problem.buffers) {
      bool meet = false;
      for (SectionIndex s = 0; s < problem.section_count; ++s) {
        meet = meet || (lives_in(a, s) && lives_in(b, s));
      }
      brute.meet.back().push_back(meet);
    }
  }
  return brute;
}

/// Returns the smallest footprint of all placements: puts the items into the lowest hole that fits,
/// in every order. That is enough: in the order of its offsets, this takes no item of an optimal
/// placement higher than it was, whatever is aligned or fixed. O(n! n^2): for n up to 7 or so.
/// REQUIRES: the fixed items do not overlap.
inline std::int64_t OptimalHeight(const BruteProblem& problem) {
  const std::size_t count = problem.items.size();
  std::vector<std::int64_t> offsets(count, -1);
  std::int64_t highest_fixed = 0;
  std::size_t left = count;
  for (std::size_t i = 0; i < count; ++i) {
    const BruteProblem::Item& item = problem.items[i];
    if (item.fixed_offset < 0) continue;
    offsets[i] = item.fixed_offset;
    if (item.size > 0) highest_fixed = std::max(highest_fixed, item.fixed_offset + item.size);
    --left;
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  const auto lowest_fit = [&](std::size_t i) {
    const BruteProblem::Item& item = problem.items[i];
    std::int64_t offset = 0;
    for (std::size_t j = 0; j < count;) {
      const std::int64_t top = offsets[j] + problem.items[j].size;
      if (j == i || offsets[j] < 0 || problem.items[j].size == 0 || !problem.meet[i][j] ||
          offset + item.size <= offsets[j] || top <= offset) {
        ++j;
        continue;
      }
      offset = (top + item.alignment - 1) / item.alignment * item.alignment;
      j = 0;  // Who was passed below may be in the way up here.
    }
    return offset;
  };
  const std::function<void(std::int64_t, std::size_t)> extend = [&](std::int64_t height,
                                                                    std::size_t unplaced) {
    if (height >= best) return;
    if (unplaced == 0) {
      best = height;
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (offsets[i] >= 0) continue;
      const std::int64_t size = problem.items[i].size;
      const std::int64_t offset = size == 0 ? 0 : lowest_fit(i);
      offsets[i] = offset;
      extend(size == 0 ? height : std::max(height, offset + size), unplaced - 1);
      offsets[i] = -1;
      if (size == 0) break;  // Where it goes matters to nobody.
    }
  };
  extend(highest_fixed, left);
  return best;
}

inline Bytes OptimalFootprint(const Problem& problem) { return OptimalHeight(ToBrute(problem)); }

/// What a random problem looks like.
struct RandomProblemOptions {
  std::int64_t least_buffers = 1;
  std::int64_t most_buffers = 6;
  Time horizon = 8;
  Bytes most_bytes = 8;
  std::vector<Bytes> alignments = {1};
  bool gaps = false;
  bool fixed = false;
  bool zero_sizes = false;
};

/// Fixes some buffers where a random placement has them, so that they do not collide.
inline void FixSome(TestRandom* random, Problem* problem) {
  std::vector<std::size_t> placed;
  for (std::size_t i = 0; i < problem->buffers.size(); ++i) {
    Buffer& buffer = problem->buffers[i];
    if (!random->OneIn(3)) continue;
    Bytes offset = 0;
    for (const std::size_t j : placed) {
      offset = std::max(offset, *problem->buffers[j].fixed_offset + problem->buffers[j].size_bytes);
    }
    if (random->OneIn(2)) offset += random->Between(0, buffer.size_bytes);
    // Sometimes at the bottom, if nobody is there yet or whoever is there lives at another time.
    const bool alone = std::none_of(placed.begin(), placed.end(), [&](std::size_t j) {
      return OverlapInTime(buffer, problem->buffers[j]);
    });
    if (alone && random->OneIn(2)) offset = 0;
    buffer.fixed_offset = AlignUp(offset, buffer.alignment);
    placed.push_back(i);
  }
}

inline Problem RandomProblem(TestRandom* random, const RandomProblemOptions& options) {
  Problem problem;
  const std::int64_t count = random->Between(options.least_buffers, options.most_buffers);
  for (std::int64_t i = 0; i < count; ++i) {
    Buffer buffer;
    buffer.id = std::to_string(i);
    const Time lower = random->Between(0, options.horizon - 1);
    buffer.lifetime = {lower, random->Between(lower + 1, options.horizon)};
    const bool empty = options.zero_sizes && random->OneIn(5);
    buffer.size_bytes = empty ? 0 : random->Between(1, options.most_bytes);
    buffer.alignment = random->OneOf(options.alignments);
    // Gaps may touch each other and the ends of the lifetime.
    Time from = lower;
    while (options.gaps && random->OneIn(2) && from < buffer.lifetime.upper) {
      const Time begin = random->Between(from, buffer.lifetime.upper - 1);
      const Time end = random->Between(begin + 1, buffer.lifetime.upper);
      buffer.gaps.push_back({begin, end});
      from = end;
    }
    problem.buffers.push_back(std::move(buffer));
  }
  if (options.fixed) FixSome(random, &problem);
  return problem;
}

/// Writes a problem and, if given, offsets for a failure message.
inline std::string Show(const Problem& problem, const std::vector<Bytes>& offsets = {}) {
  std::string text;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    text += "\n  {\"" + b.id + "\", {" + std::to_string(b.lifetime.lower) + ", " +
            std::to_string(b.lifetime.upper) + "}, " + std::to_string(b.size_bytes) + ", " +
            std::to_string(b.alignment) + ", " +
            (b.fixed_offset ? std::to_string(*b.fixed_offset) : "{}") + ", {";
    for (const Interval& gap : b.gaps) {
      text += fmt::format("{{{}, {}}}, ", gap.lower, gap.upper);
    }
    text += "}},";
    if (i < offsets.size()) text += "  at " + std::to_string(offsets[i]);
  }
  return text;
}

}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/problem.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"
#include "plimsoll/place/validator.h"

namespace plimsoll::place {
namespace {

/// Returns what is wrong with a buffer, or an empty string.
std::string FindFault(const Buffer& buffer) {
  const auto& [lower, upper] = buffer.lifetime;
  if (lower >= upper) return fmt::format("its lifetime [{}, {}) is empty", lower, upper);
  if (buffer.size_bytes < 0 || buffer.size_bytes >= kMaxBytes) {
    return fmt::format("its size, {}, is out of range", buffer.size_bytes);
  }
  constexpr Bytes kMaxAlignment = Bytes{1} << 40;
  if (buffer.alignment < 1 || buffer.alignment > kMaxAlignment) {
    return fmt::format("its alignment, {}, is out of range", buffer.alignment);
  }
  if (buffer.fixed_offset) {
    const Bytes offset = *buffer.fixed_offset;
    if (offset < 0 || offset >= kMaxBytes - buffer.size_bytes) {
      return fmt::format("its fixed offset, {}, is out of range", offset);
    }
    if (offset % buffer.alignment != 0) {
      return fmt::format("its fixed offset, {}, is not a multiple of its alignment, {}", offset,
                         buffer.alignment);
    }
  }
  Time end_of_last = lower;
  for (const Interval& gap : buffer.gaps) {
    if (gap.lower < end_of_last || gap.lower >= gap.upper || gap.upper > upper) {
      return fmt::format("its gap [{}, {}) is empty, out of order or outside its lifetime",
                         gap.lower, gap.upper);
    }
    end_of_last = gap.upper;
  }
  return "";
}

}  // namespace

std::vector<Interval> LiveIntervals(const Buffer& buffer) {
  std::vector<Interval> live;
  Time from = buffer.lifetime.lower;
  for (const Interval& gap : buffer.gaps) {
    if (from < gap.lower) live.push_back({from, gap.lower});
    from = gap.upper;
  }
  if (from < buffer.lifetime.upper) live.push_back({from, buffer.lifetime.upper});
  return live;
}

Bytes HighestTop(const Problem& problem, const std::vector<Bytes>& offsets) {
  Bytes top = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Bytes size = problem.buffers[i].size_bytes;
    if (size > 0) top = std::max(top, offsets[i] + size);
  }
  return top;
}

void CheckWellFormed(const Problem& problem, const std::string& source) {
  Bytes total = 0;
  Bytes highest_fixed = 0;
  Problem fixed;
  std::vector<Bytes> fixed_offsets;
  for (const Buffer& buffer : problem.buffers) {
    const std::string fault = FindFault(buffer);
    if (!fault.empty()) {
      throw InputError(source, 0, fmt::format("buffer {}: {}", Quote(buffer.id), fault));
    }
    // Room for padding on both sides, whatever the order.
    total += AlignUp(buffer.size_bytes, buffer.alignment) + buffer.alignment;
    if (buffer.fixed_offset) {
      highest_fixed = std::max(highest_fixed, *buffer.fixed_offset + buffer.size_bytes);
      fixed.buffers.push_back(buffer);
      fixed_offsets.push_back(*buffer.fixed_offset);
    }
    if (total >= kMaxBytes || highest_fixed >= kMaxBytes - total) {
      throw InputError(source, 0,
                       fmt::format("all sizes and alignments together, above the highest fixed "
                                   "buffer, reach {} bytes; scale them down",
                                   kMaxBytes));
    }
  }
  const std::vector<Violation> clashes = FindViolations(fixed, fixed_offsets);
  if (!clashes.empty()) {
    throw InputError(source, 0, "fixed buffers contradict each other: " + clashes.front().message);
  }
}

}  // namespace plimsoll::place

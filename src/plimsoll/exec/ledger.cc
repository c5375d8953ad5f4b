// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/exec/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "plimsoll/base/check.h"

namespace plimsoll::exec {
namespace {

std::string Describe(Bytes offset, Bytes size_bytes, std::int64_t owner) {
  return fmt::format("[{}, {}) of {}", offset, offset + size_bytes, owner);
}

}  // namespace

void Ledger::Enter(Bytes offset, Bytes size_bytes, std::int64_t owner) {
  if (!enabled_ || size_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  ++events_;
  PLIMSOLL_CHECK(offset >= 0 && size_bytes > 0 && offset <= limit_bytes_ - size_bytes,
                 fmt::format("{} is outside of the limit, {}", Describe(offset, size_bytes, owner),
                             limit_bytes_));
  const auto next = ranges_.lower_bound(offset);
  PLIMSOLL_CHECK(next == ranges_.end() || next->first >= offset + size_bytes,
                 fmt::format("{} overlaps {}", Describe(offset, size_bytes, owner),
                             Describe(next->first, next->second.size_bytes, next->second.owner)));
  if (next != ranges_.begin()) {
    const auto& [before, range] = *std::prev(next);
    PLIMSOLL_CHECK(before + range.size_bytes <= offset,
                   fmt::format("{} overlaps {}", Describe(offset, size_bytes, owner),
                               Describe(before, range.size_bytes, range.owner)));
  }
  ranges_.emplace_hint(next, offset, Range{size_bytes, owner});
  used_bytes_ += size_bytes;
  peak_top_bytes_ = std::max(peak_top_bytes_, offset + size_bytes);
}

void Ledger::Leave(Bytes offset, Bytes size_bytes, std::int64_t owner) {
  if (!enabled_ || size_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  ++events_;
  const auto found = ranges_.find(offset);
  PLIMSOLL_CHECK(found != ranges_.end(),
                 fmt::format("{} is not in use", Describe(offset, size_bytes, owner)));
  const Range& range = found->second;
  PLIMSOLL_CHECK(range.size_bytes == size_bytes && range.owner == owner,
                 fmt::format("{} was entered as {}", Describe(offset, size_bytes, owner),
                             Describe(offset, range.size_bytes, range.owner)));
  used_bytes_ -= size_bytes;
  ranges_.erase(found);
}

Bytes Ledger::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

Bytes Ledger::peak_top_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_top_bytes_;
}

std::int64_t Ledger::ranges() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(ranges_);
}

std::int64_t Ledger::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

}  // namespace plimsoll::exec

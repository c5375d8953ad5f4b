// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/wheel.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace plimsoll::place {
namespace {

/// Of the capacity: what is smaller than the first does not take part if the load of all such is
/// within kSmallLoad; else the next is tried.
constexpr std::array kSmall = {1.0 / 250, 1.0 / 500, 1.0 / 1000, 1.0 / 2000, 1.0 / 4000};
constexpr double kSmallLoad = 0.015;
/// Priorities are ranks in [0, 1] at first. Whoever complains goes up by this, and by up to so much
/// more.
constexpr double kComplaint = 0.02;
constexpr double kMostComplaint = 0.2;
/// From the fourth round on, ranks are blurred by this.
constexpr double kBlur = 0.1;
/// So many passes without progress end a round.
constexpr int kPatience = 400;
/// Whoever is so far above the capacity after so many passes has never been seen to get there.
constexpr int kFirstPasses = 32;
constexpr double kHopeless = 1.05;
/// More than this do not take part.
constexpr std::size_t kMostItems = 4000;

bool Meet(const Reduced::Item& a, const Reduced::Item& b) {
  for (const SectionRange& x : a.ranges) {
    for (const SectionRange& y : b.ranges) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace

Wheel::Wheel(const Reduced& reduced, Units capacity, std::uint64_t seed)
    : reduced_(reduced), capacity_(capacity), random_(seed) {
  ChooseItems(capacity);
  if (IsLarge()) return;
  ListNeighbours();
  for (const std::size_t i : items_) sizes_.push_back(reduced_.items[i].size);
  offsets_.resize(items_.size());
  stretches_.resize(items_.size());
  for (std::size_t k = 0; k < bottom_count_; ++k) {
    offsets_[k] = bottom_height_;
    bottom_height_ += sizes_[k];
  }
  order_.resize(items_.size() - bottom_count_);
  std::iota(order_.begin(), order_.end(), static_cast<Index>(bottom_count_));
  priority_.resize(items_.size());
}

bool Wheel::IsAlwaysThere(const Reduced::Item& item) const {
  const SectionRange hull = item.hull();
  return item.ranges.size() == 1 && hull.begin == 0 && hull.end == reduced_.section_count;
}

bool Wheel::IsLarge() const { return items_.size() - bottom_count_ > kMostItems; }

void Wheel::ChooseItems(Units capacity) {
  const auto share = [&](double x) {
    return static_cast<Units>(x * static_cast<double>(capacity));
  };
  Units least = 0;
  for (const double small : kSmall) {
    least = share(small);
    small_load_ = LoadBelow(least);
    if (small_load_ <= share(kSmallLoad)) break;
  }
  for (std::size_t i = 0; i < reduced_.items.size(); ++i) {
    if (IsAlwaysThere(reduced_.items[i])) items_.push_back(i);
  }
  bottom_count_ = items_.size();
  for (std::size_t i = 0, next = 0; i < reduced_.items.size(); ++i) {
    if (next < bottom_count_ && items_[next] == i) {
      ++next;
    } else if (reduced_.items[i].size >= least) {
      items_.push_back(i);
    }
  }
}

/// The highest load of items smaller than a size that are not there all the time.
Units Wheel::LoadBelow(Units size) const {
  std::vector<Units> change(static_cast<std::size_t>(reduced_.section_count) + 1, 0);
  for (const Reduced::Item& item : reduced_.items) {
    if (item.size >= size || IsAlwaysThere(item)) continue;
    for (const SectionRange& range : item.ranges) {
      change[static_cast<std::size_t>(range.begin)] += item.size;
      change[static_cast<std::size_t>(range.end)] -= item.size;
    }
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return *std::max_element(change.begin(), change.end());
}

void Wheel::ListNeighbours() {
  neighbours_.resize(items_.size());
  for (std::size_t a = bottom_count_; a < items_.size(); ++a) {
    for (std::size_t b = bottom_count_; b < a; ++b) {
      if (!Meet(reduced_.items[items_[a]], reduced_.items[items_[b]])) continue;
      neighbours_[a].push_back(static_cast<Index>(b));
      neighbours_[b].push_back(static_cast<Index>(a));
    }
  }
}

void Wheel::Prioritise(int round) {
  const auto key = [&](Index k) {
    const Reduced::Item& item = reduced_.items[items_[k]];
    switch (round % 3) {
      case 0:
        return item.area_key();
      case 1:
        return item.size_key();
      default:
        return item.length_key();
    }
  };
  std::sort(order_.begin(), order_.end(), [&](Index a, Index b) {
    const double x = key(a);
    const double y = key(b);
    return x != y ? x > y : a < b;
  });
  const auto count = static_cast<double>(order_.size());
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    const double blur = round < 3 ? 0 : kBlur * Random();
    priority_[order_[rank]] = 1 - static_cast<double>(rank) / count + blur;
  }
}

bool Wheel::Turn(Units reserve, std::int64_t* placements) {
  if (IsLarge()) return false;
  const Units capacity = capacity_ - reserve;
  if (order_.empty()) return bottom_height_ <= capacity;
  const auto hopeless = static_cast<Units>(kHopeless * static_cast<double>(capacity));
  int passes = 0;
  for (int round = 0;; ++round) {
    Prioritise(round);
    Units lowest = std::numeric_limits<Units>::max();
    for (int stale = 0; stale < kPatience; ++stale) {
      if (*placements < static_cast<std::int64_t>(order_.size())) return false;
      *placements -= static_cast<std::int64_t>(order_.size());
      const Units height = PlaceAll();
      if (height <= capacity) return true;
      if (height < lowest) stale = 0;
      lowest = std::min(lowest, height);
      if (++passes == kFirstPasses && lowest > hopeless) return false;
      Complain(capacity);
    }
  }
}

/// One pass. Returns the highest top.
Units Wheel::PlaceAll() {
  std::sort(order_.begin(), order_.end(), [this](Index a, Index b) {
    return priority_[a] != priority_[b] ? priority_[a] > priority_[b] : a < b;
  });
  for (const Index k : order_) stretches_[k] = kNowhere;
  Units height = bottom_height_;
  for (const Index k : order_) {
    offsets_[k] = FindOffset(k);
    stretches_[k] = {offsets_[k], offsets_[k] + sizes_[k]};
    height = std::max(height, stretches_[k].end);
  }
  return height;
}

/// The lowest offset at which an item meets none that has been placed. Whoever is in the way moves
/// it up, to where others may be; that takes less time than to sort them.
Units Wheel::FindOffset(Index k) {
  const Units size = sizes_[k];
  Units offset = bottom_height_;
  above_.clear();
  for (const Index other : neighbours_[k]) {
    const Stretch& stretch = stretches_[other];
    if (stretch.end <= offset) continue;
    if (stretch.begin < offset + size) {
      offset = stretch.end;
    } else {
      above_.push_back(stretch);
    }
  }
  for (bool moved = true; moved;) {
    moved = false;
    std::size_t count = 0;
    for (const Stretch stretch : above_) {
      if (stretch.end <= offset) continue;
      if (stretch.begin < offset + size) {
        offset = stretch.end;
        moved = true;
      } else {
        above_[count++] = stretch;
      }
    }
    above_.resize(count);
  }
  return offset;
}

void Wheel::Complain(Units capacity) {
  for (const Index k : order_) {
    if (stretches_[k].end <= capacity) continue;
    priority_[k] += kComplaint + kMostComplaint * Random();
  }
}

}  // namespace plimsoll::place

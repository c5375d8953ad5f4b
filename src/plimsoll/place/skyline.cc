// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/skyline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/place/load_tree.h"

namespace plimsoll::place {
namespace {

constexpr std::int32_t kNobody = std::numeric_limits<std::int32_t>::max();

/// The tops of what has been placed: plateaus from left to right, and the lowest of them at hand.
class Plateaus {
 public:
  /// Begins with a ground of the given height in each section.
  explicit Plateaus(const std::vector<Units>& ground)
      : end_(ground.size() + 1, kNone),
        begin_of_end_(ground.size() + 1, kNone),
        height_(ground.size() + 1, 0) {
    const auto count = static_cast<SectionIndex>(ground.size());
    for (SectionIndex begin = 0, end = 1; begin < count; begin = end, ++end) {
      while (end < count && ground[end] == ground[begin]) ++end;
      Insert({begin, end}, ground[begin]);
    }
  }

  /// The leftmost of the lowest plateaus, and its height.
  std::pair<SectionRange, Units> Lowest() {
    while (true) {
      const auto [height, begin] = heap_.top();
      if (end_[begin] != kNone && height_[begin] == height) return {{begin, end_[begin]}, height};
      heap_.pop();  // Split, merged or raised since.
    }
  }

  /// Puts something with the given top on a part of a plateau.
  void Cover(SectionRange plateau, SectionRange part, Units top) {
    const Units height = height_[plateau.begin];
    Erase(plateau);
    if (plateau.begin < part.begin) Insert({plateau.begin, part.begin}, height);
    if (part.end < plateau.end) Insert({part.end, plateau.end}, height);
    InsertMerged(part, top);
  }

  /// Raises a plateau to its lower neighbour.
  void Raise(SectionRange plateau) {
    Units height = std::numeric_limits<Units>::max();
    const SectionIndex left = begin_of_end_[plateau.begin];
    if (left != kNone) height = height_[left];
    if (end_[plateau.end] != kNone) height = std::min(height, height_[plateau.end]);
    Erase(plateau);
    InsertMerged(plateau, height);
  }

 private:
  static constexpr SectionIndex kNone = -1;

  void Insert(SectionRange range, Units height) {
    end_[range.begin] = range.end;
    begin_of_end_[range.end] = range.begin;
    height_[range.begin] = height;
    heap_.push({height, range.begin});
  }
  void Erase(SectionRange range) {
    end_[range.begin] = kNone;
    begin_of_end_[range.end] = kNone;
  }
  /// Inserts a plateau and melts it with neighbours of the same height.
  void InsertMerged(SectionRange range, Units height) {
    const SectionIndex left = begin_of_end_[range.begin];
    if (left != kNone && height_[left] == height) {
      Erase({left, range.begin});
      range.begin = left;
    }
    const SectionIndex right_end = end_[range.end];
    if (right_end != kNone && height_[range.end] == height) {
      Erase({range.end, right_end});
      range.end = right_end;
    }
    Insert(range, height);
  }

  using Entry = std::pair<Units, SectionIndex>;
  std::vector<SectionIndex> end_;           // Per begin of a plateau.
  std::vector<SectionIndex> begin_of_end_;  // Per end of a plateau.
  std::vector<Units> height_;               // Per begin of a plateau.
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
};

}  // namespace

struct DiveQuery {
  std::int32_t first_leaf;
  std::int32_t end_leaf;
  SectionIndex first_end;
  SectionIndex end;
  std::int32_t best_rank;
};

SkylineDiver::SkylineDiver(const Reduced& reduced) : reduced_(reduced) {
  const std::size_t count = reduced.items.size();
  const auto sections = static_cast<std::size_t>(reduced.section_count);
  // Counting sort by first section.
  first_leaf_.assign(sections + 2, 0);
  for (const Reduced::Item& item : reduced.items) {
    ++first_leaf_[static_cast<std::size_t>(item.hull().begin) + 1];
  }
  std::partial_sum(first_leaf_.begin(), first_leaf_.end(), first_leaf_.begin());
  std::vector<Index> next(first_leaf_.begin(), first_leaf_.end());
  item_of_leaf_.resize(count);
  span_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const SectionRange hull = reduced.items[i].hull();
    const Index leaf = next[static_cast<std::size_t>(hull.begin)]++;
    item_of_leaf_[leaf] = static_cast<Index>(i);
    span_[leaf] = hull;
  }
  while (leaf_capacity_ < static_cast<Index>(count)) leaf_capacity_ *= 2;
  std::vector<SectionIndex> lengths(count, 0);
  for (std::size_t leaf = 0; leaf < count; ++leaf) {
    const std::vector<SectionRange>& ranges = reduced.items[item_of_leaf_[leaf]].ranges;
    const bool around =
        ranges.size() == 2 && ranges[0].begin == 0 && ranges[1].end == reduced.section_count;
    if (!around) continue;
    ground_.push_back(static_cast<Index>(leaf));
    for (const SectionRange& range : ranges) lengths[leaf] += range.end - range.begin;
  }
  std::stable_sort(ground_.begin(), ground_.end(),
                   [&](Index a, Index b) { return lengths[a] > lengths[b]; });
}

std::vector<Units> SkylineDiver::LayGround(std::vector<Units>* offsets) {
  std::vector<Units> ground(static_cast<std::size_t>(reduced_.section_count), 0);
  Units top = 0;
  for (const Index leaf : ground_) {
    const Index i = item_of_leaf_[leaf];
    const Reduced::Item& item = reduced_.items[i];
    (*offsets)[i] = AlignUp(top, item.alignment);
    top = (*offsets)[i] + item.size;
    Remove(leaf);
  }
  // From the topmost down: what is not covered yet, from the left or from the right, has this
  // item's top, unless it is covered from the other side.
  SectionIndex left = 0;
  SectionIndex right = reduced_.section_count;
  for (std::size_t k = ground_.size(); k-- > 0;) {
    const Index i = item_of_leaf_[ground_[k]];
    const Reduced::Item& item = reduced_.items[i];
    top = (*offsets)[i] + item.size;
    for (; left < item.ranges[0].end; ++left) ground[left] = std::max(ground[left], top);
    for (; right > item.ranges[1].begin; --right) {
      ground[right - 1] = std::max(ground[right - 1], top);
    }
  }
  return ground;
}

void SkylineDiver::RankBy(DiveKey key) {
  const std::size_t count = item_of_leaf_.size();
  std::vector<std::pair<double, Index>> keys(count);
  for (std::size_t leaf = 0; leaf < count; ++leaf) {
    const auto size = static_cast<double>(reduced_.items[item_of_leaf_[leaf]].size);
    const double length = span_[leaf].end - span_[leaf].begin;
    const double time = reduced_.items[item_of_leaf_[leaf]].length;
    // Ties are broken by the other dimension, then by position.
    double value = 0;
    switch (key) {
      case DiveKey::kArea:
        value = length * size;
        break;
      case DiveKey::kTimeArea:
        value = time * size;
        break;
      case DiveKey::kLength:
        value = length + size * 1e-18;
        break;
      case DiveKey::kTime:
        value = time + size * 1e-18;
        break;
      case DiveKey::kSize:
        value = size + time * 1e-9;
        break;
    }
    keys[leaf] = {-value, static_cast<Index>(leaf)};
  }
  std::sort(keys.begin(), keys.end());
  rank_.resize(count);
  leaf_of_rank_.resize(count);
  for (std::size_t r = 0; r < count; ++r) {
    rank_[keys[r].second] = static_cast<std::int32_t>(r);
    leaf_of_rank_[r] = keys[r].second;
  }
}

void SkylineDiver::Pull(std::size_t node) {
  const Node& left = tree_[2 * node];
  const Node& right = tree_[2 * node + 1];
  tree_[node] = {std::min(left.best_rank, right.best_rank),
                 std::min(left.least_end, right.least_end),
                 std::max(left.largest_end, right.largest_end)};
}

void SkylineDiver::BuildTree() {
  const auto capacity = static_cast<std::size_t>(leaf_capacity_);
  tree_.assign(2 * capacity, {kNobody, kNobody, -1});
  for (std::size_t leaf = 0; leaf < rank_.size(); ++leaf) {
    tree_[capacity + leaf] = {rank_[leaf], span_[leaf].end, span_[leaf].end};
  }
  for (std::size_t node = capacity - 1; node > 0; --node) Pull(node);
}

void SkylineDiver::Remove(Index leaf) {
  std::size_t node = static_cast<std::size_t>(leaf_capacity_) + static_cast<std::size_t>(leaf);
  tree_[node] = {kNobody, kNobody, -1};
  for (node /= 2; node > 0; node /= 2) {
    const Node before = tree_[node];
    Pull(node);
    if (tree_[node] == before) return;  // Nor does anything change above.
  }
}

void SkylineDiver::Visit(std::size_t node, Index node_begin, Index node_end,
                         DiveQuery* query) const {
  const Node& n = tree_[node];
  if (n.best_rank >= query->best_rank || n.least_end > query->end ||
      n.largest_end < query->first_end || node_end <= query->first_leaf ||
      query->end_leaf <= node_begin) {
    return;
  }
  const bool inside = query->first_leaf <= node_begin && node_end <= query->end_leaf;
  if (inside && n.largest_end <= query->end && n.least_end >= query->first_end) {
    query->best_rank = n.best_rank;
    return;
  }
  if (node_end - node_begin == 1) return;
  const Index middle = (node_begin + node_end) / 2;
  // The more promising half goes first: what it finds prunes the other.
  if (tree_[2 * node].best_rank <= tree_[2 * node + 1].best_rank) {
    Visit(2 * node, node_begin, middle, query);
    Visit(2 * node + 1, middle, node_end, query);
  } else {
    Visit(2 * node + 1, middle, node_end, query);
    Visit(2 * node, node_begin, middle, query);
  }
}

SkylineDiver::Index SkylineDiver::FindBest(SectionIndex begin, SectionIndex last_begin,
                                           SectionIndex first_end, SectionIndex end) const {
  DiveQuery query{first_leaf_[begin], first_leaf_[static_cast<std::size_t>(last_begin) + 1],
                  first_end, end, kNobody};
  if (query.first_leaf == query.end_leaf) return -1;
  // Begin at the lowest node that has all of these leaves below it.
  const auto capacity = static_cast<std::size_t>(leaf_capacity_);
  std::size_t node = capacity + static_cast<std::size_t>(query.first_leaf);
  std::size_t last = capacity + static_cast<std::size_t>(query.end_leaf) - 1;
  Index width = 1;
  for (; node != last; width *= 2) {
    node /= 2;
    last /= 2;
  }
  const auto level_begin = static_cast<std::size_t>(leaf_capacity_ / width);
  const Index node_begin = static_cast<Index>(node - level_begin) * width;
  Visit(node, node_begin, node_begin + width, &query);
  return query.best_rank == kNobody ? -1 : leaf_of_rank_[query.best_rank];
}

std::vector<Units> SkylineDiver::Dive(DiveKey key, bool critical_first) {
  std::vector<Units> offsets(item_of_leaf_.size(), 0);
  if (offsets.empty()) return offsets;
  RankBy(key);
  BuildTree();
  Plateaus plateaus(LayGround(&offsets));
  LoadTree remaining(critical_first ? reduced_.load : std::vector<Units>{});
  for (const Index leaf : ground_) {
    if (!critical_first) break;
    const Reduced::Item& item = reduced_.items[item_of_leaf_[leaf]];
    for (const SectionRange& x : item.ranges) remaining.Add(x.begin, x.end, -item.size);
  }
  for (std::size_t left = offsets.size() - ground_.size(); left > 0;) {
    const auto [plateau, height] = plateaus.Lowest();
    Index leaf = -1;
    if (critical_first) {
      const SectionIndex critical = remaining.HeaviestIn(plateau.begin, plateau.end);
      leaf = FindBest(plateau.begin, critical, critical + 1, plateau.end);
    }
    if (leaf < 0) leaf = FindBest(plateau.begin, plateau.end - 1, plateau.begin + 1, plateau.end);
    if (leaf < 0) {
      plateaus.Raise(plateau);
      continue;
    }
    const Index i = item_of_leaf_[leaf];
    const Reduced::Item& item = reduced_.items[i];
    offsets[i] = AlignUp(height, item.alignment);
    Remove(leaf);
    if (critical_first) remaining.Add(span_[leaf].begin, span_[leaf].end, -item.size);
    plateaus.Cover(plateau, span_[leaf], offsets[i] + item.size);
    --left;
  }
  return offsets;
}

}  // namespace plimsoll::place

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/place/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "plimsoll/base/bytes.h"

namespace plimsoll::place {
namespace {

/// The floor of a section in which everything is placed.
constexpr Units kNoFloor = std::numeric_limits<Units>::max();
constexpr std::size_t kFailedSlots = std::size_t{1} << 16;

std::uint64_t Mix(std::uint64_t x) {  // The finaliser of splitmix64.
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Whether two lists of ranges share a section.
bool Meet(const std::vector<SectionRange>& a, const std::vector<SectionRange>& b) {
  for (const SectionRange& x : a) {
    for (const SectionRange& y : b) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

std::uint64_t HashRelease(std::int32_t buffer, Units release) {
  return Mix(Mix(static_cast<std::uint64_t>(buffer) + 1) + static_cast<std::uint64_t>(release));
}

}  // namespace

SkylineSearch::SkylineSearch(SearchProblem problem, std::uint64_t seed)
    : problem_(std::move(problem)),
      random_(seed),
      count_(static_cast<Index>(problem_.buffers.size())) {
  LinkSections();
  LinkNeighbours();
  LinkTwins();
  weight_.assign(static_cast<std::size_t>(problem_.section_count), 1.0);
  failed_.assign(kFailedSlots, 0);
}

void SkylineSearch::LinkSections() {
  const auto sections = static_cast<std::size_t>(problem_.section_count);
  section_start_.assign(sections + 1, 0);
  incidence_start_.assign(1, 0);
  hull_.reserve(problem_.buffers.size());
  for (const SearchBuffer& buffer : problem_.buffers) {
    hull_.push_back({buffer.ranges.front().begin, buffer.ranges.back().end});
    for (const SectionRange& range : buffer.ranges) {
      for (SectionIndex s = range.begin; s < range.end; ++s) {
        incidence_section_.push_back(s);
        ++section_start_[static_cast<std::size_t>(s) + 1];
      }
    }
    incidence_start_.push_back(static_cast<Index>(incidence_section_.size()));
  }
  std::partial_sum(section_start_.begin(), section_start_.end(), section_start_.begin());
  member_.resize(incidence_section_.size());
  member_incidence_.resize(incidence_section_.size());
  position_.resize(incidence_section_.size());
}

void SkylineSearch::LinkNeighbours() {
  neighbour_start_.assign(1, 0);
  fixed_start_.assign(1, 0);
  for (Index b = 0; b < count_; ++b) {
    const auto [begin, end] = hull_[b];
    for (Index other = 0; other < count_; ++other) {
      if (hull_[other].begin >= end || begin >= hull_[other].end || other == b) continue;
      if (!Meet(problem_.buffers[b].ranges, problem_.buffers[other].ranges)) continue;
      neighbour_.push_back(other);
      if (problem_.buffers[other].fixed_offset >= 0) fixed_.push_back(other);
    }
    std::sort(fixed_.begin() + fixed_start_.back(), fixed_.end(), [&](Index x, Index y) {
      return problem_.buffers[x].fixed_offset < problem_.buffers[y].fixed_offset;
    });
    neighbour_start_.push_back(static_cast<Index>(neighbour_.size()));
    fixed_start_.push_back(static_cast<Index>(fixed_.size()));
  }
}

void SkylineSearch::LinkTwins() {
  using Shape = std::tuple<std::vector<std::pair<SectionIndex, SectionIndex>>, Units, Units>;
  std::map<Shape, Index> last;
  twin_.assign(problem_.buffers.size(), -1);
  for (Index b = 0; b < count_; ++b) {
    const SearchBuffer& buffer = problem_.buffers[b];
    if (buffer.fixed_offset >= 0) continue;
    Shape shape{{}, buffer.size, buffer.alignment};
    for (const auto& [begin, end] : buffer.ranges) std::get<0>(shape).emplace_back(begin, end);
    const auto [entry, inserted] = last.try_emplace(std::move(shape), b);
    if (!inserted) twin_[b] = std::exchange(entry->second, b);
  }
}

std::vector<double> SkylineSearch::Keys(const SearchStrategy& strategy) {
  std::vector<double> keys(problem_.buffers.size());
  std::uniform_real_distribution<double> factor(1 - strategy.noise, 1 + strategy.noise);
  for (Index b = 0; b < count_; ++b) {
    const SearchBuffer& buffer = problem_.buffers[b];
    const auto size = static_cast<double>(buffer.size);
    const double sections = incidence_start_[b + 1] - incidence_start_[b];
    Units load = 0;
    for (Index k = incidence_start_[b]; k < incidence_start_[b + 1]; ++k) {
      load = std::max(load, remaining_[incidence_section_[k]]);
    }
    // Loads come first, areas and lengths break ties: they are far smaller than this factor.
    const double by_load = static_cast<double>(load) * 1e12;
    switch (strategy.order) {
      case SearchOrder::kArea:
        keys[b] = buffer.length * size;
        break;
      case SearchOrder::kLength:
        keys[b] = buffer.length;
        break;
      case SearchOrder::kSize:
        keys[b] = size;
        break;
      case SearchOrder::kSections:
        keys[b] = sections * 1e3 + size;
        break;
      case SearchOrder::kSectionArea:
        keys[b] = sections * size;
        break;
      case SearchOrder::kLoadArea:
        keys[b] = by_load + buffer.length * size;
        break;
      case SearchOrder::kLoadLength:
        keys[b] = by_load + buffer.length;
        break;
    }
    if (strategy.noise > 0) keys[b] *= factor(random_);
  }
  return keys;
}

void SkylineSearch::Reset(Units capacity, const SearchStrategy& strategy) {
  const auto sections = static_cast<std::size_t>(problem_.section_count);
  capacity_ = capacity;
  rule_ = strategy.rule;
  live_.assign(sections, 0);
  remaining_.assign(sections, 0);
  crossing_.assign(sections, 0);
  floor_.assign(sections, kNoFloor);
  witness_.assign(sections, -1);
  placed_.assign(problem_.buffers.size(), 0);
  offset_.assign(problem_.buffers.size(), 0);
  release_.assign(problem_.buffers.size(), 0);
  changed_.assign(problem_.buffers.size(), 0);
  stamp_ = 0;
  trail_.clear();
  candidates_.clear();
  failing_.clear();
  state_hash_ = 0;
  nodes_ = 0;
  std::fill(failed_.begin(), failed_.end(), 0);
  for (Index b = 0; b < count_; ++b) {
    for (Index k = incidence_start_[b]; k < incidence_start_[b + 1]; ++k) {
      const SectionIndex s = incidence_section_[k];
      position_[k] = section_start_[s] + live_[s]++;
      member_[position_[k]] = b;
      member_incidence_[position_[k]] = k;
      remaining_[s] += problem_.buffers[b].size;
    }
    for (SectionIndex s = hull_[b].begin; s + 1 < hull_[b].end; ++s) ++crossing_[s];
    const Units fixed = problem_.buffers[b].fixed_offset;
    release_[b] = fixed >= 0 ? fixed : LowestFit(b, 0);
    state_hash_ ^= HashRelease(b, release_[b]);
  }
  const std::vector<double> keys = Keys(strategy);
  std::vector<Index> order(problem_.buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](Index x, Index y) { return keys[x] != keys[y] ? keys[x] > keys[y] : x < y; });
  rank_.resize(order.size());
  for (Index r = 0; r < count_; ++r) rank_[order[r]] = r;
}

SearchStatus SkylineSearch::Run(Units capacity, const SearchStrategy& strategy,
                                std::int64_t node_limit, const Deadline& deadline) {
  Reset(capacity, strategy);
  node_limit_ = node_limit;
  deadline_ = &deadline;
  // Every section is refreshed once: all of them start without a witness.
  ++stamp_;
  changed_hull_ = {0, problem_.section_count};
  solid_ = {0, 0};
  for (Index b = 0; b < count_; ++b) {
    if (release_[b] + problem_.buffers[b].size > capacity_) return SearchStatus::kInfeasible;
    changed_[b] = stamp_;
  }
  if (!RefreshFloors()) return SearchStatus::kInfeasible;
  switch (SolveRange({0, problem_.section_count})) {
    case Outcome::kSolved:
      offsets_ = offset_;
      return SearchStatus::kFound;
    case Outcome::kFailed:
      return SearchStatus::kInfeasible;
    case Outcome::kStopped:
      break;
  }
  return SearchStatus::kGaveUp;
}

bool SkylineSearch::OutOfBudget() {
  ++nodes_;
  return nodes_ > node_limit_ || (nodes_ % 64 == 0 && deadline_->passed());
}

/// Cuts the range where no unplaced buffer crosses, and solves what is left of it piece by piece.
SkylineSearch::Outcome SkylineSearch::SolveRange(SectionRange range) {
  SectionIndex begin = range.begin;
  bool open = false;  // Whether anything is unplaced since `begin`.
  for (SectionIndex s = range.begin; s < range.end; ++s) {
    open = open || live_[s] > 0;
    if (s + 1 < range.end && crossing_[s] > 0) continue;
    if (open) {
      const Outcome outcome = SolveConnected({begin, s + 1});
      if (outcome != Outcome::kSolved) return outcome;
    }
    begin = s + 1;
    open = false;
  }
  return Outcome::kSolved;
}

/// Solves a range in which everything hangs together. Goes on in a loop, not deeper, when all
/// candidates have failed and are lifted: there may be as many lifts as units of empty space.
SkylineSearch::Outcome SkylineSearch::SolveConnected(SectionRange range) {
  const std::size_t start = trail_.size();
  const std::size_t first_failing = failing_.size();
  while (true) {
    if (OutOfBudget()) return Outcome::kStopped;
    const std::uint64_t hash =
        state_hash_ ^ Mix(static_cast<std::uint64_t>(range.begin) * 0x9e3779b97f4a7c15U +
                          static_cast<std::uint64_t>(range.end));
    if (failed_[hash % kFailedSlots] == hash) break;
    failing_.push_back(hash);

    const Units floor = *std::min_element(floor_.begin() + range.begin, floor_.begin() + range.end);
    const SectionIndex section = ChooseSection(range, floor);
    const std::size_t first = candidates_.size();
    const std::size_t last = PushCandidates(section, floor);
    const std::size_t mark = trail_.size();
    for (std::size_t c = first; c < last; ++c) {
      const Outcome outcome = TryPlace(candidates_[c], floor, range);
      if (outcome != Outcome::kFailed) {
        candidates_.resize(first);
        failing_.resize(first_failing);
        return outcome;
      }
      Undo(mark);
    }
    candidates_.resize(first);
    if (!LiftAll(section, floor)) break;
  }
  Undo(start);
  for (; failing_.size() > first_failing; failing_.pop_back()) {
    failed_[failing_.back() % kFailedSlots] = failing_.back();
  }
  return Outcome::kFailed;
}

SectionIndex SkylineSearch::ChooseSection(SectionRange range, Units floor) const {
  SectionIndex best = -1;
  double best_score = 0;
  for (SectionIndex s = range.begin; s < range.end; ++s) {
    if (floor_[s] != floor) continue;
    double score = 0;
    switch (rule_) {
      case SectionRule::kLeastSlack:
        score = static_cast<double>(remaining_[s]);
        break;
      case SectionRule::kFewestCandidates: {
        int candidates = 0;
        for (Index k = section_start_[s]; k < section_start_[s] + live_[s]; ++k) {
          candidates += release_[member_[k]] == floor ? 1 : 0;
        }
        score = -candidates +
                static_cast<double>(remaining_[s]) / (2.0 * static_cast<double>(capacity_));
        break;
      }
      case SectionRule::kHeaviest:
        score = weight_[s];
        break;
    }
    if (best < 0 || score > best_score) {
      best = s;
      best_score = score;
    }
  }
  return best;
}

/// Pushes the buffers that could begin at the floor of the section, most promising first. Returns
/// the end of the slice.
std::size_t SkylineSearch::PushCandidates(SectionIndex section, Units floor) {
  const std::size_t first = candidates_.size();
  for (Index k = section_start_[section]; k < section_start_[section] + live_[section]; ++k) {
    const Index b = member_[k];
    if (release_[b] != floor) continue;
    // Of two buffers that are exactly alike, the earlier one goes first.
    const Index twin = twin_[b];
    if (twin >= 0 && placed_[twin] == 0 && release_[twin] == floor) continue;
    candidates_.push_back(b);
  }
  std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(first), candidates_.end(),
            [&](Index x, Index y) { return rank_[x] < rank_[y]; });
  return candidates_.size();
}

SkylineSearch::Outcome SkylineSearch::TryPlace(Index buffer, Units offset, SectionRange range) {
  return Place(buffer, offset) ? SolveRange(range) : Outcome::kFailed;
}

/// Returns the lowest offset at or above `offset` that is aligned and free of fixed neighbours.
Units SkylineSearch::LowestFit(Index buffer, Units offset) const {
  const SearchBuffer& b = problem_.buffers[buffer];
  offset = AlignUp(offset, b.alignment);
  for (Index k = fixed_start_[buffer]; k < fixed_start_[buffer + 1]; ++k) {
    const SearchBuffer& obstacle = problem_.buffers[fixed_[k]];
    if (offset + b.size <= obstacle.fixed_offset) break;
    if (offset < obstacle.fixed_offset + obstacle.size) {
      offset = AlignUp(obstacle.fixed_offset + obstacle.size, b.alignment);
    }
  }
  return offset;
}

bool SkylineSearch::Crosses(Index buffer, SectionIndex section) const {
  for (const SectionRange& range : problem_.buffers[buffer].ranges) {
    if (range.begin <= section && section < range.end) return true;
  }
  return false;
}

void SkylineSearch::MarkChanged(Index buffer) {
  changed_[buffer] = stamp_;
  changed_hull_.begin = std::min(changed_hull_.begin, hull_[buffer].begin);
  changed_hull_.end = std::max(changed_hull_.end, hull_[buffer].end);
}

/// Raises the release of an unplaced buffer; false if it no longer fits under the capacity.
bool SkylineSearch::Raise(Index buffer, Units release) {
  const SearchBuffer& b = problem_.buffers[buffer];
  if (b.fixed_offset >= 0) return false;
  release = LowestFit(buffer, release);
  if (release + b.size > capacity_) return false;
  trail_.push_back({ChangeKind::kRelease, buffer, -1, release_[buffer]});
  state_hash_ ^= HashRelease(buffer, release_[buffer]) ^ HashRelease(buffer, release);
  release_[buffer] = release;
  MarkChanged(buffer);
  return true;
}

/// Places the buffer and draws the consequences; false if the skyline cannot be completed.
bool SkylineSearch::Place(Index buffer, Units offset) {
  ++stamp_;
  changed_hull_ = hull_[buffer];
  changed_[buffer] = stamp_;
  trail_.push_back({ChangeKind::kPlaced, buffer, -1, 0});
  placed_[buffer] = 1;
  offset_[buffer] = offset;
  state_hash_ ^= HashRelease(buffer, release_[buffer]);
  const Units size = problem_.buffers[buffer].size;
  for (Index k = incidence_start_[buffer]; k < incidence_start_[buffer + 1]; ++k) {
    const SectionIndex s = incidence_section_[k];
    remaining_[s] -= size;
    // Swap the buffer behind the unplaced ones; undone by counting it in again.
    const Index here = position_[k];
    const Index there = section_start_[s] + --live_[s];
    std::swap(member_[here], member_[there]);
    std::swap(member_incidence_[here], member_incidence_[there]);
    position_[member_incidence_[here]] = here;
    position_[member_incidence_[there]] = there;
  }
  for (SectionIndex s = hull_[buffer].begin; s + 1 < hull_[buffer].end; ++s) --crossing_[s];
  const Units top = offset + size;
  for (Index k = neighbour_start_[buffer]; k < neighbour_start_[buffer + 1]; ++k) {
    const Index other = neighbour_[k];
    if (placed_[other] == 0 && release_[other] < top && !Raise(other, top)) return false;
  }
  solid_ = problem_.buffers[buffer].ranges.front();
  solid_top_ = top;
  return RefreshFloors();
}

/// Decides that no buffer that crosses the section begins at its floor.
bool SkylineSearch::LiftAll(SectionIndex section, Units floor) {
  ++stamp_;
  changed_hull_ = {problem_.section_count, 0};
  solid_ = {0, 0};
  const Units highest_floor = capacity_ - remaining_[section];
  if (floor >= highest_floor) return false;
  const std::size_t first = candidates_.size();
  for (Index k = section_start_[section]; k < section_start_[section] + live_[section]; ++k) {
    if (release_[member_[k]] == floor) candidates_.push_back(member_[k]);
  }
  const std::size_t last = candidates_.size();
  // Lifts are computed from the releases before any of them is raised.
  std::vector<Units> lifts;
  lifts.reserve(last - first);
  for (std::size_t c = first; c < last; ++c) {
    lifts.push_back(LowestLift(candidates_[c], section, floor));
  }
  bool possible = true;
  for (std::size_t c = first; c < last && possible; ++c) {
    possible = lifts[c - first] != kNoFloor && Raise(candidates_[c], lifts[c - first]);
  }
  candidates_.resize(first);
  return possible && RefreshFloors();
}

/// Returns the lowest top on which an unplaced neighbour could lift the buffer off the floor.
Units SkylineSearch::LowestLift(Index buffer, SectionIndex section, Units floor) const {
  Units lowest = kNoFloor;
  for (Index k = neighbour_start_[buffer]; k < neighbour_start_[buffer + 1]; ++k) {
    const Index other = neighbour_[k];
    if (placed_[other] != 0) continue;
    Units top = release_[other] + problem_.buffers[other].size;
    if (top >= lowest) continue;
    if (release_[other] == floor && Crosses(other, section)) ++top;  // It is lifted as well.
    lowest = std::min(lowest, top);
  }
  return lowest;
}

/// Brings the floors of all sections up to date whose witness has changed; false if one of them can
/// no longer hold what is still to come.
bool SkylineSearch::RefreshFloors() {
  for (SectionIndex s = changed_hull_.begin; s < changed_hull_.end; ++s) {
    if (witness_[s] >= 0 && changed_[witness_[s]] != stamp_) continue;
    // Releases only rise: whoever is still at the old floor, or on top of what has just been placed
    // across the section, is the lowest.
    Units least = witness_[s] >= 0 ? floor_[s] : 0;
    if (solid_.begin <= s && s < solid_.end) least = std::max(least, solid_top_);
    Units floor = kNoFloor;
    Index witness = -1;
    for (Index k = section_start_[s]; k < section_start_[s] + live_[s]; ++k) {
      if (release_[member_[k]] >= floor) continue;
      floor = release_[member_[k]];
      witness = member_[k];
      if (floor <= least) break;
    }
    if (witness == witness_[s] && floor == floor_[s]) continue;
    trail_.push_back({ChangeKind::kFloor, s, witness_[s], floor_[s]});
    floor_[s] = floor;
    witness_[s] = witness;
    if (witness >= 0 && floor + remaining_[s] > capacity_) {
      weight_[s] += 1;
      return false;
    }
  }
  return true;
}

void SkylineSearch::Undo(std::size_t mark) {
  while (trail_.size() > mark) {
    const Change change = trail_.back();
    trail_.pop_back();
    const Index i = change.index;
    switch (change.kind) {
      case ChangeKind::kRelease:
        state_hash_ ^= HashRelease(i, release_[i]) ^ HashRelease(i, change.old_value);
        release_[i] = change.old_value;
        break;
      case ChangeKind::kFloor:
        floor_[i] = change.old_value;
        witness_[i] = change.old_witness;
        break;
      case ChangeKind::kPlaced:
        placed_[i] = 0;
        state_hash_ ^= HashRelease(i, release_[i]);
        for (Index k = incidence_start_[i]; k < incidence_start_[i + 1]; ++k) {
          remaining_[incidence_section_[k]] += problem_.buffers[i].size;
          ++live_[incidence_section_[k]];
        }
        for (SectionIndex s = hull_[i].begin; s + 1 < hull_[i].end; ++s) ++crossing_[s];
        break;
    }
  }
}

}  // namespace plimsoll::place

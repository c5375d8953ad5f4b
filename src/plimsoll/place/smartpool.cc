// SPDX-License-Identifier: Apache-2.0
//
// SmartPool, the memory pool of paper 001 (Zhang et al., "Efficient Memory Management for GPU-based
// Deep Learning Systems", section III-C): weighted interval colouring without rounding weights to
// powers of two. Variables are placed in the order of decreasing size, each in a hole between those
// neighbours (variables live at the same time) that have been placed before it, or on top of them.
// First-fit takes the lowest hole, best-fit, the paper's default, the smallest.
//
// Beyond the paper: alignment; fixed offsets, which are obstacles from the start; lifetimes with
// gaps. Left out: the hash table that serves Malloc during training; this is the planning half.
#include "plimsoll/place/smartpool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "plimsoll/base/check.h"
#include "plimsoll/place/load.h"
#include "plimsoll/place/planner.h"

namespace plimsoll::place {
namespace {

/// One live stretch of a placed buffer; a buffer with gaps has several.
struct Piece {
  Interval live;
  Bytes offset = 0;
  Bytes top = 0;
};

bool IsBelow(const Piece& a, const Piece& b) { return a.offset < b.offset; }

bool Meet(const Interval& a, const Interval& b) {
  return (a.lower < b.upper) & (b.lower < a.upper);  // No branch: it would be mispredicted.
}

/// All placed pieces, sorted by offset, in chunks short enough to insert into.
class PieceList {
 public:
  void Insert(const Piece& piece) {
    ++size_;
    if (chunks_.empty()) chunks_.emplace_back();
    auto chunk = std::partition_point(
        chunks_.begin() + 1, chunks_.end(),
        [&](const std::vector<Piece>& c) { return c.front().offset <= piece.offset; });
    --chunk;
    chunk->insert(std::upper_bound(chunk->begin(), chunk->end(), piece, IsBelow), piece);
    if (chunk->size() < kChunkSize) return;
    const auto middle = chunk->begin() + kChunkSize / 2;
    std::vector<Piece> upper_half(middle, chunk->end());
    chunk->erase(middle, chunk->end());
    chunks_.insert(chunk + 1, std::move(upper_half));
  }

  std::size_t size() const { return size_; }
  const std::vector<std::vector<Piece>>& chunks() const { return chunks_; }

 private:
  static constexpr std::ptrdiff_t kChunkSize = 512;

  std::vector<std::vector<Piece>> chunks_;
  std::size_t size_ = 0;
};

/// Finds the placed pieces that meet a stretch of time. A binary tree over all pieces of the
/// problem, sorted by their beginning, in which each node knows the latest end of what is placed
/// below it.
class TimeIndex {
 public:
  explicit TimeIndex(const Problem& problem) : first_slot_(problem.buffers.size() + 1) {
    std::vector<std::pair<Interval, std::size_t>> pieces;  // And their number in problem order.
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      first_slot_[i] = pieces.size();
      for (const Interval& live : LiveIntervals(problem.buffers[i])) {
        pieces.emplace_back(live, pieces.size());
      }
    }
    first_slot_.back() = pieces.size();
    std::sort(pieces.begin(), pieces.end(),
              [](const auto& a, const auto& b) { return a.first.lower < b.first.lower; });
    leaf_of_.resize(pieces.size());
    for (std::size_t leaf = 0; leaf < pieces.size(); ++leaf) {
      leaf_of_[pieces[leaf].second] = leaf;
      lowers_.push_back(pieces[leaf].first.lower);
      uppers_.push_back(pieces[leaf].first.upper);
    }
    std::sort(uppers_.begin(), uppers_.end());
    pieces_.resize(pieces.size());
    width_ = std::bit_ceil(std::max<std::size_t>(pieces.size(), 1));
    latest_end_.assign(2 * width_, std::numeric_limits<Time>::min());
  }

  /// Adds the `nth` piece of a buffer.
  void Insert(std::size_t buffer, std::size_t nth, const Piece& piece) {
    const std::size_t leaf = leaf_of_[first_slot_[buffer] + nth];
    pieces_[leaf] = piece;
    for (std::size_t node = width_ + leaf; node > 0; node /= 2) {
      latest_end_[node] = std::max(latest_end_[node], piece.live.upper);
    }
  }

  /// Returns how many pieces of the problem, placed or not, meet `time`. O(log n).
  std::size_t CountMeeting(const Interval& time) const {
    const auto begun = std::lower_bound(lowers_.begin(), lowers_.end(), time.upper);
    const auto ended = std::upper_bound(uppers_.begin(), uppers_.end(), time.lower);
    return static_cast<std::size_t>((begun - lowers_.begin()) - (ended - uppers_.begin()));
  }

  /// Appends the placed pieces that meet `time`.
  void Find(const Interval& time, std::vector<Piece>* found) const {
    const auto begun = std::lower_bound(lowers_.begin(), lowers_.end(), time.upper);
    Visit(1, 0, width_, time.lower, static_cast<std::size_t>(begun - lowers_.begin()), found);
  }

 private:
  /// Visits the node over leaves [begin, begin + count), of which those before `limit` begin early
  /// enough.
  void Visit(std::size_t node, std::size_t begin, std::size_t count, Time after, std::size_t limit,
             std::vector<Piece>* found) const {
    if (begin >= limit || latest_end_[node] <= after) return;
    if (count == 1) {
      found->push_back(pieces_[begin]);
      return;
    }
    Visit(2 * node, begin, count / 2, after, limit, found);
    Visit(2 * node + 1, begin + count / 2, count / 2, after, limit, found);
  }

  std::vector<std::size_t> first_slot_;  // By buffer: the number of its first piece.
  std::vector<std::size_t> leaf_of_;     // By number of piece.
  std::vector<Time> lowers_;             // By leaf, so ascending.
  std::vector<Time> uppers_;             // Ascending.
  std::vector<Piece> pieces_;            // By leaf; meaningful where placed.
  std::size_t width_ = 1;                // Leaves, a power of two.
  std::vector<Time> latest_end_;         // By node; the root is 1, the leaves begin at width_.
};

/// Looks for a place for one buffer while its neighbours pass by from the lowest offset upwards.
class HoleSearch {
 public:
  HoleSearch(const Buffer& buffer, Fit fit)
      : live_(LiveIntervals(buffer)),
        size_(buffer.size_bytes),
        alignment_(buffer.alignment),
        fit_(fit) {
    if (!live_.empty()) hull_ = {live_.front().lower, live_.back().upper};
  }

  const std::vector<Interval>& live() const { return live_; }

  /// Passes pieces in the order of their offsets. Returns true when no better hole can follow.
  bool Pass(const std::vector<Piece>& pieces) {
    const bool has_gaps = live_.size() > 1;
    Bytes frontier = frontier_;
    for (const Piece& piece : pieces) {
      bool meets = Meet(piece.live, hull_);
      if (has_gaps && meets) meets = MeetsAnyStretch(piece.live);
      if (meets & (piece.offset - frontier >= size_)) [[unlikely]] {
        if (Consider(AlignUp(frontier, alignment_), piece.offset)) return true;
      }
      frontier = std::max(frontier, meets ? piece.top : 0);
    }
    frontier_ = frontier;
    return false;
  }

  /// The offset of the chosen hole, or on top of all that has passed.
  Bytes offset() const {
    return best_offset_ != kUnplaced ? best_offset_ : AlignUp(frontier_, alignment_);
  }

 private:
  bool MeetsAnyStretch(const Interval& time) const {
    return std::any_of(live_.begin(), live_.end(),
                       [&](const Interval& stretch) { return Meet(stretch, time); });
  }

  /// Takes the hole [lower, upper) if it is better. Returns true when it cannot be bettered.
  bool Consider(Bytes lower, Bytes upper) {
    const Bytes hole_size = upper - lower;
    if (hole_size < size_ || hole_size >= best_size_) return false;
    best_offset_ = lower;
    best_size_ = hole_size;
    return fit_ == Fit::kFirst || hole_size == size_;
  }

  std::vector<Interval> live_;
  Interval hull_;
  Bytes size_;
  Bytes alignment_;
  Fit fit_;
  Bytes frontier_ = 0;  // The highest top among the neighbours that have passed.
  Bytes best_offset_ = kUnplaced;
  Bytes best_size_ = std::numeric_limits<Bytes>::max();
};

/// Placed pieces sorted by offset, in several copies: one list of all of them, and one for each of
/// a number of stretches of time, coarse and fine, with the pieces that meet it.
///
///     ├───────────────────────────────┤  1 list
///     ├───────┬───────┬───────┬───────┤  8 coarse stretches
///     ├─┬─┬─┬─┼─┬─┬─┬─┼─┬─┬─┬─┼─┬─┬─┬─┤  64 fine ones
class StretchedLists {
 public:
  explicit StretchedLists(const Problem& problem) {
    if (problem.buffers.size() >= kFewBuffers) {
      std::vector<Time> starts;
      starts.reserve(problem.buffers.size());
      for (const Buffer& buffer : problem.buffers) starts.push_back(buffer.lifetime.lower);
      std::sort(starts.begin(), starts.end());
      for (std::size_t k = 1; k < kFine; ++k) borders_.push_back(starts[k * starts.size() / kFine]);
    }
    fine_.resize(borders_.size() + 1);
    coarse_.resize(borders_.size() / kFinePerCoarse + 1);
  }

  void Insert(const Piece& piece) {
    all_.Insert(piece);
    if (borders_.empty()) return;
    const auto [first, last] = Stretches(piece.live);
    for (std::size_t k = first; k <= last; ++k) fine_[k].Insert(piece);
    for (std::size_t k = first / kFinePerCoarse; k <= last / kFinePerCoarse; ++k) {
      coarse_[k].Insert(piece);
    }
  }

  /// Returns the shortest list that has all pieces that meet `time`.
  const PieceList& ListFor(const Interval& time) const {
    if (borders_.empty()) return all_;
    const auto [first, last] = Stretches(time);
    if (first == last) return fine_[first];
    if (first / kFinePerCoarse == last / kFinePerCoarse) return coarse_[first / kFinePerCoarse];
    return all_;
  }

 private:
  static constexpr std::size_t kFewBuffers = 2000;
  static constexpr std::size_t kFine = 64;
  static constexpr std::size_t kFinePerCoarse = 8;

  /// The first and the last fine stretch that `time` meets.
  std::pair<std::size_t, std::size_t> Stretches(const Interval& time) const {
    const auto index = [&](Time t) {
      const auto after = std::upper_bound(borders_.begin(), borders_.end(), t);
      return static_cast<std::size_t>(after - borders_.begin());
    };
    return {index(time.lower), index(time.upper - 1)};
  }

  std::vector<Time> borders_;  // Between fine stretches, ascending; none for small problems.
  PieceList all_;
  std::vector<PieceList> coarse_;
  std::vector<PieceList> fine_;
};

class Placer {
 public:
  explicit Placer(const Problem& problem)
      : problem_(problem), by_offset_(problem), by_time_(problem) {}

  void Insert(std::size_t buffer, Bytes offset) {
    const Bytes size = problem_.buffers[buffer].size_bytes;
    if (size == 0) return;
    std::size_t nth = 0;
    for (const Interval& live : LiveIntervals(problem_.buffers[buffer])) {
      const Piece piece{live, offset, offset + size};
      by_offset_.Insert(piece);
      by_time_.Insert(buffer, nth++, piece);
    }
  }

  /// Returns where the buffer belongs. Few neighbours are looked up and sorted; if there are many,
  /// passing over a list that is sorted already is faster.
  Bytes FindOffset(std::size_t buffer, Fit fit) {
    const Buffer& b = problem_.buffers[buffer];
    if (b.size_bytes == 0) return 0;
    HoleSearch search(b, fit);
    if (search.live().empty()) return 0;
    std::size_t at_most = 0;
    for (const Interval& live : search.live()) at_most += by_time_.CountMeeting(live);
    const PieceList& list = by_offset_.ListFor(b.lifetime);
    if (at_most * kCostOfLookUp < list.size()) {
      neighbours_.clear();
      for (const Interval& live : search.live()) by_time_.Find(live, &neighbours_);
      std::sort(neighbours_.begin(), neighbours_.end(), IsBelow);
      search.Pass(neighbours_);
    } else {
      for (const std::vector<Piece>& chunk : list.chunks()) {
        if (search.Pass(chunk)) break;
      }
    }
    return search.offset();
  }

 private:
  /// What looking up and sorting one neighbour costs, in pieces passed over; measured.
  static constexpr std::size_t kCostOfLookUp = 32;

  const Problem& problem_;
  StretchedLists by_offset_;
  TimeIndex by_time_;
  std::vector<Piece> neighbours_;
};

Placement PlaceLargestFirst(const Problem& problem, Fit fit) {
  Placement placement;
  placement.offsets = FixedOffsets(problem);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (placement.offsets[i] == kUnplaced) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return problem.buffers[a].size_bytes > problem.buffers[b].size_bytes;
  });
  PlaceInOrder(problem, order, fit, &placement.offsets);
  placement.footprint_bytes = HighestTop(problem, placement.offsets);
  placement.lower_bound_bytes = LowerBound(problem);
  return placement;
}

}  // namespace

std::vector<Bytes> FixedOffsets(const Problem& problem) {
  std::vector<Bytes> offsets;
  offsets.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    offsets.push_back(buffer.fixed_offset.value_or(kUnplaced));
  }
  return offsets;
}

bool PlaceInOrder(const Problem& problem, const std::vector<std::size_t>& order, Fit fit,
                  std::vector<Bytes>* offsets, Bytes ceiling) {
  PLIMSOLL_CHECK(offsets->size() == problem.buffers.size(),
                 fmt::format("{} offsets for {} buffers", offsets->size(), problem.buffers.size()));
  Placer placer(problem);
  std::vector<std::size_t> obstacles;
  for (std::size_t i = 0; i < offsets->size(); ++i) {
    if ((*offsets)[i] != kUnplaced) obstacles.push_back(i);
  }
  // From the bottom up: then each is appended to its lists.
  std::sort(obstacles.begin(), obstacles.end(), [&](std::size_t a, std::size_t b) {
    return (*offsets)[a] != (*offsets)[b] ? (*offsets)[a] < (*offsets)[b] : a < b;
  });
  for (const std::size_t i : obstacles) placer.Insert(i, (*offsets)[i]);
  for (const std::size_t i : order) {
    Bytes& offset = (*offsets)[i];
    PLIMSOLL_CHECK(offset == kUnplaced, fmt::format("buffer {} is already at {}", i, offset));
    offset = placer.FindOffset(i, fit);
    if (offset + problem.buffers[i].size_bytes > ceiling) return false;
    placer.Insert(i, offset);
  }
  return true;
}

Placement PlaceFirstFit(const Problem& problem, const PlannerOptions& /*options*/) {
  return PlaceLargestFirst(problem, Fit::kFirst);
}

Placement PlaceBestFit(const Problem& problem, const PlannerOptions& /*options*/) {
  return PlaceLargestFirst(problem, Fit::kBest);
}

}  // namespace plimsoll::place

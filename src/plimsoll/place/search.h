// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plimsoll/base/clock.h"

/// Exact placement by depth-first search over skylines.
///
/// Time is cut into sections, the maximal sets of buffers that are live together. A partial
/// placement is a skyline: buffers are placed from the bottom up, so every buffer not yet placed
/// has a release, the lowest offset that the skyline under it still allows, and every section a
/// floor, the lowest release among its buffers.
///
///     offset                      The search goes on at the lowest floor f, in one section s of
///       ▲  ┌──────┐               that height: in any placement without needless air, either
///       │  │      │     ┌────┐    exactly one buffer that crosses s begins at f, or none does.
///       │  │      │     │    │    In the second case all of them are lifted by something else:
///     f ┤  │      └─────┘    │    their releases rise to the lowest top that could lift them.
///       │  │         ▲       │
///       └──┴─────────┼───────┴──▶ time
///                    s
///
/// A node fails when a floor and the sizes still to come in its section exceed the capacity. What
/// is left falls apart into stretches of time that share no buffer; they are solved one by one, so
/// that a failure in one never reopens another. States that have failed are remembered by hash.
/// Sections gain weight when they fail, and the heaviest of the lowest sections is continued first:
/// restarts thus learn where the problem is hard.
namespace plimsoll::place {

/// Sizes and offsets here are in units (bytes over their common divisor).
using Units = std::int64_t;
using SectionIndex = std::int32_t;

/// A half-open stretch of sections.
struct SectionRange {
  SectionIndex begin = 0;
  SectionIndex end = 0;
};

struct SearchBuffer {
  std::vector<SectionRange> ranges;  ///< Ascending, disjoint, not empty; one unless it has gaps.
  Units size = 1;                    ///< Positive.
  Units alignment = 1;
  Units fixed_offset = -1;  ///< Negative if it may move.
  double length = 1;        ///< Lifetime, for ordering only.
};

struct SearchProblem {
  SectionIndex section_count = 0;
  std::vector<SearchBuffer> buffers;
};

/// What is tried first among the buffers that could come next: larger keys first.
enum class SearchOrder { kArea, kLength, kSize, kSections, kSectionArea, kLoadArea, kLoadLength };
inline constexpr int kSearchOrders = 7;

/// Which of the lowest sections is continued first.
enum class SectionRule { kLeastSlack, kFewestCandidates, kHeaviest };
inline constexpr int kSectionRules = 3;

struct SearchStrategy {
  SearchOrder order = SearchOrder::kArea;
  SectionRule rule = SectionRule::kLeastSlack;
  /// Multiplies each key by a random factor in [1 - noise, 1 + noise].
  double noise = 0;
};

enum class SearchStatus {
  kFound,       ///< offsets() holds a placement within the capacity.
  kInfeasible,  ///< Proved, but for one chance in 2^64 per state: there is none.
  kGaveUp,      ///< The node limit or the deadline was reached.
};

/// Not thread-safe. Recurses once per placed buffer, a few hundred bytes of stack each. Memory: one
/// entry per pair of buffers live together and per buffer and section.
class SkylineSearch {
 public:
  SkylineSearch(SearchProblem problem, std::uint64_t seed);

  /// Looks for a placement with all tops at or under `capacity`. Section weights carry over from
  /// run to run.
  SearchStatus Run(Units capacity, const SearchStrategy& strategy, std::int64_t node_limit,
                   const Deadline& deadline);

  /// The placement of the last run that returned kFound.
  const std::vector<Units>& offsets() const { return offsets_; }
  std::int64_t nodes() const { return nodes_; }

 private:
  using Index = std::int32_t;
  enum class Outcome { kSolved, kFailed, kStopped };
  enum class ChangeKind : std::uint8_t { kRelease, kFloor, kPlaced };
  struct Change {
    ChangeKind kind;
    Index index;
    Index old_witness;
    Units old_value;
  };

  void LinkSections();
  void LinkNeighbours();
  void LinkTwins();
  void Reset(Units capacity, const SearchStrategy& strategy);
  std::vector<double> Keys(const SearchStrategy& strategy);

  Outcome SolveRange(SectionRange range);
  Outcome SolveConnected(SectionRange range);
  SectionIndex ChooseSection(SectionRange range, Units floor) const;
  std::size_t PushCandidates(SectionIndex section, Units floor);
  Outcome TryPlace(Index buffer, Units offset, SectionRange range);

  Units LowestFit(Index buffer, Units offset) const;
  bool Place(Index buffer, Units offset);
  bool LiftAll(SectionIndex section, Units floor);
  Units LowestLift(Index buffer, SectionIndex section, Units floor) const;
  bool Raise(Index buffer, Units release);
  void MarkChanged(Index buffer);
  bool RefreshFloors();
  void Undo(std::size_t mark);
  bool Crosses(Index buffer, SectionIndex section) const;
  bool OutOfBudget();

  SearchProblem problem_;
  std::mt19937_64 random_;
  Index count_ = 0;

  // What never changes: who is where.
  std::vector<Index> section_start_;    // Members of section s are member_[start[s] ..].
  std::vector<Index> incidence_start_;  // Incidences of buffer b, in the order of its sections.
  std::vector<SectionIndex> incidence_section_;
  std::vector<Index> neighbour_start_;
  std::vector<Index> neighbour_;  // Buffers live together with b.
  std::vector<Index> fixed_start_;
  std::vector<Index> fixed_;        // Fixed neighbours of b, ascending by offset.
  std::vector<Index> twin_;         // An earlier buffer exactly like b, or -1.
  std::vector<SectionRange> hull_;  // First to last section of b.

  // The state of the search. The first live_[s] members of a section are the unplaced ones.
  std::vector<Index> member_;            // Buffers.
  std::vector<Index> member_incidence_;  // And where their position is kept.
  std::vector<Index> position_;          // Per incidence: position in member_.
  std::vector<Index> live_;
  std::vector<Units> remaining_;  // Per section: sizes not yet placed.
  std::vector<Units> floor_;
  std::vector<Index> witness_;   // Per section: the buffer whose release is the floor.
  std::vector<Index> crossing_;  // Unplaced buffers over the border of s and s + 1.
  std::vector<Units> release_;
  std::vector<char> placed_;
  std::vector<Units> offset_;
  std::vector<Units> offsets_;
  std::vector<std::uint32_t> changed_;  // Per buffer: stamp of the step that changed it.
  std::uint32_t stamp_ = 0;
  SectionRange changed_hull_;
  SectionRange solid_;  // Sections in which nothing can begin under solid_top_.
  Units solid_top_ = 0;
  std::vector<Change> trail_;
  std::vector<Index> candidates_;  // A stack; each node owns a slice.
  std::uint64_t state_hash_ = 0;
  std::vector<std::uint64_t> failing_;  // A stack: hashes of the states being worked on.
  std::vector<std::uint64_t>
      failed_;                  // Hashes of failed states; newer ones take the slots of older.
  std::vector<double> weight_;  // Per section.
  std::vector<Index> rank_;
  Units capacity_ = 0;
  SectionRule rule_ = SectionRule::kLeastSlack;
  std::int64_t nodes_ = 0;
  std::int64_t node_limit_ = 0;
  const Deadline* deadline_ = nullptr;
};

}  // namespace plimsoll::place

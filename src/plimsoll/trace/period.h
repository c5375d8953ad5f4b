// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "plimsoll/trace/trace.h"

/// The repeatability test of paper 001, section V: where does an iteration begin again?
///
/// Two events correspond at distance P if they are of the same kind, size and op, and if the
/// variables that they touch correspond: the same variable (a weight), or variables that were
/// malloc'ed P events apart. A stream repeats with period P over a stretch in which every event
/// corresponds to the one P before it, and in which as many variables and bytes are freed as
/// malloc'ed per period. A stretch of less than a quarter of all events seen is an inner loop, not
/// an iteration.
///
///     events    s s a b c d e  a b c d e  a b c d e  v v
///                   └── begin                       └── end      length 5, 3 iterations
namespace plimsoll::trace {

/// A stretch [begin, end) of events that repeats itself every `length` events.
struct Period {
  EventIndex length = 0;
  EventIndex begin = 0;
  EventIndex end = 0;

  /// Whole iterations in the stretch; at least two.
  std::int64_t iterations() const { return (end - begin) / length; }

  friend bool operator==(const Period&, const Period&) = default;
};

/// Watches a stream of events, one at a time, and finds its period. Candidates for a period are
/// distances to the last event of the same make, on the same variable or after the same history;
/// each is followed for as long as it holds. Constant time per event and operand. Everything seen
/// is remembered: make a new one once a period has been found. Not thread-safe.
class PeriodDetector {
 public:
  PeriodDetector();

  /// Says that a variable has been there since before the first event.
  void Declare(VariableIndex variable, Bytes size_bytes);
  void Malloc(VariableIndex variable, Bytes size_bytes);
  void Free(VariableIndex variable);
  /// `op` stands for what is executed: its name, its phase.
  void Exec(std::uint64_t op, std::span<const VariableIndex> reads,
            std::span<const VariableIndex> writes);

  /// The shortest period over which the stream has repeated itself up to the latest event: what a
  /// runtime asks after each event. Its stretch is a lower estimate; Longest() extends it.
  std::optional<Period> Current() const;

  /// The period that explains the most events seen so far, the shortest of equals; nothing if the
  /// stream does not repeat. Linear in the events seen.
  std::optional<Period> Longest() const;

  EventIndex event_count() const { return static_cast<EventIndex>(events_.size()); }

 private:
  struct Record {
    std::uint64_t make;  ///< Hash of kind, size, op and number of operands.
    std::int64_t first_operand;
    std::int32_t operand_count;
  };
  /// A distance at which the last `run` events up to (not including) `end` have corresponded.
  struct Candidate {
    EventIndex length = 0;
    EventIndex end = 0;
    EventIndex run = 0;
    /// The same, if variables from before the stream may stand for ones malloc'ed before it.
    EventIndex loose_run = 0;

    /// How much speaks for it: all that it explains, once it has gone around.
    EventIndex support() const { return loose_run + (loose_run < length ? loose_run : length); }
  };
  /// What is live, relative to the beginning.
  struct Level {
    Bytes bytes = 0;
    std::int64_t variables = 0;

    friend bool operator==(const Level&, const Level&) = default;
  };
  struct Life {
    EventIndex born = -1;  ///< Position of the malloc; -1 if it was there before.
    Bytes size_bytes = 0;
  };

  Life& LifeOf(VariableIndex variable);
  void Add(std::uint64_t make, const Level& change);
  void FollowCandidates(EventIndex now);
  void Propose(EventIndex now, EventIndex length);
  void Retire(const Candidate& candidate);
  bool Corresponds(EventIndex earlier, EventIndex length, bool loosely = false) const;
  bool IsBalanced(const Period& period) const;
  bool IsIteration(const Period& period) const;
  Period Extend(const Candidate& candidate) const;

  std::vector<Record> events_;
  std::vector<VariableIndex> operands_;
  std::vector<Level> levels_;           // After each event.
  std::vector<std::uint64_t> history_;  // After each event: a hash of all makes so far.
  std::vector<Life> lives_;             // By variable.
  std::unordered_map<std::uint64_t, EventIndex> last_of_make_;
  std::vector<Candidate> active_;
  std::vector<Candidate> retired_;  // The ones with the most support.
};

/// Finds the period of a whole trace. Iteration marks are not looked at.
std::optional<Period> FindPeriod(const Trace& trace);

}  // namespace plimsoll::trace

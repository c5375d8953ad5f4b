// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/exec/pattern.h"
#include "plimsoll/exec/recorder.h"
#include "plimsoll/trace/period.h"

namespace plimsoll::exec {

struct WatchOptions {
  PlanningOptions planning;
  /// Whether to plan on the calling thread, for runs that must be repeatable.
  bool plan_at_once = false;
  /// How often an iteration is recorded before it is planned: the shortest time of each op counts.
  std::int64_t recordings = 2;
  /// How many iterations are remembered, with their plans.
  std::size_t most_patterns = 16;
};

/// Watches the calls of a program that is served on demand, and says when to begin planned service.
///
/// A program that marks the end of its iterations is recorded from mark to mark. Recordings that
/// are alike are a Pattern; once seen often enough, it is planned while the program goes on, and
/// served at a mark at which it is expected to come next: the one that came after the last two
/// before, of those that have the name that the program gives.
///
/// A program without marks, or with iterations that leave something behind for the next one, is
/// recorded from the beginning until it repeats itself. While that is
/// planned, a shadow follows the program through the iteration, so that it is known where it stands
/// when the plan is there.
class IterationWatch {
 public:
  explicit IterationWatch(WatchOptions options);

  /// Begins to record; the blocks of `live` are there.
  void Begin(const std::map<Block, Bytes>& live);

  /// Goes on to record an iteration whose calls up to here have come as a follower knows; `live` is
  /// there. So an iteration that departs from a plan is recorded as a whole, if it is marked.
  void Resume(const Follower& follower, const std::map<Block, Bytes>& live);

  void Malloc(Block block, Bytes size_bytes);
  void Free(Block block);
  void Exec(const OpInfo& info, std::span<const Block> reads, std::span<const Block> writes,
            Nanoseconds duration_ns);
  /// A mark; what comes next is called so. Begins to record anew.
  void EndIteration(std::string_view next);

  /// What to serve from here on.
  struct Entry {
    std::shared_ptr<Pattern> pattern;
    Follower follower;
  };
  /// To be asked after each call: whether planned service begins here.
  std::optional<Entry> Due();

  /// What is expected to come next, by marks; null if nothing that is planned.
  std::shared_ptr<Pattern> Expected(std::string_view tag);
  /// Say that an iteration came as expected, or that it did not.
  void NoteHit(Pattern* pattern);
  void NoteMiss(Pattern* pattern);
  /// Plans an iteration again for so much host memory; what is planned later is for no more.
  /// REQUIRES: its plan is ready, and nobody runs it.
  void PlanAgain(Pattern* pattern, Bytes host_limit_bytes);
  /// Waits for plans in the making.
  void AwaitPlans();

  bool marked() const { return marked_; }
  /// How many times an iteration was planned.
  std::int64_t plans_made() const { return plans_made_; }
  const std::vector<std::shared_ptr<Pattern>>& patterns() const { return patterns_; }

 private:
  /// Without marks.
  void FollowPeriod();
  std::unique_ptr<Follower> FollowerFromHere(const Steps& steps) const;
  void Lose();
  /// With marks.
  void GiveUpMarksIfEndless();
  bool IsPlanning() const;
  void FinishRecording();
  bool IsInPlace(const Pattern& pattern) const;

  std::shared_ptr<Pattern> Find(std::uint64_t hash) const;
  std::shared_ptr<Pattern> Add(std::uint64_t hash, const std::string& tag);
  void Remember(std::uint64_t hash);

  WatchOptions options_;
  std::map<Block, Bytes> live_;
  Recorder recorder_;
  bool marked_ = false;
  bool mark_is_due_ = false;  // Right behind a mark.
  int open_iterations_ = 0;   // In a row, of which something was left behind.
  std::string tag_;
  std::unique_ptr<trace::PeriodDetector> detector_;
  trace::EventIndex next_cut_ = 0;  // No attempt to cut an iteration before so many events.
  std::unique_ptr<Follower> shadow_;
  std::shared_ptr<Pattern> shadowed_;

  std::vector<std::shared_ptr<Pattern>> patterns_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> successors_;
  std::pair<std::uint64_t, std::uint64_t> last_two_{};
  std::int64_t clock_ = 0;
  std::int64_t plans_made_ = 0;
};

}  // namespace plimsoll::exec
